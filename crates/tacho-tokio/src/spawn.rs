//! Spawning through this crate: the place, the type of the future, who spawned it.

use std::future::Future;
use std::panic::Location;

use tacho::sys;
use tokio::runtime::{Handle, Runtime};
use tokio::task::{AbortHandle, JoinHandle, JoinSet, LocalSet};

use crate::site::Site;
use crate::task::{Recorded, Spawn};
use crate::thread;

/// What is being spawned: Tokio's hook takes it, and knows so that it is one of ours.
#[cfg(tokio_hooks)]
#[derive(Clone, Copy)]
pub(crate) struct Spawning {
    pub(crate) site: &'static Site,
    pub(crate) parent: u64,
    /// The spawn is in the trace already.
    pub(crate) told: bool,
}

/// Takes back what no hook has taken, also where spawning panics.
#[cfg(tokio_hooks)]
struct TakeBack;

#[cfg(tokio_hooks)]
impl Drop for TakeBack {
    fn drop(&mut self) {
        thread::with(|thread| thread.spawning.set(None));
    }
}

#[cfg(not(tokio_hooks))]
struct TakeBack;

/// The future as it is handed to Tokio, by a function that is `track_caller` to the end: the place is the
/// same to Tokio. `told`: the task gets a number of ours, and its spawn is told here; else Tokio's hook may
/// do that, with its number.
#[track_caller]
fn ready<F>(future: F, told: bool) -> (Recorded<F>, TakeBack) {
    let site = Site::of(Location::caller(), Some(std::any::type_name::<F>()));
    let parent = thread::with(|thread| thread.current.get());
    #[cfg(tokio_hooks)]
    let spawn = {
        let place = Site::of(Location::caller(), None);
        place.tells.store(true, std::sync::atomic::Ordering::Relaxed);
        thread::with(|thread| thread.spawning.set(Some(Spawning { site, parent, told })));
        if told {
            Spawn::Told
        } else {
            Spawn::ByHook
        }
    };
    #[cfg(not(tokio_hooks))]
    let spawn = {
        let _ = told;
        Spawn::Told
    };
    (Recorded::new(future, site, spawn, parent), TakeBack)
}

/// As [`tokio::spawn`]; the task is recorded: where it was spawned and by whom, its polls, who wakes
/// it, where it goes idle, its end.
///
/// # Panics
/// As `tokio::spawn`: outside of a runtime.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (future, _back) = ready(future, false);
    tokio::spawn(future)
}

/// As [`Handle::spawn`].
#[track_caller]
pub fn spawn_on<F>(future: F, handle: &Handle) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (future, _back) = ready(future, false);
    handle.spawn(future)
}

/// As [`tokio::task::spawn_local`].
///
/// # Panics
/// As `tokio::task::spawn_local`: outside of a [`LocalSet`].
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let (future, _back) = ready(future, true);
    tokio::task::spawn_local(future)
}

/// As [`LocalSet::spawn_local`].
#[track_caller]
pub fn spawn_local_on<F>(future: F, set: &LocalSet) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let (future, _back) = ready(future, true);
    set.spawn_local(future)
}

/// The future as one that records itself, for whatever else spawns it: `set.spawn(recorded(future))`.
#[track_caller]
pub fn recorded<F: Future>(future: F) -> Recorded<F> {
    let site = Site::of(Location::caller(), Some(std::any::type_name::<F>()));
    let parent = thread::with(|thread| thread.current.get());
    #[cfg(tokio_hooks)]
    return Recorded::new(future, site, Spawn::ByHook, parent);
    #[cfg(not(tokio_hooks))]
    Recorded::new(future, site, Spawn::Told, parent)
}

/// As [`Runtime::block_on`]; what the future does is recorded as that of a task, and on a runtime with
/// several threads this thread parks while it waits.
#[track_caller]
pub fn block_on<F: Future>(runtime: &Runtime, future: F) -> F::Output {
    let site = Site::of(Location::caller(), Some(std::any::type_name::<F>()));
    runtime.block_on(Recorded::new(future, site, Spawn::Root, 0))
}

/// [`JoinSet`] with tasks that are recorded.
pub trait JoinSetExt<T> {
    /// As [`JoinSet::spawn`].
    #[track_caller]
    fn spawn_recorded<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send;

    /// As [`JoinSet::spawn_on`].
    #[track_caller]
    fn spawn_recorded_on<F>(&mut self, future: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send;

    /// As [`JoinSet::spawn_local`].
    #[track_caller]
    fn spawn_recorded_local<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static;

    /// As [`JoinSet::spawn_blocking`].
    #[track_caller]
    fn spawn_recorded_blocking<F>(&mut self, work: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send;
}

impl<T: 'static> JoinSetExt<T> for JoinSet<T> {
    #[track_caller]
    fn spawn_recorded<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        let (future, _back) = ready(future, false);
        self.spawn(future)
    }

    #[track_caller]
    fn spawn_recorded_on<F>(&mut self, future: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        let (future, _back) = ready(future, false);
        self.spawn_on(future, handle)
    }

    #[track_caller]
    fn spawn_recorded_local<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        let (future, _back) = ready(future, true);
        self.spawn_local(future)
    }

    #[track_caller]
    fn spawn_recorded_blocking<F>(&mut self, work: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        let told = Work::new::<F>();
        self.spawn_blocking(move || told.run(work))
    }
}

/// Work for the blocking pool. It ends also where it panics, and where it never begins because the
/// runtime ends before.
struct Work {
    site: &'static Site,
    number: u64,
}

const WORK_SUBMIT: u32 = 0x4b;
const WORK_BEGIN: u32 = 0x4c;
const WORK_END: u32 = 0x4d;

impl Work {
    #[track_caller]
    fn new<F>() -> Work {
        let site = Site::of(Location::caller(), Some(std::any::type_name::<F>()));
        let work = Work { site, number: crate::own_number() };
        work.tell(WORK_SUBMIT, Some(site));
        work
    }

    fn tell(&self, what: u32, site: Option<&'static Site>) {
        if sys::recording() {
            // SAFETY: sites stay; a record with one word.
            unsafe {
                let kind = site.map_or(0, |site| sys::id(&site.kind));
                (sys::calls().put1)(what, kind, self.number);
            }
        }
    }

    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        self.tell(WORK_BEGIN, Some(self.site));
        work()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.tell(WORK_END, None);
    }
}

/// As [`tokio::task::spawn_blocking`]; how long the work waited for a thread of the pool and how long it
/// took are recorded.
///
/// # Panics
/// As `tokio::task::spawn_blocking`: outside of a runtime.
#[track_caller]
pub fn spawn_blocking<F, R>(work: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let told = Work::new::<F>();
    tokio::task::spawn_blocking(move || told.run(work))
}
