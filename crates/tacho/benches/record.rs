//! What a call costs, in nanoseconds: the least and the median of blocks that take turns. The same cases
//! as in bench/record.c, and what only this crate has.
//!
//!     cargo bench --bench record                         the recorder that is compiled in
//!     tacho run -- target/release/deps/record-* --bench  that of `tacho run`
use std::hint::black_box;
use tacho::{name, Counter, Event, Kind, Loop, Place, SpanName, Task};

const BLOCKS: usize = 41;

static LOOP: Loop = Loop::new(name!("bench"));
static KIND: Kind = Kind::new(name!("bench_task"));
static SPAN: SpanName = SpanName::new(name!("span"));
static SEEN: Counter = Counter::new(name!("seen", "1"));

#[derive(Event)]
struct TwoNumbers {
    first: i64,
    second: i64,
}

#[derive(Event)]
struct WithText<'a> {
    number: u64,
    text: &'a str,
    absent: Option<u64>,
}

type Case = (&'static str, u32, fn(u64));

/// Name, events in one operation, operation.
const CASES: &[Case] = &[
    ("empty", 1, |_| ()),
    ("poll", 2, |i| drop(Task::from_raw(1 + i % 1024).poll(&KIND))),
    ("wake", 1, |i| Task::from_raw(1 + i % 1024).wake()),
    ("spawn", 1, |i| Task::from_raw(i).spawn(&KIND, None, None)),
    ("spawn, with the caller's place", 1, |i| {
        Task::from_raw(i).spawn(&KIND, None, Place::caller())
    }),
    ("park", 2, |i| {
        LOOP.park();
        LOOP.unpark(i as u32 & 15);
    }),
    ("span", 2, |_| drop(SPAN.enter())),
    ("counter", 1, |i| SEEN.set(i)),
    ("event", 1, |i| TwoNumbers { first: i as i64, second: 7 }.record()),
    ("event with text", 1, |i| {
        WithText { number: i, text: "GET /orders/7", absent: None }.record()
    }),
    ("log", 1, |_| tacho::log(3, "order 7 is late")),
    ("log that is formatted", 1, |i| tacho::log!(3, "order {i} is late")),
];

extern "C" {
    fn clock_gettime(clock: i32, now: *mut [i64; 2]) -> i32;
}

/// What this thread has used, in nanoseconds: what others run meanwhile does not count.
fn cpu_time() -> f64 {
    const CLOCK_THREAD_CPUTIME_ID: i32 = 3;
    let mut now = [0; 2];
    // SAFETY: a timespec is two numbers of 64 bits.
    unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now[0] as f64 * 1e9 + now[1] as f64
}

fn block(operation: fn(u64), count: u64) -> f64 {
    let start = cpu_time();
    for i in 0..count {
        black_box(operation)(black_box(i));
    }
    (cpu_time() - start) / count as f64
}

fn measure(title: &str, count: u64) {
    let mut blocks = vec![Vec::new(); CASES.len()];
    for _ in 0..BLOCKS {
        for (case, found) in CASES.iter().zip(&mut blocks) {
            found.push(block(case.2, count) / f64::from(case.1));
        }
    }
    for (case, found) in CASES.iter().zip(&mut blocks) {
        found.sort_by(f64::total_cmp);
        println!("{title:<4} {:<32} {:6.2} {:6.2}", case.0, found[0], found[BLOCKS / 2]);
    }
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return; // `cargo test` only builds it
    }
    if let Err(why) = tacho::start() {
        eprintln!("record: {why}");
        std::process::exit(1);
    }
    measure("on", 50_000);
    tacho::pause();
    measure("off", 500_000);
}
