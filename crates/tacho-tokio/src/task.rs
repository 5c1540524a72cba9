//! A future that tells of itself: when it is polled, who wakes it, where it goes idle, its end.
//!
//! The waker that it hands on tells of each wake before it passes it on. It is at most one allocation for
//! each task, made at its first poll; a poll or a wake allocates nothing.
//!
//! Where a task goes idle is seen without polling it again: what makes it wait keeps a clone of its
//! waker, so the stack of the call that clones it is the place. Whoever has one already does not clone
//! it again, unless it looks like another one; so in the polls that are looked at, which are few, the
//! waker has another table of functions.
//!
//! A task that is not polled, was not woken since, and whose waker nobody has any more but the task itself
//! will never run again. That is told when it becomes true: at the end of the poll that left no waker
//! behind, or where the last one is dropped.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::atomic::{fence, AtomicBool, AtomicU8, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use tacho::sys;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::idle;
use crate::runtime::{block_on_loop, Loop};
use crate::site::Site;
use crate::thread::{self, Thread};

pub(crate) const TASK_WAITS: u32 = 0xc1;
const NO_WAKER: u32 = 0x53;

struct Wakes {
    inner: Waker,
    task: u64,
    /// Whoever still has a waker may wake a task that is gone.
    ended: AtomicBool,
    /// `WOKEN` may be lost to a poll that begins or ends just then: the poll that follows from it corrects
    /// what was told meanwhile.
    state: AtomicU8,
}

const WOKEN: u8 = 0;
const POLLED: u8 = 1;
const IDLE: u8 = 2;

impl Wakes {
    #[inline]
    fn tell(&self) {
        self.state.store(WOKEN, Ordering::Relaxed);
        if sys::recording() && !self.ended.load(Ordering::Relaxed) {
            thread::with(|thread| thread.woken.set(thread.woken.get().saturating_add(1)));
            // SAFETY: a number.
            unsafe { sys::tacho_wake(self.task) };
        }
    }

    /// Its poll has ended, and the task waits.
    #[inline]
    fn rests(this: &Arc<Wakes>) {
        if this.state.load(Ordering::Relaxed) == POLLED {
            this.state.store(IDLE, Ordering::Relaxed);
            if Arc::strong_count(this) == 1 {
                this.is_forsaken(0);
            }
        }
    }

    /// Nobody has a waker but the task, and who drops one now.
    #[cold]
    #[inline(never)]
    fn is_forsaken(&self, frame: usize) {
        // What those did who had one before: `Arc` releases that.
        fence(Ordering::Acquire);
        if self.state.load(Ordering::Relaxed) != IDLE
            || self.ended.load(Ordering::Relaxed)
            || !sys::recording()
        {
            return;
        }
        let stack = match frame {
            0 => 0,
            frame => thread::with(|thread| idle::stack(thread, frame)),
        };
        // SAFETY: recording is on.
        unsafe { (sys::calls().put1)(NO_WAKER, stack, self.task) };
    }
}

static QUIET: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);
/// Of the waker in polls that are looked at; never of one that somebody keeps.
static LOOKING: RawWakerVTable = RawWakerVTable::new(clone_looking, wake, wake_by_ref, drop_waker);

// SAFETY of all: `data` is that of an `Arc<Wakes>` which the waker owns, or which outlives it.
unsafe fn clone(data: *const ()) -> RawWaker {
    Arc::increment_strong_count(data.cast::<Wakes>());
    RawWaker::new(data, &QUIET)
}

#[cold]
unsafe fn clone_looking(data: *const ()) -> RawWaker {
    let task = (*data.cast::<Wakes>()).task;
    thread::with(|thread| {
        // Only what the task itself does in its poll says where it waits.
        if thread.current.get() == task && thread.may_look() && sys::recording() {
            thread.looked();
            let stack = idle::stack(thread, thread.poll_frame.get());
            if stack != 0 {
                (sys::calls().put)(TASK_WAITS, 0, stack.into(), [task, 0].as_ptr(), 2);
            }
        }
    });
    clone(data)
}

unsafe fn wake(data: *const ()) {
    let wakes = Arc::from_raw(data.cast::<Wakes>());
    wakes.tell();
    wakes.inner.wake_by_ref();
}

