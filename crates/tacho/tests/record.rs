//! What is recorded is what was said.
mod common;

use common::recorded;
use std::borrow::Cow;
use tacho::{
    name, Counter, Event, Gauge, Kind, Loop, Place, SpanName, Task, Text, TraceId, Value,
    ValueType, Values,
};

const LONG: &str = include_str!("record.rs");
const HERE: &str = "\"file\":\"tacho/tests/record.rs\"";

#[test]
fn loops_and_tasks() {
    static MAIN: Loop = Loop::new(name!("main"));
    static OTHER: Loop = Loop::new(name!("other"));
    static JOB: Kind = Kind::new(name!("job"));
    static ANSWER: Text = Text::new(name!("an answer"));
    let Some(events) = recorded("loops_and_tasks", || {
        MAIN.run_here();
        MAIN.park();
        MAIN.unpark(3);
        MAIN.queue_depth(4);
        MAIN.steal(&OTHER, 2);
        let parent = Task::from_raw(1 << 40);
        let task = Task::from_raw(77);
        task.spawn(&JOB, Some(parent), Some(tacho::place!()));
        drop(task.poll(&JOB));
        task.wait(&ANSWER, 5);
        task.wake();
        task.poll(&JOB).done();
        task.end();
        Loop::leave();
    }) else {
        return;
    };
    let job = "\"name\":\"job\"";
    events.expect(1, &["\"type\":\"park\"", "\"name\":\"main\"", HERE]);
    events.expect(1, &["\"type\":\"unpark\"", "\"ready\":3"]);
    events.expect(1, &["\"type\":\"queue-depth\"", "\"depth\":4"]);
    events.expect(1, &["\"type\":\"steal\"", "\"name\":\"other\"", "\"tasks\":2"]);
    events.expect(1, &["\"type\":\"spawn\"", job, "\"task\":77", "\"parent\":1099511627776"]);
    events.expect(1, &["\"type\":\"spawn\"", "\"class\":\"place\",\"name\":\"record\""]);
    events.expect(2, &["\"type\":\"poll-begin\"", job, "\"task\":77"]);
    events.expect(1, &["\"type\":\"poll-end\"", "\"result\":\"pending\""]);
    events.expect(1, &["\"type\":\"poll-end\"", "\"result\":\"done\""]);
    events.expect(1, &["\"type\":\"task-waits\"", "\"name\":\"an answer\"", "\"resource\":5"]);
    events.expect(1, &["\"type\":\"wake\"", "\"task\":77"]);
    events.expect(1, &["\"type\":\"task-end\"", "\"task\":77"]);
}

