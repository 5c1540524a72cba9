//! What is in the trace is what happened: spawns, polls, wakes and ends as the program counted them.
mod common;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use common::{scenario, Counted};
use tacho_tokio::{JoinSetExt, Options};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, LocalSet};

static POLLS: AtomicU64 = AtomicU64::new(0);
static WAKES: AtomicU64 = AtomicU64::new(0);
static SPAWNS: AtomicU64 = AtomicU64::new(0);

fn counted() -> Counted {
    let of = |what: &AtomicU64| what.load(Ordering::SeqCst);
    vec![("polls", of(&POLLS)), ("wakes", of(&WAKES)), ("spawns", of(&SPAWNS))]
}

/// Wakes itself so many times, and counts what it does.
struct Busy(u32);

impl Future for Busy {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        POLLS.fetch_add(1, Ordering::SeqCst);
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        WAKES.fetch_add(1, Ordering::SeqCst);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

fn spawned() {
    SPAWNS.fetch_add(1, Ordering::SeqCst);
}

fn several_threads() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    tacho_tokio::record(&mut builder).build().expect("a runtime")
}

fn one_thread() -> Runtime {
    let mut builder = Builder::new_current_thread();
    tacho_tokio::record(builder.enable_all()).build().expect("a runtime")
}

/// A runtime of that name, and how often its threads parked.
fn counts_parks(name: &str, mut builder: Builder) -> (Builder, Arc<AtomicU64>) {
    let parks = Arc::new(AtomicU64::new(0));
    let counts = parks.clone();
    let options = Options::new().name(name).on_thread_park(move || {
        counts.fetch_add(1, Ordering::SeqCst);
    });
    tacho_tokio::record_with(builder.enable_all(), options);
    (builder, parks)
}

/// A nap may be over before it begins, where the machine is busy: as many as it takes.
async fn until_parked(parks: Arc<AtomicU64>) {
    while parks.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

fn assert_counts(outcome: &common::Outcome) {
    outcome.assert_sound();
    assert_eq!(outcome.count("spawn"), outcome.counted("spawns"));
    assert_eq!(outcome.count("poll-begin"), outcome.counted("polls"));
    assert_eq!(outcome.count("poll-end"), outcome.counted("polls"));
    assert_eq!(outcome.count("wake"), outcome.counted("wakes"));
    assert_eq!(outcome.ends(), outcome.counted("spawns"));
}

#[test]
fn counts_are_those_of_the_program() {
    let outcome = scenario("counts_are_those_of_the_program", &[], || {
        let runtime = several_threads();
        runtime.block_on(async {
            let mut all = Vec::new();
            for i in 0..200 {
                spawned();
                all.push(tacho_tokio::spawn(Busy(i % 7)));
            }
            for task in all {
                task.await.expect("it ends");
            }
        });
        drop(runtime);
        counted()
    });
    let Some(outcome) = outcome else { return };
    assert_counts(&outcome);
    assert!(outcome.loops().iter().all(|name| name.starts_with("tokio worker ")));
    let spawn = outcome.events.iter().find(|e| e.is("spawn")).expect("a spawn");
    assert_eq!(spawn.name("kind"), "tasks::Busy");
    assert!(spawn.0.contains("tests/tasks.rs"), "{}", spawn.0);
}

#[test]
fn one_thread_runs_all() {
    let outcome = scenario("one_thread_runs_all", &[], || {
        let (mut builder, parks) = counts_parks("one", Builder::new_current_thread());
        let runtime = builder.build().expect("a runtime");
        runtime.block_on(async {
            let mut set = JoinSet::new();
            for i in 0..50 {
                spawned();
                set.spawn_recorded(Busy(i % 5));
            }
            while set.join_next().await.is_some() {}
            until_parked(parks).await;
        });
        drop(runtime);
        counted()
    });
    let Some(outcome) = outcome else { return };
    assert_counts(&outcome);
    assert_eq!(outcome.loops(), ["one"]);
}

#[test]
fn local_tasks_are_told_too() {
    let outcome = scenario("local_tasks_are_told_too", &[], || {
        let runtime = one_thread();
        let local = LocalSet::new();
        local.block_on(&runtime, async {
            let not_send = std::rc::Rc::new(());
            for _ in 0..20 {
                spawned();
                let inner = not_send.clone();
                let task = tacho_tokio::spawn_local(async move {
                    Busy(3).await;
                    drop(inner);
                });
                task.await.expect("it ends");
            }
            spawned();
            let mut set = JoinSet::new();
            set.spawn_recorded_local(Busy(1));
            set.join_next().await;
        });
        drop((local, runtime));
        counted()
    });
    let Some(outcome) = outcome else { return };
    assert_counts(&outcome);
    assert_eq!(outcome.of_kind("poll-begin", "local_tasks_are_told_too"), 20 * 4);
}

#[test]
fn a_task_that_panics_has_ended() {
    let outcome = scenario("a_task_that_panics_has_ended", &[], || {
        let runtime = several_threads();
        runtime.block_on(async {
            std::panic::set_hook(Box::new(|_| {}));
            spawned();
            let task = tacho_tokio::spawn(async {
                Busy(2).await;
                panic!("as planned");
            });
            assert!(task.await.is_err_and(|e| e.is_panic()));
        });
        drop(runtime);
        counted()
    });
    let Some(outcome) = outcome else { return };
    assert_counts(&outcome);
}

#[test]
fn a_task_that_is_cancelled_has_ended() {
    let outcome = scenario("a_task_that_is_cancelled_has_ended", &[], || {
        let runtime = several_threads();
        let waits = |sender: oneshot::Sender<()>| async move {
            POLLS.fetch_add(1, Ordering::SeqCst);
            let _ = sender.send(());
            std::future::pending::<()>().await;
        };
        runtime.block_on(async {
            // One is aborted, one ends with the runtime.
            for abort in [true, false] {
                spawned();
                let (sender, begun) = oneshot::channel();
                let task = tacho_tokio::spawn(waits(sender));
                begun.await.expect("it begins");
                if abort {
                    task.abort();
                    assert!(task.await.is_err_and(|e| e.is_cancelled()));
                }
            }
        });
        drop(runtime);
        counted()
    });
    let Some(outcome) = outcome else { return };
    assert_counts(&outcome);
    assert_eq!(outcome.count("task-end"), 2);
}

#[test]
fn a_task_that_was_never_polled_has_ended() {
    let outcome = scenario("a_task_that_was_never_polled_has_ended", &[], || {
        let runtime = one_thread();
        spawned();
        tacho_tokio::spawn_on(Busy(1), runtime.handle());
        drop(runtime);
        counted()
    });
    let Some(outcome) = outcome else { return };
    assert_counts(&outcome);
}

/// Keeps its waker for another thread.
struct Kept(Arc<Mutex<Option<Waker>>>, mpsc::UnboundedSender<()>, u32);

impl Future for Kept {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        POLLS.fetch_add(1, Ordering::SeqCst);
        if self.2 == 0 {
            return Poll::Ready(());
        }
        self.2 -= 1;
        *self.0.lock().unwrap() = Some(cx.waker().clone());
        let _ = self.1.send(());
        Poll::Pending
    }
}

