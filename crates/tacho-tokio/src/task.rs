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
use std::ops::Deref;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicBool, AtomicU32, AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use tacho::sys;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::idle;
use crate::runtime::{block_on_loop, Loop};
use crate::site::Site;
use crate::spare::{self, Line};
use crate::thread::{self, Thread};

pub(crate) const TASK_WAITS: u32 = 0xc1;
const NO_WAKER: u32 = 0x53;
const WAKE: u32 = 0x43;

/// What a task and its wakers share: all that a poll and a wake need of the task. It is one line of the cache,
/// which moves to another CPU with the task; a second one would cost about as much as all else here.
#[repr(C, align(64))]
struct Wakes {
    /// The wakers that there are, and the task.
    holders: AtomicUsize,
    inner: Waker,
    task: u64,
    site: &'static Site,
    /// Of a root that is polled outside of a loop: it parks after each poll.
    parks: Option<&'static Loop>,
    /// The number of the site's kind; 0: not known yet.
    kind: AtomicU32,
    /// `WOKEN` may be lost to a poll that begins or ends just then: the poll that follows from it corrects
    /// what was told meanwhile.
    state: AtomicU8,
    /// Whoever still has a waker may wake a task that is gone.
    ended: AtomicBool,
    parked: AtomicBool,
    /// Tokio's hooks tell of its polls and end.
    hooked: bool,
    /// Nobody can wake it who has no waker of its last poll.
    needs_waker: bool,
}

const WOKEN: u8 = 0;
const POLLED: u8 = 1;
const IDLE: u8 = 2;

impl Wakes {
    #[inline]
    fn tell(&self) {
        self.state.store(WOKEN, Ordering::Relaxed);
        if sys::recording() && !self.ended.load(Ordering::Relaxed) {
            thread::with(|thread| thread.woken.set(thread.woken.get().wrapping_add(1)));
            // SAFETY: a record with one word; recording is on.
            unsafe { (sys::calls().put1)(WAKE, 0, self.task) };
        }
    }

    #[inline]
    fn kind(&self) -> u32 {
        match self.kind.load(Ordering::Relaxed) {
            0 => self.define(),
            kind => kind,
        }
    }

    #[cold]
    fn define(&self) -> u32 {
        // SAFETY: sites stay.
        let kind = unsafe { sys::id(&self.site.kind) };
        self.kind.store(kind, Ordering::Relaxed);
        kind
    }

    #[inline]
    fn begins(&self) {
        match self.parks {
            // SAFETY: recording is on.
            None => unsafe { (sys::calls().poll_begin)(self.kind(), self.task) },
            Some(parks) => self.begins_outside(parks),
        }
    }

    #[cold]
    fn begins_outside(&self, parks: &'static Loop) {
        // SAFETY: loops and sites stay.
        unsafe {
            if self.parked.swap(true, Ordering::Relaxed) {
                sys::tacho_unpark_poll(&parks.0, 1, &self.site.kind, self.task);
            } else {
                sys::tacho_loop(&parks.0);
                sys::tacho_poll_begin(&self.site.kind, self.task);
            }
        }
    }

    #[inline]
    fn ends(&self, result: u32) {
        if result == sys::TACHO_DONE {
            self.ended.store(true, Ordering::Relaxed);
            tell_hook(self.task, self.hooked);
        }
        match self.parks {
            _ if self.hooked => {}
            // SAFETY: it takes a number.
            None => unsafe { sys::tacho_poll_end(result) },
            Some(parks) => Wakes::ends_outside(parks, result),
        }
        self.rests();
    }

    #[cold]
    fn ends_outside(parks: &'static Loop, result: u32) {
        // SAFETY: loops stay; NULL is none.
        unsafe {
            if result == sys::TACHO_PENDING {
                sys::tacho_poll_end_park(result, &parks.0);
            } else {
                sys::tacho_poll_end(result);
                sys::tacho_loop(std::ptr::null());
            }
        }
    }

    /// Its poll has ended, and the task waits.
    #[inline]
    fn rests(&self) {
        if self.state.load(Ordering::Relaxed) == POLLED {
            self.state.store(IDLE, Ordering::Relaxed);
            if self.holders.load(Ordering::Relaxed) == 1 {
                self.is_forsaken(0);
            }
        }
    }

