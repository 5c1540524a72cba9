//! A runtime that is recorded: its workers are loops, named after the runtime and their number.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use tacho::sys;
use tokio::runtime::{Handle, Id, RuntimeFlavor};

use crate::site::lasting;
use crate::thread::Thread;

/// How often the queues of a runtime are looked at, at most.
const SAMPLE_NS: u64 = 10_000_000;
/// Of the parks of a thread, one in so many asks the clock whether it is time for that.
const PARKS_PER_LOOK: u32 = 16;

/// A worker, in the trace.
pub(crate) struct Loop(pub(crate) sys::tacho_name);

impl Loop {
    fn new(text: &str) -> &'static Loop {
        let name = sys::tacho_name::new(
            sys::TACHO_DEF_LOOP,
            sys::TACHO_LEVEL_API,
            lasting(text),
            ptr::null(),
            0,
            ptr::null(),
        );
        Box::leak(Box::new(Loop(name)))
    }
}

/// Stays when the runtime ends, and is used again by the next of its name: runtimes that come and go
/// take no more memory, and their loops are the same in the trace.
pub(crate) struct Runtime {
    /// As it was asked for; `title` tells apart those that live at once.
    name: String,
    title: String,
    loops: Mutex<Vec<&'static Loop>>,
    global_queue: sys::tacho_name,
    alive_tasks: sys::tacho_name,
    sampled: AtomicU64,
}

/// All that were ever made, and whether each is in use.
static RUNTIMES: Mutex<Vec<(&'static Runtime, bool)>> = Mutex::new(Vec::new());

/// Tasks that were not spawned through this crate.
#[cfg(tokio_hooks)]
pub(crate) static PLAIN_TASKS: AtomicU64 = AtomicU64::new(0);
#[cfg(tokio_hooks)]
static WAKES_UNSEEN: sys::tacho_name = sys::tacho_name::new(
    sys::TACHO_DEF_COUNTER,
    sys::TACHO_VALUE_I64,
    c"tokio: tasks spawned whose wakes are not seen".as_ptr(),
    ptr::null(),
    0,
    c"tasks".as_ptr(),
);

/// Some time, so that a runtime is looked at when it begins.
fn ns_of(now: Instant) -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let since = now.saturating_duration_since(*START.get_or_init(|| now));
    SAMPLE_NS + since.as_nanos() as u64
}

impl Runtime {
    fn new(name: &str, others: usize) -> &'static Runtime {
        let title = match others {
            0 => name.to_owned(),
            _ => format!("{name} {}", others + 1),
        };
        let gauge = |what: &str| {
            let text = lasting(&format!("{title}: {what}"));
            let unit = c"tasks".as_ptr();
            let class = sys::TACHO_DEF_GAUGE;
            sys::tacho_name::new(class, sys::TACHO_VALUE_F64, text, ptr::null(), 0, unit)
        };
        Box::leak(Box::new(Runtime {
            name: name.to_owned(),
            loops: Mutex::new(Vec::new()),
            global_queue: gauge("tasks in the global queue"),
            alive_tasks: gauge("tasks alive"),
            sampled: AtomicU64::new(0),
            title,
        }))
    }

    /// A runtime of this name that is not in use.
    fn get(name: &str) -> &'static Runtime {
        let mut all = RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner);
        let others = all.iter().filter(|(runtime, _)| runtime.name == name).count();
        if let Some(free) = all.iter_mut().find(|(runtime, used)| !*used && runtime.name == name) {
            free.1 = true;
            return free.0;
        }
        let made = Runtime::new(name, others);
        all.push((made, true));
        made
    }

    fn give_back(&'static self) {
        let mut all = RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = all.iter_mut().find(|(runtime, _)| ptr::eq(*runtime, self)) {
            entry.1 = false;
        }
    }

    fn loop_of(&self, worker: usize, flavor: RuntimeFlavor) -> &'static Loop {
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        while loops.len() <= worker {
            let text = match flavor {
                RuntimeFlavor::CurrentThread => self.title.clone(),
                _ => format!("{} worker {}", self.title, loops.len()),
            };
            loops.push(Loop::new(&text));
        }
        loops[worker]
    }

    #[inline]
    fn parks(&self, thread: &Thread, worker_loop: &'static Loop) {
        let parks = thread.parks.get().wrapping_add(1);
        thread.parks.set(parks);
        if parks % PARKS_PER_LOOK == 0 {
            self.look(thread, worker_loop);
        }
        thread.woken.set(0);
        // SAFETY: loops stay.
        unsafe { sys::tacho_park(&worker_loop.0) };
    }

    /// Looks at the clock, and then at the queues if it is time to.
    #[cold]
    pub(crate) fn look(&self, thread: &Thread, worker_loop: &'static Loop) {
        let now = Instant::now();
        thread.refill(now);
        let ns = ns_of(now);
        let before = self.sampled.load(Ordering::Relaxed);
        if ns < before.saturating_add(SAMPLE_NS)
            || self
                .sampled
                .compare_exchange(before, ns, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
        {
            return;
        }
        if sys::recording() {
            self.sample(thread, worker_loop);
        }
    }

    fn sample(&self, thread: &Thread, worker_loop: &'static Loop) {
        let Ok(handle) = Handle::try_current() else { return };
        let metrics = handle.metrics();
        // SAFETY: loops and runtimes stay.
        unsafe {
            sys::tacho_gauge(&self.global_queue, metrics.global_queue_depth() as f64);
            sys::tacho_gauge(&self.alive_tasks, metrics.num_alive_tasks() as f64);
        }
        #[cfg(tokio_hooks)]
        // SAFETY: as above.
        unsafe {
            let plain = PLAIN_TASKS.load(Ordering::Relaxed);
            sys::tacho_counter(&WAKES_UNSEEN, plain as i64);
            for worker in 0..metrics.num_workers() {
                let depth = metrics.worker_local_queue_depth(worker) as u64;
                let queue = self.loop_of(worker, handle.runtime_flavor());
                sys::tacho_queue_depth(&queue.0, depth);
            }
            // From whom is not known.
            let stolen = steals(&handle, thread.worker_index.get());
            let before = thread.stolen.replace(stolen);
            if stolen > before {
                sys::tacho_steal(&worker_loop.0, ptr::null(), stolen - before);
            }
        }
        #[cfg(not(tokio_hooks))]
        let _ = (thread, worker_loop);
    }
}

