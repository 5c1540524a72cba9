//! What this crate knows of the thread that it is called on.

use std::cell::Cell;
use std::ptr;
use std::time::Instant;

use tacho::sys;

use crate::runtime::{Loop, Owner, Runtime};

/// In how many polls a second a thread looks where the task goes idle: in nearly all, or, where there are
/// more than twice as many, in some. One look takes less than half a microsecond where others went idle
/// there before.
const LOOKS_PER_SECOND: u32 = 500;
const SAMPLES_PER_SECOND: u32 = 100;
/// How many stacks a thread may unwind a second, and at most at once. One takes some ten microseconds.
const UNWINDS_PER_SECOND: u32 = 10;
const UNWINDS_AT_ONCE: u32 = 50;
const REFILLS_PER_SECOND: u32 = 10;
/// The clock is asked whether it is time for something once in so many polls.
const POLLS_PER_LOOK: u32 = 64;

/// Tasks that Tokio's hooks say are polled on this thread, one inside the other: their numbers, and
/// whether the hook records the poll.
#[cfg(tokio_hooks)]
const DEEPEST: usize = 4;

pub(crate) struct Thread {
    /// The number of the owner whose hooks said last that the thread works for it; 0: none.
    pub(crate) owner: Cell<u64>,
    /// The owner whose thread this is from its start to its end; it lasts as long.
    pub(crate) started_by: Cell<*const Owner>,
    /// The runtime that it works for, and its loop there.
    pub(crate) runtime: Cell<Option<&'static Runtime>>,
    pub(crate) worker_loop: Cell<Option<&'static Loop>>,
    pub(crate) worker_index: Cell<usize>,
    /// The task that is polled; 0: none.
    pub(crate) current: Cell<u64>,
    /// Tasks that were woken from here since the thread parked.
    pub(crate) woken: Cell<u32>,
    /// What is being spawned through this crate.
    #[cfg(tokio_hooks)]
    pub(crate) spawning: Cell<Option<crate::spawn::Spawning>>,
    #[cfg(tokio_hooks)]
    pub(crate) hooked: Hooked,
    #[cfg(tokio_hooks)]
    pub(crate) stolen: Cell<u64>,
    pub(crate) parks: Cell<u32>,
    polls: Cell<u32>,
    polls_before: Cell<u32>,
    looks: Cell<u32>,
    unwinds: Cell<u32>,
    /// Where the frame of the poll is that is looked at.
    pub(crate) poll_frame: Cell<usize>,
    refilled: Cell<Option<Instant>>,
}

#[cfg(tokio_hooks)]
pub(crate) struct Hooked {
    tasks: [Cell<(u64, bool)>; DEEPEST],
    depth: Cell<usize>,
    /// The task that said last that it has ended.
    pub(crate) ended: Cell<u64>,
}

#[cfg(tokio_hooks)]
impl Hooked {
    const fn new() -> Hooked {
        #[allow(clippy::declare_interior_mutable_const)]
        const NONE: Cell<(u64, bool)> = Cell::new((0, false));
        Hooked { tasks: [NONE; DEEPEST], depth: Cell::new(0), ended: Cell::new(0) }
    }

    #[inline]
    pub(crate) fn push(&self, task: u64, recorded: bool) {
        let depth = self.depth.get();
        if depth < DEEPEST {
            self.tasks[depth].set((task, recorded));
        }
        self.depth.set(depth + 1);
    }

    /// The task that is polled innermost; 0: none.
    #[inline]
    pub(crate) fn top(&self) -> (u64, bool) {
        match self.depth.get() {
            depth @ 1..=DEEPEST => self.tasks[depth - 1].get(),
            _ => (0, false),
        }
    }

    /// Its poll ends: whether the hook has recorded it. Not, if it began when recording was off.
    #[inline]
    pub(crate) fn pop(&self, task: u64) -> bool {
        let depth = self.depth.get();
        let (top, recorded) = self.top();
        if depth > DEEPEST || top == task {
            self.depth.set(depth - 1);
        }
        top == task && recorded
    }
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            owner: Cell::new(0),
            started_by: Cell::new(ptr::null()),
            runtime: Cell::new(None),
            worker_loop: Cell::new(None),
            worker_index: Cell::new(usize::MAX),
            current: Cell::new(0),
            woken: Cell::new(0),
            #[cfg(tokio_hooks)]
            spawning: Cell::new(None),
            #[cfg(tokio_hooks)]
            hooked: Hooked::new(),
            #[cfg(tokio_hooks)]
            stolen: Cell::new(0),
            parks: Cell::new(0),
            polls: Cell::new(0),
            polls_before: Cell::new(0),
            looks: Cell::new(0),
            unwinds: Cell::new(UNWINDS_AT_ONCE),
            poll_frame: Cell::new(0),
            refilled: Cell::new(None),
        }
    };
}

