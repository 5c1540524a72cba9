//! The hooks of a runtime's builder. Tokio keeps one function for each: those of the program go
//! through [`Options`], and are called after ours.

use std::sync::Arc;

#[cfg(tokio_hooks)]
use std::sync::atomic::Ordering;

use tacho::sys;
use tokio::runtime::Builder;
#[cfg(tokio_hooks)]
use tokio::runtime::TaskMeta;

use crate::runtime::Owner;
#[cfg(tokio_hooks)]
use crate::runtime::PLAIN_TASKS;
#[cfg(tokio_hooks)]
use crate::site::Site;
use crate::thread;

type Hook = Option<Box<dyn Fn() + Send + Sync>>;
#[cfg(tokio_hooks)]
type TaskHook = Option<Box<dyn Fn(&TaskMeta<'_>) + Send + Sync>>;

/// What a runtime is called, and the program's own hooks.
#[derive(Default)]
#[must_use]
pub struct Options {
    name: Option<String>,
    on_thread_start: Hook,
    on_thread_stop: Hook,
    on_thread_park: Hook,
    on_thread_unpark: Hook,
    #[cfg(tokio_hooks)]
    on_task_spawn: TaskHook,
    #[cfg(tokio_hooks)]
    on_task_terminate: TaskHook,
    #[cfg(tokio_hooks)]
    on_before_task_poll: TaskHook,
    #[cfg(tokio_hooks)]
    on_after_task_poll: TaskHook,
}

macro_rules! thread_hooks {
    ($($name:ident)*) => {$(
        #[doc = concat!("The program's own [`Builder::", stringify!($name), "`].")]
        pub fn $name(mut self, hook: impl Fn() + Send + Sync + 'static) -> Options {
            self.$name = Some(Box::new(hook));
            self
        }
    )*};
}

#[cfg(tokio_hooks)]
macro_rules! task_hooks {
    ($($name:ident)*) => {$(
        #[doc = concat!("The program's own [`Builder::", stringify!($name), "`].")]
        pub fn $name(mut self, hook: impl Fn(&TaskMeta<'_>) + Send + Sync + 'static) -> Options {
            self.$name = Some(Box::new(hook));
            self
        }
    )*};
}

impl Options {
    /// The runtime is called `tokio`, and the program has no hooks.
    pub fn new() -> Options {
        Options::default()
    }

    /// What the runtime is called in the trace: its workers are `NAME worker 0` and so on.
    pub fn name(mut self, name: impl Into<String>) -> Options {
        self.name = Some(name.into());
        self
    }

    thread_hooks! { on_thread_start on_thread_stop on_thread_park on_thread_unpark }
    #[cfg(tokio_hooks)]
    task_hooks! { on_task_spawn on_task_terminate on_before_task_poll on_after_task_poll }
}

/// A hook of ours, then the program's.
fn both(
    owner: &Arc<Owner>,
    ours: impl Fn(&Owner) + Send + Sync + 'static,
    theirs: Hook,
) -> impl Fn() + Send + Sync + 'static {
    let owner = Arc::clone(owner);
    move || {
        ours(&owner);
        if let Some(theirs) = &theirs {
            theirs();
        }
    }
}

#[cfg(tokio_hooks)]
fn both_of_task(
    owner: &Arc<Owner>,
    ours: impl Fn(&Owner, &TaskMeta<'_>) + Send + Sync + 'static,
    theirs: TaskHook,
) -> impl Fn(&TaskMeta<'_>) + Send + Sync + 'static {
    let owner = Arc::clone(owner);
    move |task| {
        ours(&owner, task);
        if let Some(theirs) = &theirs {
            theirs(task);
        }
    }
}

/// Hooks that the program has set on the builder would be lost. Nothing but the text of the builder tells
/// that there are some.
fn say_lost(builder: &Builder) {
    let text = format!("{builder:?}");
    for (field, name) in [
        ("after_start", "on_thread_start"),
        ("before_stop", "on_thread_stop"),
        ("before_park", "on_thread_park"),
        ("after_unpark", "on_thread_unpark"),
    ] {
        if text.contains(&format!("{field}: Some(")) {
            let said = format!(
                "tacho-tokio replaced the program's {name}: give it to tacho_tokio::Options instead"
            );
            // SAFETY: a text with its length.
            unsafe { sys::tacho_log_n(crate::WARN, said.as_ptr().cast(), said.len()) };
        }
    }
}

/// The owner lasts as long as a runtime that the builder makes, and the builder.
pub(crate) fn attach(builder: &mut Builder, options: Options) -> Arc<Owner> {
    say_lost(builder);
    let name = options.name.unwrap_or_else(|| "tokio".to_owned());
    let owner = &Arc::new(Owner::new(name));
    builder
        .on_thread_start(both(
            owner,
            |o| thread::with(|t| t.started_by.set(o)),
            options.on_thread_start,
        ))
        .on_thread_stop(both(owner, |_| thread::with(|t| t.leaves()), options.on_thread_stop))
        .on_thread_park(both(owner, |o| thread::with(|t| o.parks(t)), options.on_thread_park))
        .on_thread_unpark(both(
            owner,
            |o| thread::with(|t| o.unparks(t)),
            options.on_thread_unpark,
        ));
    #[cfg(tokio_hooks)]
    builder
        .on_task_spawn(both_of_task(owner, spawned, options.on_task_spawn))
        .on_task_terminate(both_of_task(owner, terminated, options.on_task_terminate))
        .on_before_task_poll(both_of_task(owner, begins, options.on_before_task_poll))
        .on_after_task_poll(both_of_task(owner, ends, options.on_after_task_poll));
    #[cfg(all(feature = "schedule-latency", tokio_hooks))]
    builder.track_task_schedule_latency();
    Arc::clone(owner)
}

#[cfg(tokio_hooks)]
fn spawned(_: &Owner, task: &TaskMeta<'_>) {
    thread::with(|thread| {
        let number = crate::number(task.id());
        let (site, parent) = match thread.spawning.take() {
            Some(ours) if ours.told => return,
            Some(ours) => (ours.site, ours.parent),
            None => {
                let place = Site::of(task.spawned_at(), None);
                if !place.plain.load(Ordering::Relaxed) {
                    place.plain.store(true, Ordering::Relaxed);
                }
                PLAIN_TASKS.fetch_add(1, Ordering::Relaxed);
                (place, thread.current.get())
            }
        };
        // SAFETY: sites stay.
        unsafe { sys::tacho_task_spawn(number, &site.kind, parent, std::ptr::null()) };
    });
}

/// Whether its polls are told by the hooks: it was not spawned through this crate, or cannot be told from
/// others that were not.
#[cfg(tokio_hooks)]
fn is_plain(site: &Site) -> bool {
    site.plain.load(Ordering::Relaxed) || !site.tells.load(Ordering::Relaxed)
}

#[cfg(tokio_hooks)]
fn begins(owner: &Owner, task: &TaskMeta<'_>) {
    if !sys::recording() {
        return;
    }
    thread::with(|thread| {
        let number = crate::number(task.id());
        let site = Site::of(task.spawned_at(), None);
        let plain = is_plain(site);
        if thread.worker_loop.get().is_none() {
            owner.knows(thread);
        }
        thread.hooked.push(number, plain);
        #[cfg(feature = "schedule-latency")]
        tell_latency(number, task);
        if plain {
            thread.counts_poll();
            thread.current.set(number);
            // SAFETY: sites stay.
            unsafe { sys::tacho_poll_begin(&site.kind, number) };
        }
    });
}

/// The next poll of this thread waited so long since Tokio put its task into a queue. Shorter than a
/// millisecond is not told.
#[cfg(all(feature = "schedule-latency", tokio_hooks))]
#[derive(tacho::Event)]
struct ScheduleLatency {
    task: u64,
    latency_ns: u64,
}

#[cfg(all(feature = "schedule-latency", tokio_hooks))]
fn tell_latency(task: u64, meta: &TaskMeta<'_>) {
    use tacho::Event;
    const LEAST_NS: u128 = 1_000_000;
    if let Some(ns @ LEAST_NS..) = meta.schedule_latency().map(|latency| latency.as_nanos()) {
        ScheduleLatency { task, latency_ns: ns as u64 }.record();
    }
}

#[cfg(tokio_hooks)]
fn ends(_: &Owner, task: &TaskMeta<'_>) {
    thread::with(|thread| {
        let number = crate::number(task.id());
        #[cfg(task_dumps)]
        crate::dump::polled(number);
        if !thread.hooked.pop(number) {
            return;
        }
        let ended = thread.hooked.ended.get() == number;
        thread.current.set(thread.hooked.top().0);
        // SAFETY: a number.
        unsafe { sys::tacho_poll_end(if ended { sys::TACHO_DONE } else { sys::TACHO_PENDING }) };
    });
}

#[cfg(tokio_hooks)]
fn terminated(_: &Owner, task: &TaskMeta<'_>) {
    // Work of the blocking pool ends here too, and is no task.
    let Some(site) = Site::known(task.spawned_at()) else { return };
    thread::with(|thread| {
        let number = crate::number(task.id());
        let told = thread.hooked.ended.replace(number) == number;
        let in_poll = thread.hooked.top() == (number, true);
        let spawned = site.plain.load(Ordering::Relaxed) || site.tells.load(Ordering::Relaxed);
        if !told && !in_poll && spawned {
            // SAFETY: a number.
            unsafe { sys::tacho_task_end(number) };
        }
    });
}
