//! A task that nobody can wake any more is told as that, and no other task is.
mod common;

use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::{mpsc as threads, Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{scenario, Counted, Outcome};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{broadcast, mpsc, oneshot, watch, Notify};
use tokio::task::{JoinSet, LocalSet};

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    tacho_tokio::record(&mut builder).build().expect("a runtime")
}

/// Not ready, and it keeps no waker.
struct Forgets(Option<oneshot::Sender<()>>);

impl Future for Forgets {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.0.take().map(|polled| polled.send(()));
        Poll::Pending
    }
}

/// Gives its waker away, and is never ready.
struct Gives(threads::Sender<Waker>);

impl Future for Gives {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.send(cx.waker().clone()).expect("somebody takes it");
        Poll::Pending
    }
}

async fn forgotten(polled: oneshot::Sender<()>) {
    Forgets(Some(polled)).await;
}

async fn given(to: threads::Sender<Waker>) {
    Gives(to).await;
}

/// The task of that kind, by its spawn.
fn task(outcome: &Outcome, kind: &str) -> Option<u64> {
    let spawn = |e: &&common::Event| e.is("spawn") && e.name("kind").contains(kind);
    outcome.events.iter().find(spawn).expect("a spawn").number("task")
}

fn forsaken(outcome: &Outcome) -> Vec<Option<u64>> {
    let told = outcome.events.iter().filter(|e| e.is("no-waker"));
    told.map(|e| e.number("task")).collect()
}

#[test]
fn a_poll_that_leaves_no_waker_behind_was_the_last() {
    let outcome = scenario("a_poll_that_leaves_no_waker_behind_was_the_last", &[], || {
        let runtime = runtime();
        runtime.block_on(async {
            let (sender, polled) = oneshot::channel();
            tacho_tokio::spawn(forgotten(sender));
            polled.await.expect("it is polled");
            tokio::time::sleep(Duration::from_millis(1200)).await;
        });
        std::mem::forget(runtime); // its end would be the task's
        Counted::new()
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(forsaken(&outcome), [task(&outcome, "forgotten")]);
    assert!(outcome.report.contains("\"category\": \"stuck\""), "{}", outcome.report);
    assert!(outcome.report.contains("nobody can wake it any more"), "{}", outcome.report);
}

#[test]
fn the_last_waker_that_is_dropped_is_told() {
    let outcome = scenario("the_last_waker_that_is_dropped_is_told", &[], || {
        let (sender, receiver) = threads::channel();
        let runtime = runtime();
        runtime.block_on(async { tacho_tokio::spawn(given(sender)) });
        let waker = receiver.recv().expect("a waker");
        let other = waker.clone();
        drop(waker);
        drop(other.clone());
        // Until its poll has ended.
        std::thread::sleep(Duration::from_millis(50));
        other.wake_by_ref();
        drop((other, receiver.recv().expect("the next")));
        std::thread::sleep(Duration::from_millis(50));
        std::mem::forget(runtime);
        Counted::new()
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(forsaken(&outcome), [task(&outcome, "given")]);
    let at = |kind: &str| outcome.events.iter().rposition(|e| e.is(kind)).expect("one");
    assert!(at("no-waker") > at("wake"));
}

/// What programs do with wakers that others wake in the end.
async fn usual() {
    let (once, receiver) = oneshot::channel();
    let (sender, mut lines) = mpsc::channel::<u32>(1);
    let (changes, mut changed) = watch::channel(0);
    let (news, mut heard) = broadcast::channel(4);
    let notify = Arc::new(Notify::new());
    let notified = notify.clone();
    let mut set = JoinSet::new();
    tacho_tokio::JoinSetExt::spawn_recorded(&mut set, async move {
        receiver.await.expect("a value");
        while lines.recv().await.is_some() {
            tokio::task::yield_now().await;
        }
    });
    tacho_tokio::JoinSetExt::spawn_recorded(&mut set, async move {
        changed.changed().await.expect("a change");
        heard.recv().await.expect("news");
        tokio::select! {
            () = notified.notified() => {}
            () = tokio::time::sleep(Duration::from_secs(60)) => {}
        }
    });
    once.send(()).expect("it waits");
    for i in 0..100 {
        sender.send(i).await.expect("it reads");
        tokio::time::sleep(Duration::from_micros(100)).await;
    }
    drop(sender);
    changes.send(1).expect("it waits");
    news.send(1).expect("it waits");
    tokio::time::timeout(Duration::from_millis(5), std::future::pending::<()>()).await.ok();
    notify.notify_one();
    while set.join_next().await.is_some() {}
    // What it waits for goes while it is polled, and is asked for again.
    let mut once = false;
    poll_fn(|cx| match std::mem::replace(&mut once, true) {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

#[test]
fn whom_somebody_can_wake_is_not_told() {
    let outcome = scenario("whom_somebody_can_wake_is_not_told", &[], || {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let runtime = runtime();
        let wakers = kept.clone();
        runtime.block_on(async {
            let mut all = JoinSet::new();
            for _ in 0..20 {
                tacho_tokio::JoinSetExt::spawn_recorded(&mut all, usual());
            }
            while all.join_next().await.is_some() {}
            let local = LocalSet::new();
            local.run_until(async { tacho_tokio::spawn_local(usual()).await }).await.expect("ends");
            // Cancelled while it waits: its end drops the wakers.
            let waits = tacho_tokio::spawn(tokio::time::sleep(Duration::from_secs(60)));
            tokio::time::sleep(Duration::from_millis(5)).await;
            waits.abort();
            waits.await.expect_err("it is cancelled");
            // Somebody has a waker, and may use it.
            tacho_tokio::spawn(poll_fn(move |cx| {
                wakers.lock().expect("wakers").push(cx.waker().clone());
                Poll::<()>::Pending
            }));
            tokio::time::sleep(Duration::from_millis(20)).await;
        });
        drop(runtime);
        kept.lock().expect("wakers").clear();
        Counted::new()
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(forsaken(&outcome), []);
}

#[test]
fn what_block_on_waits_for_may_wait_for_good() {
    let outcome = scenario("what_block_on_waits_for_may_wait_for_good", &[], || {
        let (sender, polled) = threads::channel();
        std::thread::spawn(move || {
            tacho_tokio::block_on(&runtime(), async {
                sender.send(()).expect("somebody waits");
                std::future::pending::<()>().await;
            });
        });
        polled.recv().expect("it is polled");
        std::thread::sleep(Duration::from_millis(50));
        Counted::new()
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(forsaken(&outcome), []);
}
