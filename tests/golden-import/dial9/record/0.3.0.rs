// A small Tokio service, recorded by dial9 0.3.0.
use dial9_tokio_telemetry::telemetry::cpu_profile::{CpuProfilingConfig, SchedEventConfig};
use dial9_tokio_telemetry::telemetry::{RotatingWriter, TelemetryHandle, TracedRuntime};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

#[inline(never)]
fn burn(ms: u64) -> u64 {
    let begin = Instant::now();
    let mut x = 1u64;
    while begin.elapsed() < Duration::from_millis(ms) {
        for _ in 0..1000 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
        }
    }
    x
}

async fn handle(n: u64, reply: mpsc::Sender<u64>) {
    for i in 0..3 {
        tokio::time::sleep(Duration::from_millis(1 + (n + i) % 5)).await;
        tokio::task::yield_now().await;
    }
    if n % 10 == 0 {
        burn(15);
    }
    let _ = reply.send(n).await;
}

async fn work(handle0: TelemetryHandle) {
    let (send, mut receive) = mpsc::channel(16);
    for n in 0..60 {
        let work = handle(n, send.clone());
        if n % 5 == 4 {
            tokio::spawn(work);
        } else {
            handle0.spawn(work);
        }
    }
    drop(send);
    tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(5))).await.unwrap();
    while receive.recv().await.is_some() {}
    tokio::time::sleep(Duration::from_millis(50)).await;
}

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let writer = RotatingWriter::builder()
        .base_path(&path)
        .max_file_size(16 * 1024 * 1024)
        .max_total_size(64 * 1024 * 1024)
        .build()
        .unwrap();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    let (runtime, guard) = TracedRuntime::builder()
        .with_runtime_name("main")
        .with_task_tracking(true)
        .with_trace_path(&path)
        .with_cpu_profiling(CpuProfilingConfig::default())
        .with_sched_events(SchedEventConfig::default())
        .build_and_start(builder, writer)
        .unwrap();
    let handle = guard.handle();
    let inner = handle.clone();
    runtime.block_on(async move { handle.spawn(work(inner)).await.unwrap() });
    drop(runtime);
    guard.graceful_shutdown(Duration::from_secs(10)).unwrap();
}