#[test]
fn who_wakes_is_the_thread_that_did() {
    let outcome = scenario("who_wakes_is_the_thread_that_did", &[], || {
        let runtime = several_threads();
        let kept = Arc::new(Mutex::new(None));
        let (sender, mut polled) = mpsc::unbounded_channel();
        spawned();
        let task = tacho_tokio::spawn_on(Kept(kept.clone(), sender, 10), runtime.handle());
        let waker = std::thread::Builder::new().name("waker".into()).spawn(move || {
            while polled.blocking_recv().is_some() {
                let waker: Option<Waker> = kept.lock().unwrap().take();
                WAKES.fetch_add(1, Ordering::SeqCst);
                waker.expect("it was kept").wake();
            }
        });
        runtime.block_on(task).expect("it ends");
        waker.expect("a thread").join().expect("it ends");
        drop(runtime);
        counted()
    });
    let Some(outcome) = outcome else { return };
    assert_counts(&outcome);
    let wakes: Vec<_> = outcome.events.iter().filter(|e| e.is("wake")).collect();
    assert_eq!(wakes.len(), 10);
    assert!(wakes.iter().all(|e| e.text("thread_name") == "waker"));
}

#[test]
fn a_waker_that_outlives_its_task_tells_nothing() {
    let outcome = scenario("a_waker_that_outlives_its_task_tells_nothing", &[], || {
        let runtime = several_threads();
        let kept = Arc::new(Mutex::new(None));
        let (sender, mut polled) = mpsc::unbounded_channel();
        spawned();
        let task = tacho_tokio::spawn_on(Kept(kept.clone(), sender, 1), runtime.handle());
        runtime.block_on(async {
            polled.recv().await;
            let waker = kept.lock().unwrap().take().expect("it was kept");
            WAKES.fetch_add(1, Ordering::SeqCst);
            waker.wake_by_ref();
            task.await.expect("it ends");
            waker.wake_by_ref();
            waker.wake();
        });
        drop(runtime);
        counted()
    });
    let Some(outcome) = outcome else { return };
    assert_counts(&outcome);
}

async fn goes_idle(begun: oneshot::Sender<()>, receiver: oneshot::Receiver<()>) {
    let _ = begun.send(());
    let _ = receiver.await;
}