#[test]
fn spans_with_trace_ids() {
    static OUTER: SpanName = SpanName::new(name!("outer"));
    static BY_ID: SpanName = SpanName::new(name!("by id"));
    let Some(events) = recorded("spans_with_trace_ids", || {
        let outer = OUTER.begin();
        outer.trace_id("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap());
        let child = outer.child(&OUTER);
        std::thread::spawn(move || drop(child)).join().unwrap();
        for _ in 0..3 {
            let inner = tacho::span!("inner");
            inner.trace_id(TraceId(7));
        }
        assert_ne!(outer.id(), 0);
        BY_ID.begin_id(1 << 50, Some(outer.id()));
        TraceId(9).set(1 << 50);
        BY_ID.end_id(1 << 50);
    }) else {
        return;
    };
    events.expect(2, &["\"type\":\"async-begin\"", "\"name\":\"outer\"", HERE]);
    events.expect(1, &["\"type\":\"async-begin\"", "\"parent\":null"]);
    events.expect(2, &["\"type\":\"async-end\"", "\"name\":\"outer\""]);
    events.expect(1, &["\"type\":\"trace-id\"", "4bf92f3577b34da6a3ce929d0e0e4736"]);
    events.expect(3, &["\"type\":\"span-begin\"", "\"name\":\"inner\""]);
    events.expect(3, &["\"type\":\"span-end\"", "\"name\":\"inner\""]);
    let by_id = "\"span_id\":1125899906842624";
    events.expect(1, &["\"type\":\"async-begin\"", "\"name\":\"by id\"", by_id, "\"parent\":1"]);
    events.expect(1, &["\"type\":\"async-end\"", "\"name\":\"by id\"", by_id]);
    events.expect(1, &["\"trace_id\":\"00000000000000000000000000000009\"", by_id]);
    events.expect(3, &["\"trace_id\":\"00000000000000000000000000000007\"", "\"span_id\":null"]);
}

#[test]
fn counters_gauges_and_logs() {
    static SENT: Counter = Counter::new(name!("sent", "bytes"));
    let Some(events) = recorded("counters_gauges_and_logs", || {
        SENT.set(1);
        SENT.set(1 << 40);
        tacho::counter!("seen", "requests", 9);
        tacho::gauge!("load", "%", 12.5);
        Gauge::leak("at run time", "K").set(-3.25);
        tacho::log(200, "plain");
        tacho::log!(3, "order {} of {:?}", 7, "ann");
        tacho::log(1, &"x".repeat(600));
        tacho::log(2, "until\0here");
        tacho::log(4, "");
    }) else {
        return;
    };
    let sent = "\"name\":\"sent\"";
    events.expect(1, &[sent, "\"unit\":\"bytes\"", "\"value\":1}"]);
    events.expect(1, &[sent, "\"value\":1099511627776}"]);
    events.expect(1, &["\"name\":\"seen\"", "\"unit\":\"requests\"", "\"value\":9}"]);
    events.expect(1, &["\"class\":\"gauge\"", "\"name\":\"load\"", "\"value\":12.5}"]);
    events.expect(1, &["\"name\":\"at run time\"", "\"unit\":\"K\"", "\"value\":-3.25}"]);
    events.expect(1, &["\"level\":200,\"text\":\"plain\""]);
    events.expect(1, &["\"level\":3,\"text\":\"order 7 of \\\"ann\\\"\""]);
    let cut = format!("\"level\":1,\"text\":\"{}\",\"cut\":true", "x".repeat(512));
    events.expect(1, &[&cut]);
    events.expect(1, &["\"level\":2,\"text\":\"until\""]);
    events.expect(1, &["\"level\":4,\"text\":\"\""]);
}

#[derive(Event)]
struct Every<'a> {
    unsigned: u64,
    small: u8,
    signed: i64,
    float: f64,
    half: f32,
    yes: bool,
    text: &'a str,
    owned: String,
    cow: Cow<'a, str>,
    maybe: Option<u32>,
    maybe_text: Option<&'a str>,
    of_ref: &'a Option<i16>,
}

#[derive(Event)]
#[tacho(name = "order_done")]
pub(crate) struct Renamed<'a, 'b: 'a>
where
    'b: 'a,
{
    pub r#type: &'a str,
    #[tacho(skip)]
    #[allow(dead_code)]
    pub(crate) left_out: Vec<&'b fn(u8) -> u8>,
    #[allow(dead_code)]
    last: u8,
}

