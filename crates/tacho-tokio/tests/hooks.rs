//! With Tokio's hooks: every task, whoever spawned it, and none twice.
#![cfg(tokio_hooks)]
mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use common::scenario;
use tacho_tokio::Options;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

fn several_threads() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    tacho_tokio::record(&mut builder).build().expect("a runtime")
}

async fn yields(times: u32) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

#[test]
fn plain_tasks_are_told_with_their_ids_and_places() {
    let outcome = scenario("plain_tasks_are_told_with_their_ids_and_places", &[], || {
        let runtime = several_threads();
        let mut id = 0;
        runtime.block_on(async {
            for _ in 0..50 {
                let task = tokio::spawn(yields(4));
                id = task.id().to_string().parse().expect("a number");
                task.await.expect("it ends");
            }
        });
        drop(runtime);
        vec![("id", id), ("line", u64::from(line!() - 6))]
    });
    let Some(outcome) = outcome else { return };
    outcome.assert_sound();
    assert_eq!(outcome.count("spawn"), 50);
    assert_eq!(outcome.count("poll-begin"), 50 * 5);
    assert_eq!(outcome.ends(), 50);
    let spawns: Vec<_> = outcome.events.iter().filter(|e| e.is("spawn")).collect();
    assert_eq!(spawns[49].number("task"), Some(outcome.counted("id")));
    assert_eq!(spawns[0].name("kind"), format!("hooks.rs:{}", outcome.counted("line")));
    // Nobody sees who wakes them: nothing is said of it, but that.
    assert_eq!(outcome.count("wake"), 0);
}

#[test]
fn tasks_that_tell_of_themselves_are_not_told_twice() {
    let outcome = scenario("tasks_that_tell_of_themselves_are_not_told_twice", &[], || {
        let runtime = several_threads();
        runtime.block_on(async {
            for _ in 0..20 {
                tacho_tokio::spawn(yields(3)).await.expect("it ends");
                tokio::spawn(tacho_tokio::recorded(yields(3))).await.expect("it ends");
            }
        });
        drop(runtime);
        vec![]
    });
    let Some(outcome) = outcome else { return };
    outcome.assert_sound();
    assert_eq!(outcome.count("spawn"), 40);
    assert_eq!(outcome.count("poll-begin"), 40 * 4);
    assert_eq!(outcome.count("wake"), 40 * 3);
    assert_eq!(outcome.ends(), 40);
    assert_eq!(outcome.of_kind("poll-begin", "hooks::yields"), 20 * 4);
    assert_eq!(outcome.of_kind("wake", "hooks::yields"), 20 * 3);
}

#[track_caller]
fn either(ours: bool, times: u32) -> tokio::task::JoinHandle<()> {
    if ours {
        tacho_tokio::spawn(yields(times))
    } else {
        tokio::spawn(yields(times))
    }
}

#[test]
fn both_may_be_spawned_at_one_place() {
    let outcome = scenario("both_may_be_spawned_at_one_place", &[], || {
        let runtime = several_threads();
        runtime.block_on(async {
            for i in 0..20 {
                either(i % 2 == 0, 3).await.expect("it ends");
            }
        });
        drop(runtime);
        vec![]
    });
    let Some(outcome) = outcome else { return };
    outcome.assert_sound();
    assert_eq!(outcome.count("spawn"), 20);
    assert_eq!(outcome.count("poll-begin"), 20 * 4);
    assert_eq!(outcome.count("wake"), 10 * 3);
    assert_eq!(outcome.ends(), 20);
}

#[test]
fn plain_tasks_that_panic_or_are_cancelled_have_ended() {
    let outcome = scenario("plain_tasks_that_panic_or_are_cancelled_have_ended", &[], || {
        let runtime = several_threads();
        runtime.block_on(async {
            std::panic::set_hook(Box::new(|_| {}));
            assert!(tokio::spawn(async { panic!("as planned") }).await.is_err());
            let (sender, begun) = oneshot::channel();
            let task = tokio::spawn(async move {
                let _ = sender.send(());
                std::future::pending::<()>().await;
            });
            begun.await.expect("it begins");
            task.abort();
            assert!(task.await.is_err());
            // This one ends with the runtime.
            tokio::spawn(std::future::pending::<()>());
            // Work is no task, and has no end.
            tokio::task::spawn_blocking(|| ()).await.expect("it ends");
        });
        drop(runtime);
        vec![]
    });
    let Some(outcome) = outcome else { return };
    outcome.assert_sound();
    assert_eq!(outcome.count("spawn"), 3);
    assert_eq!(outcome.ends(), 3);
}

#[test]
fn what_a_task_spawns_is_its_child() {
    let outcome = scenario("what_a_task_spawns_is_its_child", &[], || {
        let runtime = several_threads();
        runtime.block_on(async {
            let parent = tokio::spawn(async {
                tokio::spawn(yields(1)).await.expect("it ends");
                tacho_tokio::spawn(yields(1)).await.expect("it ends");
            });
            parent.await.expect("it ends");
        });
        drop(runtime);
        vec![]
    });
    let Some(outcome) = outcome else { return };
    let spawns: Vec<_> = outcome.events.iter().filter(|e| e.is("spawn")).collect();
    let parent = spawns[0].number("task");
    assert_eq!(spawns[0].number("parent"), None);
    assert_eq!([spawns[1].number("parent"), spawns[2].number("parent")], [parent, parent]);
}

