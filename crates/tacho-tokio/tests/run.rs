//! Under `tacho run`: what the crate tells and what the hooks see are in one box, and neither tells what the
//! other has told.
mod common;

use std::time::Duration;

use common::scenario;
use tokio::runtime::Builder;

async fn blocks() {
    std::thread::sleep(Duration::from_millis(60));
}

#[test]
fn hooks_and_crate_record_into_one_box() {
    let run = [("TACHO_SCENARIO_RUN", "1")];
    let outcome = scenario("hooks_and_crate_record_into_one_box", &run, || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).enable_all();
        let runtime = tacho_tokio::record(&mut builder).build().expect("a runtime");
        runtime.block_on(async {
            for _ in 0..5 {
                let nap = async { tokio::time::sleep(Duration::from_millis(2)).await };
                tacho_tokio::spawn(nap).await.expect("it ends");
            }
            tacho_tokio::spawn(blocks()).await.expect("it ends");
        });
        drop(runtime);
        vec![]
    });
    let Some(outcome) = outcome else { return };
    outcome.assert_sound();
    assert_eq!(outcome.of_kind("spawn", "run::"), 6);
    let workers = |name: &String| name.starts_with("tokio worker ");
    let of_workers = outcome.events.iter().filter(|e| e.text("thread_name") == "tokio-rt-worker");
    let parks: Vec<_> = of_workers.filter(|e| e.is("park")).collect();
    assert!(!parks.is_empty());
    assert!(parks.iter().all(|e| workers(&e.name("loop").to_owned())), "{:?}", outcome.loops());
    // What the hooks add: the call that blocks the worker, in the poll that makes it.
    let calls: Vec<_> = outcome.events.iter().filter(|e| e.is("call")).collect();
    let sleeps = calls.iter().find(|e| e.name("call").contains("nanosleep"));
    assert!(sleeps.is_some_and(|e| e.0.contains("run::blocks")), "{} calls", calls.len());
    assert!(outcome.report.contains("run::blocks"), "{}", outcome.report);
}
