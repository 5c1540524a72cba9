//! Loops and tasks: what a runtime of one's own says. `tacho-tokio` says it for Tokio.
use crate::name::{Kind, Loop, Place, Text};
use crate::sys;
use core::marker::PhantomData;
use core::ptr;

impl Loop {
    /// This thread runs the loop from now on. Not needed where it parks.
    #[inline]
    pub fn run_here(&'static self) {
        // SAFETY: it is static.
        unsafe { sys::tacho_loop(self.as_raw()) }
    }

    /// This thread runs no loop any more.
    #[inline]
    pub fn leave() {
        // SAFETY: NULL is none.
        unsafe { sys::tacho_loop(ptr::null()) }
    }

    /// The thread is about to wait for events on behalf of this loop.
    #[inline]
    pub fn park(&'static self) {
        // SAFETY: it is static.
        unsafe { sys::tacho_park(self.as_raw()) }
    }

    /// It is back, with `ready` events, tasks or wakes to handle; 0: a time-out, or nothing.
    #[inline]
    pub fn unpark(&'static self, ready: u32) {
        // SAFETY: it is static.
        unsafe { sys::tacho_unpark(self.as_raw(), ready) }
    }

    /// How many tasks are queued for this loop now.
    #[inline]
    pub fn queue_depth(&'static self, depth: u64) {
        // SAFETY: it is static.
        unsafe { sys::tacho_queue_depth(self.as_raw(), depth) }
    }

    /// This loop took tasks from `victim`.
    #[inline]
    pub fn steal(&'static self, victim: &'static Loop, tasks: u64) {
        // SAFETY: both are static.
        unsafe { sys::tacho_steal(self.as_raw(), victim.as_raw(), tasks) }
    }
}

/// A task: a piece of work that is begun, suspended and resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task(u64);

impl Task {
    /// A number that this process never uses twice, also while recording is off.
    #[allow(clippy::new_without_default)] // each is another one
    #[inline]
    pub fn new() -> Self {
        // SAFETY: it takes nothing.
        Task(unsafe { sys::tacho_task_new() })
    }

    /// A number that the program chooses, such as an address: between spawn and end it is this task's.
    pub const fn from_raw(number: u64) -> Self {
        Task(number)
    }

    /// The number.
    pub const fn as_raw(self) -> u64 {
        self.0
    }

    /// The task was made, by `parent` and at `place`, where they are known.
    #[inline]
    pub fn spawn(self, kind: &'static Kind, parent: Option<Task>, place: Option<&'static Place>) {
        let place = place.map_or(ptr::null(), Place::as_raw);
        // SAFETY: names are static.
        unsafe {
            sys::tacho_task_spawn(self.0, kind.as_raw(), parent.map_or(0, Task::as_raw), place)
        }
    }

    /// The thread runs the task until what is returned is dropped.
    #[inline]
    pub fn poll(self, kind: &'static Kind) -> Poll {
        // SAFETY: it is static.
        unsafe { sys::tacho_poll_begin(kind.as_raw(), self.0) };
        Poll { result: sys::TACHO_PENDING, here: PhantomData }
    }

    /// The task can go on. Who woke it is what this thread is doing now.
    #[inline]
    pub fn wake(self) {
        // SAFETY: there is only a number.
        unsafe { sys::tacho_wake(self.0) }
    }

    /// The task is about to be suspended, and waits for `what`; `resource`: an address, a descriptor
    /// or an id of the program's, or 0.
    #[inline]
    pub fn wait(self, what: &'static Text, resource: u64) {
        // SAFETY: it is static.
        unsafe { sys::tacho_task_waits(self.0, what.as_raw(), resource, 0) }
    }

    /// The task has ended.
    #[inline]
    pub fn end(self) {
        // SAFETY: there is only a number.
        unsafe { sys::tacho_task_end(self.0) }
    }
}

/// A poll, which ends when this is dropped: [`Task::poll`].
#[must_use = "the poll ends when this is dropped"]
pub struct Poll {
    result: u32,
    here: PhantomData<*const ()>,
}

impl Poll {
    /// The task has finished; without this, it will be polled again.
    #[inline]
    pub fn done(mut self) {
        self.result = sys::TACHO_DONE;
    }
}

impl Drop for Poll {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: there is only a number.
        unsafe { sys::tacho_poll_end(self.result) }
    }
}
