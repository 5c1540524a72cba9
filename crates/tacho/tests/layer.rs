//! What is said through `tracing`.
#![cfg(feature = "tracing")]
mod common;

use common::recorded;
use tracing::{debug, error, info, info_span, trace, warn, Level};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::prelude::*;

#[test]
fn spans_and_events_of_tracing() {
    let Some(events) = recorded("spans_and_events_of_tracing", || {
        tracing_subscriber::registry().with(tacho::layer()).init();
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let outer = info_span!("request", path = "/x", trace_id = text);
        for _ in 0..3 {
            let _entered = outer.enter();
            let inner = info_span!("query", traceparent = tracing::field::Empty, n = 5);
            inner.record("traceparent", tracing::field::debug(text));
            inner.in_scope(|| info!(rows = 7, late = true, who = "ann", "done {}", 1));
        }
        drop(outer);
        error!("one");
        warn!(code = 2.5, "two");
        debug!(target: "elsewhere", "four");
        trace!(only = ?Some(5));
    }) else {
        return;
    };
    let request = "\"class\":\"span\",\"name\":\"request\",\"file\":\"tacho/tests/layer.rs\"";
    let query = "\"name\":\"query\"";
    events.expect(1, &["\"type\":\"async-begin\"", request, "\"parent\":null"]);
    events.expect(1, &["\"type\":\"async-end\"", request]);
    events.expect(3, &["\"type\":\"span-begin\"", request]);
    events.expect(3, &["\"type\":\"span-end\"", request]);
    events.expect(3, &["\"type\":\"async-begin\"", query]);
    events.expect(0, &["\"type\":\"async-begin\"", query, "\"parent\":null"]);
    events.expect(3, &["\"type\":\"async-end\"", query]);
    events.expect(3, &["\"type\":\"span-begin\"", query]);
    events.expect(4, &["\"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\""]);
    let done = "\"level\":3,\"text\":\"layer: done 1 rows=7 late=true who=ann\"";
    events.expect(3, &[done]);
    events.expect(3, &["\"text\":\"query: n=5\""]);
    events.expect(1, &["\"text\":\"request: path=/x trace_id=00-4bf92f35"]);
    events.expect(1, &["\"level\":1,\"text\":\"layer: one\""]);
    events.expect(1, &["\"level\":2,\"text\":\"layer: two code=2.5\""]);
    events.expect(1, &["\"level\":4,\"text\":\"elsewhere: four\""]);
    events.expect(1, &["\"level\":5,\"text\":\"layer: only=Some(5)\""]);
}

#[test]
fn what_is_filtered_is_not_recorded() {
    let Some(events) = recorded("what_is_filtered_is_not_recorded", || {
        let wanted = filter_fn(|metadata| metadata.target() != "noise");
        let layer = tacho::layer().with_max_level(Level::INFO).with_span_fields(false);
        tracing_subscriber::registry().with(layer.with_filter(wanted)).init();
        let noise = info_span!(target: "noise", "unwanted");
        let _noise = noise.enter();
        let wanted = info_span!("wanted", n = 1);
        let _wanted = wanted.enter();
        info!(target: "noise", "no");
        info!("yes");
        debug!("no");
        tracing::debug_span!("deep").in_scope(|| warn!("yes"));
    }) else {
        return;
    };
    events.expect(2, &["\"text\":\"layer: yes\""]);
    events.expect(2, &["\"type\":\"log\""]);
    events.expect(1, &["\"type\":\"async-begin\"", "\"name\":\"wanted\"", "\"parent\":null"]);
    events.expect(1, &["\"type\":\"async-begin\""]);
    events.expect(1, &["\"type\":\"span-begin\""]);
}

/// Each has a registry of its own, which gives the same numbers.
#[test]
fn two_subscribers_of_one_thread() {
    let Some(events) = recorded("two_subscribers_of_one_thread", || {
        use tracing::subscriber::with_default;
        let other = tracing_subscriber::registry().with(tacho::layer());
        let other = tracing::Dispatch::new(other);
        with_default(tracing_subscriber::registry().with(tacho::layer()), || {
            let outer = info_span!("outer").entered();
            let kept = tracing::dispatcher::with_default(&other, || info_span!("kept"));
            drop(outer);
            drop(kept);
        });
    }) else {
        return;
    };
    for name in ["\"name\":\"outer\"", "\"name\":\"kept\""] {
        events.expect(1, &["\"type\":\"async-begin\"", name]);
        events.expect(1, &["\"type\":\"async-end\"", name]);
    }
    events.expect(1, &["\"type\":\"span-end\"", "\"name\":\"outer\""]);
}
