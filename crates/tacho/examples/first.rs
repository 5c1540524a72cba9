//! Most of what a program can say. Writes its window to the file that is named, to be read with
//! `tacho report` and `tacho cat`:
//!
//!     cargo run --example first -- window.tacho
use std::fs::File;
use tacho::{name, Counter, Event, SpanName};

static SENT: Counter = Counter::new(name!("sent", "bytes"));
static REQUEST: SpanName = SpanName::new(name!("request"));

#[derive(Event)]
struct Order<'a> {
    id: u64,
    customer: Option<&'a str>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A program that cannot be recorded runs on.
    if let Err(why) = tacho::Options::new().service("shop").max_bytes(64 << 20).start() {
        eprintln!("not recorded: {why}");
    }
    tacho::panic_hook(); // a panic is in the trace, and triggers

    let request = REQUEST.begin(); // ends where it is dropped, on any thread
    request.trace_id("4bf92f3577b34da6a3ce929d0e0e4736".parse()?);
    {
        let _parse = tacho::span!("parse"); // until the end of the block
        SENT.set(1234);
        tacho::gauge!("load", "%", 12.5);
        Order { id: 7, customer: Some("ann") }.record();
        tacho::log!(3, "order {} is late", 7);
    }
    drop(request);
    tacho::trigger("an order was late"); // an agent that watches keeps the window

    if let Some(path) = std::env::args_os().nth(1) {
        tacho::snapshot(&mut File::create(path)?)?; // to any writer
    }
    Ok(())
}
