//! What recording costs, in nanoseconds: `cargo bench -p tacho-tokio`.
//!
//! Each row is measured in turn with `tokio::spawn` and with `tacho_tokio::spawn`, recording off and on,
//! many times over; what is printed is the median of each, and what it costs more than the first.
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tacho::sys;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

const ROUNDS: usize = 41;

fn spawn<F>(recorded: bool, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    if recorded {
        tacho_tokio::spawn(future)
    } else {
        tokio::spawn(future)
    }
}

/// A task that wakes itself: a poll and a wake each time.
async fn wakes(recorded: bool, times: u32) {
    let task = spawn(recorded, async move {
        let mut left = times;
        std::future::poll_fn(move |cx: &mut Context<'_>| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    });
    let _ = task.await;
}

/// Two tasks that take turns: each wakes the other, through a waker that is kept.
async fn turns(recorded: bool, times: u32) {
    let (to, mut from) = tokio::sync::mpsc::channel::<u32>(1);
    let (back, mut again) = tokio::sync::mpsc::channel::<u32>(1);
    let one = spawn(recorded, async move {
        for i in 0..times / 2 {
            if to.send(i).await.is_err() || again.recv().await.is_none() {
                break;
            }
        }
    });
    let two = spawn(recorded, async move {
        while let Some(i) = from.recv().await {
            if back.send(i).await.is_err() {
                break;
            }
        }
    });
    let _ = (one.await, two.await);
}

/// Tasks that end in their first poll.
async fn spawns(recorded: bool, times: u32) {
    for _ in 0..times {
        let _ = spawn(recorded, async {}).await;
    }
}

fn measure(runtime: &Runtime, times: u32, work: impl Future<Output = ()>) -> f64 {
    let work = pin!(work);
    let begin = Instant::now();
    runtime.block_on(work);
    begin.elapsed().as_nanos() as f64 / f64::from(times)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn row<W: Future<Output = ()>>(
    runtime: &Runtime,
    what: &str,
    times: u32,
    work: fn(bool, u32) -> W,
) {
    let (mut bare, mut off, mut on) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // SAFETY: these need nothing.
        unsafe { sys::tacho_pause() };
        bare.push(measure(runtime, times, work(false, times)));
        off.push(measure(runtime, times, work(true, times)));
        // SAFETY: as above.
        unsafe { sys::tacho_resume() };
        on.push(measure(runtime, times, work(true, times)));
    }
    let (bare, off, on) = (median(bare), median(off), median(on));
    println!("{what:34} {bare:7.1} {off:7.1} (+{:5.1}) {on:7.1} (+{:5.1})", off - bare, on - bare);
}

fn main() {
    let mut builder = Builder::new_current_thread();
    let runtime = tacho_tokio::record(builder.enable_all()).build().expect("a runtime");
    println!("{:34} {:>7} {:>16} {:>16}", "ns", "bare", "recording off", "recording on");
    row(&runtime, "a wake by itself and a poll", 20_000, wakes);
    row(&runtime, "a message, a wake and a poll", 20_000, turns);
    row(&runtime, "a task: spawn, poll, end, joined", 20_000, spawns);
}