unsafe fn wake_by_ref(data: *const ()) {
    let wakes = &*data.cast::<Wakes>();
    wakes.tell();
    wakes.inner.wake_by_ref();
}

unsafe fn drop_waker(data: *const ()) {
    let wakes = Arc::from_raw(data.cast::<Wakes>());
    // Of two that are dropped at the same moment neither may be the last: then it is not told.
    if Arc::strong_count(&wakes) == 2 && wakes.state.load(Ordering::Relaxed) == IDLE {
        wakes.is_forsaken(thread::with(|thread| thread.poll_frame.get()));
    }
}

/// Who tells that the task was spawned.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Spawn {
    /// It was told, before the first poll.
    Told,
    /// Tokio's hook if there is one, else the first poll.
    #[cfg(tokio_hooks)]
    ByHook,
    /// It is what `block_on` waits for.
    Root,
}

/// A future that records its polls, wakes and end. [`recorded`](crate::recorded) makes one.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Recorded<F> {
    future: F,
    site: &'static Site,
    /// 0: not known before the first poll.
    task: u64,
    #[cfg(tokio_hooks)]
    parent: u64,
    wakes: Option<Arc<Wakes>>,
    /// Of a root that is polled outside of a loop: it parks after each poll.
    parks: Option<&'static Loop>,
    polls: u32,
    spawn: Spawn,
    ended: bool,
    /// Tokio's hooks tell of its polls and end.
    hooked: bool,
    /// Wakers of an earlier poll, which was another's, may still wake it.
    had_other: bool,
}

impl<F> Recorded<F> {
    pub(crate) fn new(future: F, site: &'static Site, spawn: Spawn, parent: u64) -> Recorded<F> {
        let task = match spawn {
            #[cfg(tokio_hooks)]
            Spawn::ByHook => 0,
            _ => crate::own_number(),
        };
        if spawn == Spawn::Told {
            // SAFETY: sites stay.
            unsafe { sys::tacho_task_spawn(task, &site.kind, parent, std::ptr::null()) };
        }
        Recorded {
            future,
            site,
            task,
            #[cfg(tokio_hooks)]
            parent,
            wakes: None,
            parks: None,
            polls: 0,
            spawn,
            ended: false,
            hooked: false,
            had_other: false,
        }
    }

    /// What is known only in the first poll.
    #[cold]
    fn first_poll(&mut self, thread: &Thread) {
        match self.spawn {
            Spawn::Told => {}
            #[cfg(tokio_hooks)]
            Spawn::ByHook => {
                let (hooked, recorded) = thread.hooked.top();
                self.task = crate::task_id().unwrap_or_else(crate::own_number);
                self.hooked = hooked == self.task && recorded;
                if hooked != self.task {
                    // SAFETY: sites stay.
                    unsafe {
                        let place = std::ptr::null();
                        sys::tacho_task_spawn(self.task, &self.site.kind, self.parent, place);
                    }
                }
            }
            Spawn::Root => {
                let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
                if matches!(flavor, Ok(flavor) if flavor != RuntimeFlavor::CurrentThread) {
                    self.parks = Some(block_on_loop());
                }
            }
        }
        let _ = thread;
    }

    #[cold]
    fn new_waker(&mut self, inner: &Waker) {
        if let Some(before) = self.wakes.take() {
            before.ended.store(true, Ordering::Relaxed);
            self.had_other = true;
        }
        self.wakes = Some(Arc::new(Wakes {
            inner: inner.clone(),
            task: self.task,
            ended: AtomicBool::new(false),
            state: AtomicU8::new(WOKEN),
        }));
    }

    /// Whether nobody can wake it who has no waker of this poll. Who is polled by another task may be polled
    /// for what that waits for; what `block_on` waits for may wait for good, as a `main` that others work for.
    #[inline]
    fn needs_waker(&self, outer: u64) -> bool {
        outer == 0 && self.spawn != Spawn::Root && !self.had_other
    }

    #[inline]
    fn begin(&self) {
        // SAFETY: loops and sites stay.
        unsafe {
            match self.parks {
                None => sys::tacho_poll_begin(&self.site.kind, self.task),
                Some(parked) if self.polls > 1 => {
                    sys::tacho_unpark_poll(&parked.0, 1, &self.site.kind, self.task);
                }
                Some(parked) => {
                    sys::tacho_loop(&parked.0);
                    sys::tacho_poll_begin(&self.site.kind, self.task);
                }
            }
        }
    }