#[test]
fn where_a_task_goes_idle_is_told() {
    let dump = [("TACHO_SCENARIO_DUMP", "1")];
    let outcome = scenario("where_a_task_goes_idle_is_told", &dump, || {
        let runtime = several_threads();
        runtime.block_on(async {
            let (sender, receiver) = oneshot::channel::<()>();
            let (begun, begins) = oneshot::channel();
            let task = tacho_tokio::spawn(goes_idle(begun, receiver));
            begins.await.expect("it begins");
            drop(sender);
            task.await.expect("it ends");
            let (sender, receiver) = oneshot::channel::<()>();
            let (begun, begins) = oneshot::channel();
            // This one waits until it is dropped: all that it does is told before.
            let task = tacho_tokio::spawn(goes_idle(begun, receiver));
            begins.await.expect("it begins");
            task.abort();
            assert!(task.await.is_err());
            drop(sender);
        });
        vec![]
    });
    let Some(outcome) = outcome else { return };
    let waits: Vec<_> = outcome.events.iter().filter(|e| e.is("task-waits")).collect();
    assert!(!waits.is_empty());
    assert!(waits.iter().all(|e| e.0.contains("\"frames\":[")), "{}", waits[0].0);
    assert!(waits[0].0.contains("tasks::goes_idle"), "{}", waits[0].0);
}

async fn goes_idle_twice(one: oneshot::Receiver<()>, two: oneshot::Receiver<()>) {
    let _ = one.await;
    let _ = two.await;
}

#[test]
fn waits_at_two_lines_are_told_apart() {
    let outcome = scenario("waits_at_two_lines_are_told_apart", &[], || {
        let runtime = one_thread();
        runtime.block_on(async {
            for _ in 0..10 {
                let (first, one) = oneshot::channel();
                let (second, two) = oneshot::channel();
                let task = tacho_tokio::spawn(goes_idle_twice(one, two));
                tokio::task::yield_now().await;
                let _ = first.send(());
                tokio::task::yield_now().await;
                let _ = second.send(());
                task.await.expect("it ends");
            }
        });
        drop(runtime);
        vec![]
    });
    let Some(outcome) = outcome else { return };
    let stacks: Vec<_> = outcome
        .events
        .iter()
        .filter(|e| e.is("task-waits"))
        .map(|e| e.0.split("\"frames\":").nth(1).unwrap_or("").to_owned())
        .collect();
    assert_eq!(stacks.len(), 20);
    assert_ne!(stacks[0], stacks[1]);
    for (i, stack) in stacks.iter().enumerate() {
        assert_eq!(stack, &stacks[i % 2], "wait {i}");
    }
}

#[test]
fn work_of_the_blocking_pool_is_told() {
    let outcome = scenario("work_of_the_blocking_pool_is_told", &[], || {
        let runtime = several_threads();
        runtime.block_on(async {
            for _ in 0..5 {
                let sum = tacho_tokio::spawn_blocking(|| 1 + 1).await;
                assert_eq!(sum.expect("it ends"), 2);
            }
            std::panic::set_hook(Box::new(|_| {}));
            assert!(tacho_tokio::spawn_blocking(|| panic!("as planned")).await.is_err());
        });
        drop(runtime);
        vec![]
    });
    let Some(outcome) = outcome else { return };
    for kind in ["work-submit", "work-begin", "work-end"] {
        assert_eq!(outcome.count(kind), 6, "{kind}");
    }
}

#[test]
fn runtimes_have_names_that_tell_them_apart() {
    let outcome = scenario("runtimes_have_names_that_tell_them_apart", &[], || {
        let named = |name: &str| {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(1);
            let (mut builder, parks) = counts_parks(name, builder);
            (builder.build().expect("a runtime"), parks)
        };
        let parks = |(runtime, parks): &(Runtime, Arc<AtomicU64>)| {
            let parked = tacho_tokio::spawn_on(until_parked(parks.clone()), runtime.handle());
            runtime.block_on(parked).expect("it ends");
        };
        let all = [named("web"), named("batch"), named("web")];
        all.iter().for_each(parks);
        drop(all);
        // One that comes later is as one that was there before.
        let again = named("web");
        parks(&again);
        drop(again);
        vec![]
    });
    let Some(outcome) = outcome else { return };
    outcome.assert_sound();
    assert_eq!(outcome.loops(), ["batch worker 0", "web 2 worker 0", "web worker 0"]);
}