#[test]
fn events_with_typed_fields() {
    let all = |maybe, text| Every {
        unsigned: u64::MAX,
        small: 200,
        signed: i64::MIN,
        float: 0.25,
        half: 0.5,
        yes: true,
        text: "a \"text\"",
        owned: "é".repeat(300),
        cow: Cow::Borrowed("cow"),
        maybe,
        maybe_text: text,
        of_ref: &Some(-5),
    };
    let Some(events) = recorded("events_with_typed_fields", || {
        all(Some(7), Some("there")).record();
        all(None, None).record();
        all(Some(7), None).record();
        for last in 0..100 {
            Renamed { r#type: "t", left_out: vec![], last }.record();
        }
    }) else {
        return;
    };
    let first = concat!(
        "\"fields\":{\"unsigned\":\"18446744073709551615\",\"small\":200,",
        "\"signed\":\"-9223372036854775808\",\"float\":0.25,\"half\":0.5,\"yes\":true,",
        "\"text\":\"a \\\"text\\\"\",",
    );
    events.expect(3, &["\"class\":\"schema\",\"name\":\"Every\"", first]);
    events.expect(3, &[first, &"é".repeat(200)]);
    events
        .expect(1, &[first, "\"cow\":\"cow\",\"maybe\":7,\"maybe_text\":\"there\",\"of_ref\":-5"]);
    events.expect(1, &[first, "\"cow\":\"cow\",\"of_ref\":-5"]);
    events.expect(1, &[first, "\"cow\":\"cow\",\"maybe\":7,\"of_ref\":-5"]);
    events.expect(100, &["\"name\":\"order_done\"", "\"fields\":{\"type\":\"t\",\"last\":"]);
}

/// A record has 1 KiB: what is too long for it is cut, and the fields that follow are there.
#[test]
fn events_that_are_too_long_are_cut() {
    #[derive(Event)]
    struct Long<'a> {
        a: &'a str,
        b: &'a str,
        c: &'a str,
        last: u64,
    }
    let Some(events) = recorded("events_that_are_too_long_are_cut", || {
        let long = "x".repeat(5000);
        Long { a: &long, b: &long, c: &long, last: 9 }.record();
    }) else {
        return;
    };
    events.expect(1, &["\"name\":\"Long\"", &"x".repeat(512), "\"last\":9"]);
}

/// A value that puts more than one: there is room for 16, and nothing is stored beyond it.
#[test]
fn values_that_are_too_many_are_left_out() {
    struct Many(&'static str);
    impl Value for Many {
        const TYPE: ValueType = <u64 as Value>::TYPE;
        fn put(&self, values: &mut Values) {
            for _ in 0..200 {
                self.0.put(values);
                None::<u64>.put(values);
                7u64.put(values);
            }
        }
    }
    #[derive(Event)]
    struct Odd {
        many: Many,
    }
    let Some(events) = recorded("values_that_are_too_many_are_left_out", || {
        Odd { many: Many(LONG) }.record();
        tacho::log(1, "alive");
    }) else {
        return;
    };
    events.expect(1, &["\"text\":\"alive\""]);
}

#[track_caller]
fn spawned(kind: &'static Kind) {
    Task::new().spawn(kind, None, Place::caller());
}

#[test]
fn places_of_callers_are_found_again() {
    static JOB: Kind = Kind::new(name!("job"));
    let first = line!() + 3;
    let Some(events) = recorded("places_of_callers_are_found_again", || {
        for _ in 0..1000 {
            spawned(&JOB);
            spawned(&JOB);
        }
        // Few definitions: a place is one however often it is used.
        assert!(tacho::Status::get().definitions < 50);
    }) else {
        return;
    };
    for line in [first, first + 1] {
        let line = format!("\"file\":\"tacho/tests/record.rs\",\"line\":{line}}}");
        events.expect(1000, &["\"type\":\"spawn\"", "\"class\":\"place\"", &line]);
    }
}

#[test]
fn threads_that_end_are_all_in_the_trace() {
    static SEEN: Counter = Counter::new(name!("seen", "1"));
    let Some(events) = recorded("threads_that_end_are_all_in_the_trace", || {
        for round in 0..10 {
            let threads: Vec<_> = (0..10)
                .map(|i| std::thread::spawn(move || (0..50).for_each(|_| SEEN.set(round * 10 + i))))
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    }) else {
        return;
    };
    events.expect(5000, &["\"name\":\"seen\""]);
    for number in 0..100 {
        events.expect(50, &["\"name\":\"seen\"", &format!("\"value\":{number}}}")]);
    }
}