    /// Nobody has a waker but the task, and who drops one now.
    #[cold]
    #[inline(never)]
    fn is_forsaken(&self, frame: usize) {
        // What those did who had one before: they released that.
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

/// One of the holders.
struct Holder(NonNull<Wakes>);

// SAFETY: what is shared may be used by all threads at once, and goes with the last holder.
unsafe impl Send for Holder {}
// SAFETY: as above.
unsafe impl Sync for Holder {}

impl Holder {
    fn new(wakes: Wakes) -> Holder {
        const { assert!(size_of::<Wakes>() == size_of::<Line>()) };
        let at = spare::take().cast::<Wakes>();
        // SAFETY: it is large enough, and nobody else has it.
        unsafe { at.write(wakes) };
        Holder(at)
    }

    /// # Safety
    /// `data` is that of a waker, which is not used any more.
    #[inline]
    unsafe fn of(data: *const ()) -> Holder {
        Holder(NonNull::new_unchecked(data.cast_mut().cast()))
    }

    #[cold]
    #[inline(never)]
    fn free(&mut self) {
        // What the other holders did is done.
        fence(Ordering::Acquire);
        // SAFETY: it was made by `new`, and this was the last holder.
        unsafe {
            self.0.drop_in_place();
            spare::give(self.0.cast());
        }
    }
}

impl Deref for Holder {
    type Target = Wakes;
    #[inline]
    fn deref(&self) -> &Wakes {
        // SAFETY: it is there as long as it has a holder.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Holder {
    #[inline]
    fn drop(&mut self) {
        if self.holders.fetch_sub(1, Ordering::Release) == 1 {
            self.free();
        }
    }
}

static QUIET: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);
/// Of the waker in polls that are looked at; never of one that somebody keeps.
static LOOKING: RawWakerVTable = RawWakerVTable::new(clone_looking, wake, wake_by_ref, drop_waker);

// SAFETY of all: `data` is that of `Wakes` which the waker holds, or which outlives it.
unsafe fn clone(data: *const ()) -> RawWaker {
    // They cannot become too many: that takes centuries.
    (*data.cast::<Wakes>()).holders.fetch_add(1, Ordering::Relaxed);
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
    let wakes = Holder::of(data);
    wakes.tell();
    wakes.inner.wake_by_ref();
}

unsafe fn wake_by_ref(data: *const ()) {
    let wakes = &*data.cast::<Wakes>();
    wakes.tell();
    wakes.inner.wake_by_ref();
}

unsafe fn drop_waker(data: *const ()) {
    let wakes = Holder::of(data);
    // Of two that are dropped at the same moment neither may be the last: then it is not told.
    if wakes.holders.load(Ordering::Relaxed) == 2 && wakes.state.load(Ordering::Relaxed) == IDLE {
        wakes.is_forsaken(thread::with(|thread| thread.poll_frame.get()));
    }
}

/// The end is told: Tokio's hook, which comes next on this thread, need not.
#[inline]
fn tell_hook(task: u64, hooked: bool) {
    #[cfg(tokio_hooks)]
    if !hooked {
        thread::with(|thread| thread.hooked.ended.set(task));
    }
    let _ = (task, hooked);
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
    /// Dropped before the future, whose wakers are then those of a task that has ended.
    told: Told,
    future: F,
}

/// What is told of it, whatever its type.
struct Told {
    /// None before the first poll.
    wakes: Option<Holder>,
    site: &'static Site,
    /// 0: not known before the first poll.
    task: u64,
    #[cfg(tokio_hooks)]
    parent: u64,
    spawn: Spawn,
    hooked: bool,
}

impl<F> Recorded<F> {
    pub(crate) fn new(future: F, site: &'static Site, spawn: Spawn, parent: u64) -> Recorded<F> {
        Recorded { told: Told::new(site, spawn, parent), future }
    }
}

impl Told {
    fn new(site: &'static Site, spawn: Spawn, parent: u64) -> Told {
        let task = match spawn {
            #[cfg(tokio_hooks)]
            Spawn::ByHook => 0,
            _ => crate::own_number(),
        };
        if spawn == Spawn::Told {
            // SAFETY: sites stay.
            unsafe { sys::tacho_task_spawn(task, &site.kind, parent, std::ptr::null()) };
        }
        Told {
            wakes: None,
            site,
            task,
            #[cfg(tokio_hooks)]
            parent,
            spawn,
            hooked: false,
        }
    }

    /// What is known only in the first poll.
    fn first_poll(&mut self, _thread: &Thread) -> Option<&'static Loop> {
        match self.spawn {
            Spawn::Told => None,
            #[cfg(tokio_hooks)]
            Spawn::ByHook => {
                let (hooked, recorded) = _thread.hooked.top();
                self.task = crate::task_id().unwrap_or_else(crate::own_number);
                self.hooked = hooked == self.task && recorded;
                if hooked != self.task {
                    // SAFETY: sites stay.
                    unsafe {
                        let place = std::ptr::null();
                        sys::tacho_task_spawn(self.task, &self.site.kind, self.parent, place);
                    }
                }
                None
            }
            Spawn::Root => {
                let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
                let outside = matches!(flavor, Ok(f) if f != RuntimeFlavor::CurrentThread);
                outside.then(block_on_loop)
            }
        }
    }

    /// What a poll that hands on this waker needs, if it was polled with it before and has not ended.
    #[inline]
    fn known(&self, waker: &Waker) -> Option<NonNull<Wakes>> {
        match &self.wakes {
            Some(wakes) if wakes.inner.will_wake(waker) && !wakes.ended.load(Ordering::Relaxed) => {
                Some(wakes.0)
            }
            _ => None,
        }
    }

    /// The same in the first poll, and in one with another waker than before. None: it has ended.
    #[cold]
    #[inline(never)]
    fn renewed(&mut self, waker: &Waker) -> Option<NonNull<Wakes>> {
        let (parks, parked, needs_waker) = match &self.wakes {
            Some(before) if before.ended.load(Ordering::Relaxed) => return None,
            Some(before) => {
                before.ended.store(true, Ordering::Relaxed);
                // Wakers of the earlier poll, which was another's, may still wake it.
                (before.parks, before.parked.load(Ordering::Relaxed), false)
            }
            // What `block_on` waits for may wait for good, as a `main` that others work for.
            None => (thread::with(|t| self.first_poll(t)), false, self.spawn != Spawn::Root),
        };
        let made = Holder::new(Wakes {
            holders: AtomicUsize::new(1),
            inner: waker.clone(),
            task: self.task,
            site: self.site,
            parks,
            kind: AtomicU32::new(0),
            state: AtomicU8::new(WOKEN),
            ended: AtomicBool::new(false),
            parked: AtomicBool::new(parked),
            hooked: self.hooked,
            needs_waker,
        });
        let wakes = made.0;
        self.wakes = Some(made);
        Some(wakes)
    }

    /// A poll of which nothing is told.
    #[inline]
    fn is_polled_untold(&self) {
        if let Some(wakes) = &self.wakes {
            wakes.state.store(WOKEN, Ordering::Relaxed);
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(wakes) = &self.wakes {
            if wakes.ended.swap(true, Ordering::Relaxed) {
                return;
            }
        }
        // Without a number it was never polled: if a hook told that it was spawned, one tells its end.
        if !self.hooked && self.task != 0 {
            // SAFETY: a number.
            unsafe { sys::tacho_task_end(self.task) };
            tell_hook(self.task, false);
        }
    }
}

/// A poll under way. It ends also where it panics: then the task is over.
struct Polling<'a> {
    wakes: &'a Wakes,
    outer: u64,
    /// 0: it is not looked at.
    outer_frame: usize,
    result: u32,
}

impl Polling<'_> {
    /// The table of the waker that is handed on.
    #[inline]
    fn begin(&mut self) -> &'static RawWakerVTable {
        let frame = std::ptr::from_ref(self) as usize;
        let wakes = self.wakes;
        let looks = thread::with(|thread| {
            thread.counts_poll();
            self.outer = thread.current.replace(wakes.task);
            let looks = thread.may_look();
            if looks {
                self.outer_frame = thread.poll_frame.replace(frame);
            }
            looks
        });
        // Who is polled by another task may be polled for what that waits for.
        let needs_waker = wakes.needs_waker && self.outer == 0;
        wakes.state.store(if needs_waker { POLLED } else { WOKEN }, Ordering::Relaxed);
        if !wakes.hooked {
            wakes.begins();
        }
        if looks {
            &LOOKING
        } else {
            &QUIET
        }
    }
}

