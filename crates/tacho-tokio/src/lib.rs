//! tacho for Tokio: what a runtime's workers and tasks do, in one box with all else that is recorded.
//!
//! ```no_run
//! #[tacho_tokio::main]
//! async fn main() {
//!     tacho_tokio::spawn(async { /* ... */ });
//! }
//! ```
//!
//! or, for a runtime that the program builds itself,
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! let mut builder = tokio::runtime::Builder::new_multi_thread();
//! tacho_tokio::record(builder.enable_all());
//! let runtime = builder.build()?;
//! # Ok(()) }
//! ```
//!
//! Then `tacho dump PID`, `tacho report`. All that the crate `tacho` has is here as well: spans, events,
//! counters, logs.
//! Workers are loops that park and unpark. Tasks that are spawned
//! through this crate tell where they were spawned and by whom, their polls, who wakes them, where they
//! go idle, and their end. With the feature `unstable` and `--cfg tokio_unstable`, Tokio's own hooks
//! tell of every task, but not who wakes it: nobody but the task's waker sees that.
//!
//! COST. A poll is two records, a wake is one, each about 10 ns; a task is at most one allocation. Nothing is
//! locked, nothing allocates in a poll or wake, nothing waits. When recording is off, a poll is one
//! predictable branch more. Nothing here panics, except where Tokio's own function of the same name does.
#![warn(missing_docs)]

#[cfg(task_dumps)]
mod dump;
mod hooks;
mod idle;
mod name;
mod runtime;
mod site;
mod spawn;
mod task;
mod thread;

use tokio::runtime::Builder;

#[cfg(task_dumps)]
pub use dump::dump;
pub use hooks::Options;
pub use spawn::{
    block_on, recorded, spawn, spawn_blocking, spawn_local, spawn_local_on, spawn_on, JoinSetExt,
};
pub use tacho::*;
pub use task::Recorded;

const WARN: u32 = 3;

/// Records what runtimes of this builder do, and starts recording if nobody has. Under `tacho run`, what
/// is recorded goes into the box that is there. Hooks of threads that the program has set on the builder
/// are replaced, which the trace says: [`record_with`] takes them.
pub fn record(builder: &mut Builder) -> &mut Builder {
    record_with(builder, Options::new())
}

/// The same with a name for the runtime, and with the program's own hooks.
pub fn record_with(builder: &mut Builder, options: Options) -> &mut Builder {
    start_recording();
    hooks::attach(builder, options);
    builder
}

/// [`record`] as a method of the builder.
pub trait BuilderExt {
    /// As [`record`].
    fn recorded(&mut self) -> &mut Self;
    /// As [`record_with`].
    fn recorded_with(&mut self, options: Options) -> &mut Self;
}

impl BuilderExt for Builder {
    fn recorded(&mut self) -> &mut Builder {
        record(self)
    }

    fn recorded_with(&mut self, options: Options) -> &mut Builder {
        record_with(self, options)
    }
}

/// Where the box cannot be made, recording stays off, and `tacho_status` says why.
fn start_recording() {
    // SAFETY: the size is that of the structure, whose other bytes may be zero.
    unsafe {
        let mut status: sys::tacho_status_info = std::mem::zeroed();
        status.size = std::mem::size_of_val(&status);
        sys::tacho_status(&mut status);
        if status.state == sys::TACHO_STATE_NEVER {
            sys::tacho_start(std::ptr::null());
        }
    }
}

/// A number that no other task of this process has.
#[inline]
fn own_number() -> u64 {
    // SAFETY: it needs nothing.
    let number = unsafe { sys::tacho_task_new() };
    // Tasks have Tokio's numbers, which begin with 1 as well.
    if cfg!(tokio_hooks) {
        number + 1_000_000_000
    } else {
        number
    }
}

/// The number behind Tokio's id, which only a hasher and a text get to see.
#[cfg(tokio_hooks)]
#[inline]
fn number(id: tokio::task::Id) -> u64 {
    use std::hash::{Hash, Hasher};

    struct Take(u64);
    impl Hasher for Take {
        #[inline]
        fn write_u64(&mut self, number: u64) {
            self.0 = number;
        }
        fn write(&mut self, bytes: &[u8]) {
            for byte in bytes {
                self.0 = self.0 << 8 | u64::from(*byte);
            }
        }
        fn finish(&self) -> u64 {
            self.0
        }
    }
    let mut take = Take(0);
    id.hash(&mut take);
    take.0
}

#[cfg(tokio_hooks)]
fn task_id() -> Option<u64> {
    tokio::task::try_id().map(number)
}

/// What `#[tacho_tokio::main]` makes of a function. Not for programs.
#[doc(hidden)]
pub mod __private {
    use std::future::Future;

    /// `workers` 0: as many as Tokio takes.
    #[track_caller]
    pub fn run<F: Future>(
        current_thread: bool,
        workers: usize,
        name: Option<&str>,
        main: F,
    ) -> F::Output {
        let mut builder = if current_thread {
            tokio::runtime::Builder::new_current_thread()
        } else {
            tokio::runtime::Builder::new_multi_thread()
        };
        if workers != 0 {
            builder.worker_threads(workers);
        }
        let mut options = crate::Options::new();
        if let Some(name) = name {
            options = options.name(name);
        }
        crate::start_recording();
        let owner = crate::hooks::attach(builder.enable_all(), options);
        let runtime = builder.build().expect("Failed building the Runtime");
        // A runtime with one thread runs on this one.
        crate::thread::with(|thread| thread.started_by.set(std::sync::Arc::as_ptr(&owner)));
        let output = crate::block_on(&runtime, main);
        crate::thread::with(|thread| thread.leaves());
        output
    }
}