/// It has no destructor, so it is there as long as the thread is.
#[inline(always)]
pub(crate) fn with<R>(f: impl FnOnce(&Thread) -> R) -> R {
    THREAD.with(f)
}

/// How many polls may be looked at now, of which so many were left when the last `polls` began, in `ms`. What a
/// second allows may be used at once: the poll after which a task is never woken comes in a burst as likely
/// as in a pause.
fn looks_after(left: u32, polls: u64, ms: u64) -> u32 {
    let ms = ms.clamp(1, 1000);
    let many = polls * 1000 / ms > u64::from(2 * LOOKS_PER_SECOND);
    let rate = if many { SAMPLES_PER_SECOND } else { LOOKS_PER_SECOND };
    (left + (u64::from(rate) * ms / 1000) as u32).min(rate)
}

impl Thread {
    /// A poll begins. Once in a while it is time to look at what needs the clock.
    #[inline]
    pub(crate) fn counts_poll(&self) {
        let polls = self.polls.get().wrapping_add(1);
        self.polls.set(polls);
        if polls % POLLS_PER_LOOK == 1 {
            self.look();
        }
    }

    #[cold]
    fn look(&self) {
        // SAFETY: see there.
        if let (None, Some(owner)) =
            (self.worker_loop.get(), unsafe { self.started_by.get().as_ref() })
        {
            owner.knows(self);
        }
        match (self.runtime.get(), self.worker_loop.get()) {
            (Some(runtime), Some(worker_loop)) => runtime.look(self, worker_loop),
            _ => self.refill(Instant::now()),
        }
    }

    /// Whether it is looked where the task goes idle in this poll.
    #[inline]
    pub(crate) fn may_look(&self) -> bool {
        self.looks.get() != 0
    }

    pub(crate) fn looked(&self) {
        self.looks.set(self.looks.get().saturating_sub(1));
    }

    /// Whether a stack may be unwound: then it is counted.
    pub(crate) fn may_unwind(&self) -> bool {
        let left = self.unwinds.get();
        self.unwinds.set(left.saturating_sub(1));
        left != 0
    }

    /// Makes new looks possible, where some time has passed since the last time.
    pub(crate) fn refill(&self, now: Instant) {
        const EACH_MS: u64 = 1000 / REFILLS_PER_SECOND as u64;
        let before = self.refilled.get();
        let ms = before.map_or(1000, |before| now.duration_since(before).as_millis() as u64);
        if ms < EACH_MS {
            return;
        }
        let polls = u64::from(self.polls.get().wrapping_sub(self.polls_before.get()));
        let unwinds = self.unwinds.get() + UNWINDS_PER_SECOND / REFILLS_PER_SECOND;
        self.refilled.set(Some(now));
        self.polls_before.set(self.polls.get());
        self.looks.set(looks_after(self.looks.get(), polls, ms));
        self.unwinds.set(unwinds.min(UNWINDS_AT_ONCE));
    }

    /// The thread works for no runtime any more.
    pub(crate) fn leaves(&self) {
        self.owner.set(0);
        self.started_by.set(ptr::null());
        self.runtime.set(None);
        self.worker_index.set(usize::MAX);
        if self.worker_loop.take().is_some() {
            // SAFETY: NULL is allowed.
            unsafe { sys::tacho_loop(ptr::null()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_what_a_second_allows_is_looked_at_whole() {
        assert_eq!(looks_after(0, 1, 1000), LOOKS_PER_SECOND);
        // What was not needed is kept, and no more than a second allows.
        assert_eq!(looks_after(400, 20, 100), 450);
        assert_eq!(looks_after(480, 20, 100), LOOKS_PER_SECOND);
        assert_eq!(looks_after(480, 20, 60_000), LOOKS_PER_SECOND);
    }

    #[test]
    fn of_many_polls_some_are_looked_at() {
        assert_eq!(looks_after(0, 1000, 100), SAMPLES_PER_SECOND / 10);
        assert_eq!(looks_after(400, 1000, 100), SAMPLES_PER_SECOND);
    }
}