    #[inline]
    fn end(&mut self, result: u32) {
        if result == sys::TACHO_DONE {
            self.ended = true;
            if let Some(wakes) = &self.wakes {
                wakes.ended.store(true, Ordering::Relaxed);
            }
            self.tell_hook();
        }
        if !self.hooked {
            // SAFETY: loops stay; NULL is none.
            unsafe {
                match self.parks {
                    None => sys::tacho_poll_end(result),
                    Some(parks) if result == sys::TACHO_PENDING => {
                        sys::tacho_poll_end_park(result, &parks.0);
                    }
                    Some(_) => {
                        sys::tacho_poll_end(result);
                        sys::tacho_loop(std::ptr::null());
                    }
                }
            }
        }
        if let Some(wakes) = &self.wakes {
            Wakes::rests(wakes);
        }
    }
}

impl<F> Recorded<F> {
    /// The end is told: Tokio's hook, which comes next on this thread, need not.
    #[inline]
    fn tell_hook(&self) {
        #[cfg(tokio_hooks)]
        if !self.hooked {
            thread::with(|thread| thread.hooked.ended.set(self.task));
        }
    }
}

/// Ends the poll also where it panics: then the task is over.
struct Polling<'a, F> {
    task: &'a mut Recorded<F>,
    outer: u64,
    /// 0: it is not looked at.
    outer_frame: usize,
    result: u32,
}

impl<F> Drop for Polling<'_, F> {
    #[inline]
    fn drop(&mut self) {
        thread::with(|thread| {
            thread.current.set(self.outer);
            thread.poll_frame.set(self.outer_frame);
        });
        self.task.end(self.result);
    }
}

impl<F: Future> Future for Recorded<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` stays where it is: it is only handed out pinned, and dropped in place. The
        // rest is not pinned.
        let this = unsafe { self.get_unchecked_mut() };
        if !sys::recording() || this.ended {
            if let Some(wakes) = &this.wakes {
                wakes.state.store(WOKEN, Ordering::Relaxed);
            }
            // SAFETY: as above.
            return unsafe { Pin::new_unchecked(&mut this.future) }.poll(cx);
        }
        let (outer, looks) = thread::with(|thread| {
            thread.counts_poll();
            if this.polls == 0 {
                this.first_poll(thread);
            }
            this.polls = this.polls.saturating_add(1);
            (thread.current.replace(this.task), thread.may_look())
        });
        match &this.wakes {
            Some(wakes) if wakes.inner.will_wake(cx.waker()) => {}
            _ => this.new_waker(cx.waker()),
        }
        let data = this.wakes.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        if let Some(wakes) = &this.wakes {
            let state = if this.needs_waker(outer) { POLLED } else { WOKEN };
            wakes.state.store(state, Ordering::Relaxed);
        }
        let table = if looks { &LOOKING } else { &QUIET };
        // SAFETY: `this.wakes` lives longer than this waker, which does not count itself.
        let waker =
            ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(data.cast(), table)) });
        if !this.hooked {
            this.begin();
        }
        let mut polling = Polling { task: this, outer, outer_frame: 0, result: sys::TACHO_DONE };
        if looks {
            let frame = std::ptr::addr_of!(polling) as usize;
            polling.outer_frame = thread::with(|thread| thread.poll_frame.replace(frame));
        }
        // SAFETY: as above.
        let future = unsafe { Pin::new_unchecked(&mut polling.task.future) };
        let poll = future.poll(&mut Context::from_waker(&waker));
        if poll.is_pending() {
            polling.result = sys::TACHO_PENDING;
        }
        poll
    }
}

impl<F> Drop for Recorded<F> {
    fn drop(&mut self) {
        if let Some(wakes) = &self.wakes {
            wakes.ended.store(true, Ordering::Relaxed);
        }
        if self.ended || self.hooked {
            return;
        }
        // Without a number it was never polled: if a hook told that it was spawned, one tells its end.
        if self.task != 0 {
            // SAFETY: a number.
            unsafe { sys::tacho_task_end(self.task) };
            self.tell_hook();
        }
    }
}
