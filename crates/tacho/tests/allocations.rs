//! Recording allocates nothing, once its names are known.
mod common;

use common::{child, if_child, run};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use tacho::{name, Counter, Event, Kind, Loop, Place, SpanName, Task, Text, TraceId};

struct Counting;

thread_local! {
    static MADE: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all is handed on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MADE.set(MADE.get() + 1);
        System.alloc(layout)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        System.dealloc(at, layout)
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static LOOP: Loop = Loop::new(name!("loop"));
static KIND: Kind = Kind::new(name!("kind"));
static SPAN: SpanName = SpanName::new(name!("span"));
static SEEN: Counter = Counter::new(name!("seen", "1"));
static ANSWER: Text = Text::new(name!("an answer"));

#[derive(Event)]
struct Order<'a> {
    id: u64,
    customer: Option<&'a str>,
    text: &'a str,
}

fn say_all(round: u64) {
    LOOP.park();
    LOOP.unpark(1);
    let task = Task::new();
    task.spawn(&KIND, None, Place::caller());
    let poll = task.poll(&KIND);
    let outer = SPAN.begin();
    let span = tacho::span!("inner");
    span.trace_id(TraceId(7));
    SEEN.set(round);
    tacho::gauge!("load", "%", 0.5);
    Order { id: round, customer: Some("ann"), text: "late" }.record();
    tacho::log!(3, "order {round} of {}", "ann");
    drop(span);
    outer.trace_id(TraceId(8));
    task.wait(&ANSWER, 0);
    task.wake();
    poll.done();
    task.end();
    tacho::trigger("late");
    through_tracing(round);
}

#[cfg(feature = "tracing")]
fn through_tracing(round: u64) {
    let span = tracing::info_span!("request", path = "/x", round);
    span.in_scope(|| tracing::info!(round, "done"));
}

#[cfg(not(feature = "tracing"))]
fn through_tracing(_: u64) {}

#[test]
fn nothing_is_allocated_for_an_event() {
    let test = "nothing_is_allocated_for_an_event";
    if_child(test, || {
        #[cfg(feature = "tracing")]
        {
            use tracing_subscriber::prelude::*;
            tracing_subscriber::registry().with(tacho::layer()).init();
        }
        tacho::start().unwrap();
        (0..100).for_each(say_all);
        let before = MADE.get();
        (0..10_000).for_each(say_all);
        assert_eq!(MADE.get() - before, 0);
    });
    let out = run(&mut child(test, &[]));
    assert!(out.status.success(), "{out:?}");
}
