// A small Tokio service that does a bit of all that dial9 0.3 records.
use dial9_tokio_telemetry::telemetry::cpu_profile::{CpuProfilingConfig, SchedEventConfig};
use dial9_tokio_telemetry::telemetry::{
    clock_monotonic_ns, record_event, ProcessResourceUsageConfig, RotatingWriter, TaskDumpConfig,
    TelemetryHandle, TracedRuntime,
};
use dial9_tokio_telemetry::tracing_layer::Dial9TokioLayer;
use dial9_trace_format::TraceEvent;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tracing::Instrument;
use tracing_subscriber::prelude::*;

#[derive(TraceEvent)]
struct RequestCompleted {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    status_code: u32,
    latency_us: u64,
    ratio: f64,
    cached: bool,
    error_message: Option<String>,
}

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

async fn step(n: u64) {
    tokio::time::sleep(Duration::from_millis(1 + n % 5)).await;
    tokio::task::yield_now().await;
}

async fn handle(n: u64, reply: mpsc::Sender<u64>) {
    let begin = Instant::now();
    for i in 0..3 {
        step(n + i).instrument(tracing::info_span!("step", i)).await;
    }
    if n % 10 == 0 {
        burn(15);
    }
    record_event(
        RequestCompleted {
            timestamp_ns: clock_monotonic_ns(),
            status_code: if n % 7 == 0 { 500 } else { 200 },
            latency_us: begin.elapsed().as_micros() as u64,
            ratio: n as f64 / 3.0,
            cached: n % 2 == 0,
            error_message: if n % 7 == 0 { Some("no".to_string()) } else { None },
        },
        &TelemetryHandle::current(),
    );
    let _ = reply.send(n).await;
}

async fn work() {
    let requests: u64 = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(60);
    tracing_subscriber::registry().with(Dial9TokioLayer::new()).init();
    let handle0 = TelemetryHandle::current();
    let (send, mut receive) = mpsc::channel(16);
    for n in 0..requests {
        let send = send.clone();
        let work = handle(n, send).instrument(tracing::info_span!("request", n));
        if n % 5 == 4 {
            tokio::spawn(work);
        } else {
            handle0.spawn(work);
        }
    }
    drop(send);
    tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(5))).await.unwrap();
    handle0
        .spawn(async { tokio::task::block_in_place(|| std::thread::sleep(Duration::from_millis(10))) })
        .await
        .unwrap();
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
        .with_sched_events(SchedEventConfig::default().include_kernel(true))
        .with_process_resource_usage(ProcessResourceUsageConfig::default())
        .with_task_dumps(TaskDumpConfig::builder().idle_threshold(Duration::from_millis(2)).build())
        .build_and_start(builder, writer)
        .unwrap();
    let handle = guard.handle();
    runtime.block_on(async move { handle.spawn(work()).await.unwrap() });
    drop(runtime);
    guard.graceful_shutdown(Duration::from_secs(10)).unwrap();
}