#[test]
fn one_builder_may_make_several_runtimes() {
    let outcome = scenario("one_builder_may_make_several_runtimes", &[], || {
        thread_local! { static PARKS: Arc<AtomicU64> = Arc::default(); }
        let mut builder = Builder::new_current_thread();
        let counts = || PARKS.with(|parks| parks.fetch_add(1, Ordering::SeqCst));
        let options = Options::new().name("core").on_thread_park(move || {
            counts();
        });
        tacho_tokio::record_with(builder.enable_all(), options);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let runtime = builder.build().expect("a runtime");
                std::thread::spawn(move || {
                    runtime.block_on(until_parked(PARKS.with(Arc::clone)));
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        vec![]
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(outcome.loops(), ["core", "core 2"]);
}

#[test]
fn a_worker_that_is_moved_to_another_thread_is_the_same_loop() {
    let outcome =
        scenario("a_worker_that_is_moved_to_another_thread_is_the_same_loop", &[], || {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(1).enable_all();
            let runtime = tacho_tokio::record(&mut builder).build().expect("a runtime");
            runtime.block_on(async {
                let (sender, receiver) = std::sync::mpsc::channel();
                spawned();
                let blocks = tacho_tokio::spawn(async move {
                    POLLS.fetch_add(1, Ordering::SeqCst);
                    tokio::task::block_in_place(|| receiver.recv().expect("the other one runs"));
                });
                spawned();
                let other = tacho_tokio::spawn(async move {
                    POLLS.fetch_add(1, Ordering::SeqCst);
                    sender.send(()).expect("the first one waits");
                });
                other.await.expect("it ends");
                blocks.await.expect("it ends");
            });
            drop(runtime);
            counted()
        });
    let Some(outcome) = outcome else { return };
    assert_counts(&outcome);
    assert!(outcome.loops().iter().all(|name| name == "tokio worker 0"), "{:?}", outcome.loops());
}

#[test]
fn hooks_of_the_program_are_called_and_lost_ones_are_named() {
    let outcome = scenario("hooks_of_the_program_are_called_and_lost_ones_are_named", &[], || {
        let starts = Arc::new(AtomicU64::new(0));
        let counts = starts.clone();
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().on_thread_park(|| {});
        let options = Options::new().on_thread_start(move || {
            counts.fetch_add(1, Ordering::SeqCst);
        });
        let runtime = tacho_tokio::record_with(&mut builder, options).build().expect("a runtime");
        runtime.block_on(async { tacho_tokio::spawn(Busy(1)).await.expect("it ends") });
        drop(runtime);
        vec![("starts", starts.load(Ordering::SeqCst))]
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(outcome.counted("starts"), 2);
    let logs: Vec<_> = outcome.events.iter().filter(|e| e.is("log")).collect();
    assert_eq!(logs.len(), 1);
    assert!(logs[0].0.contains("replaced the program's on_thread_park"), "{}", logs[0].0);
}

#[test]
fn what_block_on_waits_for_is_a_task() {
    let outcome = scenario("what_block_on_waits_for_is_a_task", &[], || {
        let runtime = several_threads();
        tacho_tokio::block_on(&runtime, Busy(1));
        drop(runtime);
        vec![]
    });
    let Some(outcome) = outcome else { return };
    outcome.assert_sound();
    let begins: Vec<_> = outcome.events.iter().filter(|e| e.is("poll-begin")).collect();
    assert_eq!(begins.len(), 2);
    assert_eq!(begins[0].name("kind"), "tasks::Busy");
    let name = "what_block_on_waits_for_is_a_task block_on";
    assert!(outcome.loops().iter().any(|l| l == name), "{:?}", outcome.loops());
}

#[test]
fn all_goes_on_where_the_box_cannot_be_made() {
    let nowhere = [("TACHO_BOX_DIR", "/proc/nowhere")];
    let outcome = scenario("all_goes_on_where_the_box_cannot_be_made", &nowhere, || {
        let runtime = several_threads();
        runtime.block_on(async {
            assert!(tacho_tokio::spawn(Busy(5)).await.is_ok());
            assert!(tacho_tokio::spawn_blocking(|| 1).await.is_ok());
        });
        drop(runtime);
        counted()
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(outcome.counted("polls"), 6);
    assert_ne!(outcome.counted("snapshot"), 0);
    assert!(outcome.events.is_empty());
}

#[test]
fn tasks_of_before_are_followed_once_recording_goes_on() {
    let outcome = scenario("tasks_of_before_are_followed_once_recording_goes_on", &[], || {
        let runtime = several_threads();
        // SAFETY: these need nothing.
        unsafe { tacho::sys::tacho_pause() };
        let (sender, receiver) = oneshot::channel::<()>();
        let task = tacho_tokio::spawn_on(
            async {
                let _ = receiver.await;
                Busy(3).await;
            },
            runtime.handle(),
        );
        runtime.block_on(async { tokio::spawn(async {}).await.expect("it ends") });
        // SAFETY: as above.
        unsafe { tacho::sys::tacho_resume() };
        drop(sender);
        runtime.block_on(task).expect("it ends");
        drop(runtime);
        counted()
    });
    let Some(outcome) = outcome else { return };
    assert!(outcome.count("poll-begin") >= 3);
    assert_eq!(outcome.count("wake"), 3);
}
