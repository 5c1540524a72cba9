//! The flight recorder for asynchronous programs: recording from Rust.
//!
//! A process that records maps one file on tmpfs, its box, and its threads store records into it: about
//! 10 ns each, without a system call, a lock or an allocation. The window of the last seconds can be
//! taken at any time from outside (`tacho dump PID`), from inside ([`snapshot`]), by the crash handler,
//! and after the process is gone (`tacho recover`); `tacho report` then says what kept it waiting.
//!
//! ```
//! # use tacho::{name, Counter, Event};
//! static SENT: Counter = Counter::new(name!("sent", "bytes"));
//!
//! #[derive(Event)]
//! struct Order<'a> {
//!     id: u64,
//!     customer: Option<&'a str>,
//! }
//!
//! if let Err(why) = tacho::start() {
//!     eprintln!("not recorded: {why}");
//! }
//! tacho::panic_hook();
//! {
//!     let _span = tacho::span!("parse");
//!     SENT.set(1234);
//!     Order { id: 7, customer: None }.record();
//!     tacho::log!(3, "order {} is late", 7);
//! }
//! ```
//!
//! For Tokio there is the crate `tacho-tokio`, which records workers, tasks, polls and wakes.
//!
//! # Cost and safety
//!
//! While recording is off, a call is a load and a predictable branch. Nothing here panics, blocks, or
//! allocates for each event. What finds no room is counted, and the trace says so. After a fork the
//! child records into a box of its own.
//!
//! # One box
//!
//! The recorder is compiled into the program. Under `tacho run`, or with a `libtacho.so` in the process,
//! that one is used instead, so that what the program says and what the hooks see are in one box.
//!
//! # Features
//!
//! - `tracing`: `tacho::layer()`, a layer for `tracing-subscriber`.
//!
//! # Other systems
//!
//! The recorder needs Linux with glibc on x86-64 or arm64. Elsewhere the crate compiles, every call is
//! nothing, and [`start`] says so.
//!
//! The crate needs Rust 1.77 or newer, and a C compiler.
#![warn(missing_docs)]

extern crate self as tacho; // for what the derive makes

#[cfg(not(tacho_recorder))]
mod absent;
mod control;
mod event;
#[cfg(feature = "tracing")]
mod layer;
mod log;
mod name;
mod once;
mod panic;
mod span;
pub mod sys;
mod system;
mod task;
mod text;

pub use control::*;
pub use event::{Event, Value, ValueType, Values};
#[cfg(feature = "tracing")]
pub use layer::{layer, Layer};
pub use log::log;
pub use name::{Counter, Gauge, Kind, Loop, Name, Place, SpanName, Text};
pub use panic::panic_hook;
pub use span::{AsyncSpan, NoTraceId, Span, TraceId};
pub use tacho_macros::{main, Event};
pub use task::{Poll, Task};

#[doc(hidden)]
pub use event::{Field as __Field, Schema as __Schema};
#[doc(hidden)]
pub use log::__log;