#[test]
fn runtimes_without_hooks_are_told_by_the_tasks_themselves() {
    let outcome = scenario("runtimes_without_hooks_are_told_by_the_tasks_themselves", &[], || {
        let recorded = several_threads();
        let runtime = Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        runtime.block_on(async {
            for _ in 0..10 {
                tacho_tokio::spawn(yields(2)).await.expect("it ends");
                tokio::spawn(yields(2)).await.expect("it ends");
            }
        });
        drop((runtime, recorded));
        vec![]
    });
    let Some(outcome) = outcome else { return };
    outcome.assert_sound();
    assert_eq!(outcome.count("spawn"), 10);
    assert_eq!(outcome.count("poll-begin"), 10 * 3);
    assert_eq!(outcome.count("wake"), 10 * 2);
    assert_eq!(outcome.ends(), 10);
}

#[test]
fn queues_are_looked_at_and_what_is_not_seen_is_counted() {
    let outcome = scenario("queues_are_looked_at_and_what_is_not_seen_is_counted", &[], || {
        let runtime = several_threads();
        runtime.block_on(async {
            // More than the polls after which the clock is asked.
            tokio::spawn(yields(1000)).await.expect("it ends");
        });
        drop(runtime);
        vec![]
    });
    let Some(outcome) = outcome else { return };
    let depths: Vec<_> = outcome.events.iter().filter(|e| e.is("queue-depth")).collect();
    assert!(depths.iter().any(|e| e.name("loop") == "tokio worker 0"));
    assert!(depths.iter().any(|e| e.name("loop") == "tokio worker 1"));
    let unseen = outcome.events.iter().filter(|e| e.is("counter"));
    let unseen = unseen.filter(|e| e.name("counter").contains("wakes are not seen"));
    assert!(unseen.filter_map(|e| e.number("value")).any(|value| value == 1));
}

#[test]
fn hooks_of_the_program_are_called_too() {
    let outcome = scenario("hooks_of_the_program_are_called_too", &[], || {
        let counts: Arc<[AtomicU64; 4]> = Arc::default();
        let count = |which: usize| {
            let counts = counts.clone();
            move |_: &tokio::runtime::TaskMeta<'_>| {
                counts[which].fetch_add(1, Ordering::SeqCst);
            }
        };
        let options = Options::new()
            .on_task_spawn(count(0))
            .on_before_task_poll(count(1))
            .on_after_task_poll(count(2))
            .on_task_terminate(count(3));
        let mut builder = Builder::new_current_thread();
        let runtime = tacho_tokio::record_with(&mut builder, options).build().expect("a runtime");
        runtime.block_on(async { tokio::spawn(yields(2)).await.expect("it ends") });
        drop(runtime);
        let of = |which: usize| counts[which].load(Ordering::SeqCst);
        vec![("spawns", of(0)), ("before", of(1)), ("after", of(2)), ("ends", of(3))]
    });
    let Some(outcome) = outcome else { return };
    let all = ["spawns", "before", "after", "ends"].map(|what| outcome.counted(what));
    assert_eq!(all, [1, 3, 3, 1]);
    assert_eq!(outcome.count("poll-begin"), 3);
}

#[cfg(task_dumps)]
#[test]
#[ignore = "on a busy machine Tokio's dumps may never end: cargo test -- --ignored"]
fn a_dump_tells_where_idle_tasks_wait() {
    use std::time::Duration;
    let outcome = scenario("a_dump_tells_where_idle_tasks_wait", &[], || {
        let runtime = several_threads();
        let dumped = runtime.block_on(async {
            let waits = tokio::spawn(tokio::time::sleep(Duration::from_secs(600)));
            // Until it was polled once, and has been idle since.
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                // One never ends where a worker did not come within 250 ms, on a busy machine.
                let dump = tacho_tokio::dump(Duration::from_millis(10));
                let dump = tokio::spawn(tokio::time::timeout(Duration::from_secs(2), dump));
                let count = dump.await.expect("it ends").unwrap_or(0);
                if count != 0 {
                    waits.abort();
                    break count;
                }
            }
        });
        drop(runtime);
        vec![("dumped", dumped as u64)]
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(outcome.counted("dumped"), 1);
    let waits: Vec<_> = outcome.events.iter().filter(|e| e.is("task-waits")).collect();
    assert_eq!(waits.len(), 1);
    let spawn = outcome.events.iter().find(|e| e.is("spawn")).expect("a spawn");
    assert_eq!(waits[0].number("task"), spawn.number("task"));
    assert!(waits[0].0.contains("\"frames\":["));
}

#[cfg(feature = "schedule-latency")]
#[test]
fn how_long_a_task_waited_for_its_poll_is_told() {
    let outcome = scenario("how_long_a_task_waited_for_its_poll_is_told", &[], || {
        let mut builder = Builder::new_current_thread();
        let runtime = tacho_tokio::record(&mut builder).build().expect("a runtime");
        runtime.block_on(async {
            let waits = tokio::spawn(async {});
            // It is queued, and the only thread does something else.
            std::thread::sleep(std::time::Duration::from_millis(5));
            waits.await.expect("it ends");
        });
        drop(runtime);
        vec![]
    });
    let Some(outcome) = outcome else { return };
    let told = outcome.events.iter().find(|e| e.is("event")).expect("an event");
    assert!(told.number("latency_ns").is_some_and(|ns| ns >= 5_000_000), "{}", told.0);
}