#[cfg(tokio_hooks)]
fn steals(handle: &Handle, worker: usize) -> u64 {
    let metrics = handle.metrics();
    if worker < metrics.num_workers() {
        metrics.worker_steal_count(worker)
    } else {
        0
    }
}

/// What the hooks of a builder share: the runtimes that it builds, mostly one.
pub(crate) struct Owner {
    /// No other has it, also none that comes when this one is gone.
    number: u64,
    name: String,
    runtimes: Mutex<Vec<(Id, &'static Runtime)>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        let runtimes = self.runtimes.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, runtime) in runtimes {
            runtime.give_back();
        }
    }
}

impl Owner {
    pub(crate) fn new(name: String) -> Owner {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Owner { number, name, runtimes: Mutex::new(Vec::new()) }
    }

    fn runtime(&self, id: Id) -> &'static Runtime {
        let mut runtimes = self.runtimes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, runtime)) = runtimes.iter().find(|(known, _)| *known == id) {
            return runtime;
        }
        let runtime = Runtime::get(&self.name);
        runtimes.push((id, runtime));
        runtime
    }

    #[cold]
    fn register(&self, thread: &Thread, worker: usize) {
        let Ok(handle) = Handle::try_current() else { return };
        let runtime = self.runtime(handle.id());
        let worker_loop = runtime.loop_of(worker, handle.runtime_flavor());
        thread.owner.set(self.number);
        thread.runtime.set(Some(runtime));
        thread.worker_index.set(worker);
        thread.worker_loop.set(Some(worker_loop));
        #[cfg(tokio_hooks)]
        thread.stolen.set(steals(&handle, worker));
        // SAFETY: loops stay.
        unsafe { sys::tacho_loop(&worker_loop.0) };
    }

    /// The runtime and the loop of this thread, if it is a worker. `block_in_place` moves a worker to
    /// another thread.
    #[inline]
    pub(crate) fn knows(&self, thread: &Thread) -> Option<(&'static Runtime, &'static Loop)> {
        let worker = tokio::runtime::worker_index()?;
        if thread.owner.get() != self.number || thread.worker_index.get() != worker {
            self.register(thread, worker);
        }
        thread.runtime.get().zip(thread.worker_loop.get())
    }

    #[inline]
    pub(crate) fn parks(&self, thread: &Thread) {
        if let Some((runtime, worker_loop)) = self.knows(thread) {
            runtime.parks(thread, worker_loop);
        }
    }

    #[inline]
    pub(crate) fn unparks(&self, thread: &Thread) {
        let Some(worker_loop) = thread.worker_loop.get() else { return };
        if thread.owner.get() == self.number {
            // SAFETY: loops stay.
            unsafe { sys::tacho_unpark(&worker_loop.0, thread.woken.get()) };
        }
    }
}

/// The loop of a thread that waits in `block_on`: the thread is no worker.
pub(crate) fn block_on_loop() -> &'static Loop {
    static LOOPS: Mutex<Vec<(String, &'static Loop)>> = Mutex::new(Vec::new());
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("thread");
    let mut loops = LOOPS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = loops.iter().find(|(known, _)| known == name) {
        return known;
    }
    let made = Loop::new(&format!("{name} block_on"));
    loops.push((name.to_owned(), made));
    made
}