impl Drop for Polling<'_> {
    #[inline]
    fn drop(&mut self) {
        thread::with(|thread| {
            thread.current.set(self.outer);
            thread.poll_frame.set(self.outer_frame);
        });
        self.wakes.ends(self.result);
    }
}

impl<F: Future> Future for Recorded<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` stays where it is: it is only handed out pinned, and dropped in place. The
        // rest is not pinned.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        let wakes = match sys::recording() {
            true => this.told.known(cx.waker()).or_else(|| this.told.renewed(cx.waker())),
            false => None,
        };
        let Some(wakes) = wakes else {
            this.told.is_polled_untold();
            return future.poll(cx);
        };
        // SAFETY: `this.told` holds it, and lets go of it in no poll but in `renewed`.
        let wakes_of_it = unsafe { wakes.as_ref() };
        let mut polling =
            Polling { wakes: wakes_of_it, outer: 0, outer_frame: 0, result: sys::TACHO_DONE };
        let raw = RawWaker::new(wakes.as_ptr().cast_const().cast(), polling.begin());
        // SAFETY: it is held longer than by this waker, which does not count itself.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw) });
        let poll = future.poll(&mut Context::from_waker(&waker));
        if poll.is_pending() {
            polling.result = sys::TACHO_PENDING;
        }
        poll
    }
}
