// A small Tokio service that does a bit of all that dial9 0.5 records.
use dial9::core::clock_monotonic_ns;
use dial9::cpu::{CpuProfilingConfig, SchedEventConfig};
use dial9::format::TraceEvent;
use dial9::memory::{Dial9Allocator, MemoryProfiler, MemoryProfilingConfig};
use dial9::process::ProcessResourceUsageConfig;
use dial9::socket::SocketAcceptQueuesConfig;
use dial9::{
    AttachedRuntime, Dial9Handle, Dial9HandleTokioExt, DiskBuffer, RecorderPerfExt, TaskDumpConfig,
    TokioAttachOptions,
};
use dial9_utils::dial9_span;
use dial9_utils::span::Instrument as _;
use dial9_utils::tracing_layer::Dial9TracingLayer;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tracing_subscriber::prelude::*;

#[global_allocator]
static ALLOC: Dial9Allocator = Dial9Allocator::system();

#[derive(TraceEvent)]
struct RequestCompleted {
    #[traceevent(timestamp)]
    timestamp_ns: u64,
    status_code: u32,
    #[traceevent(unit = "us", kind = "gauge")]
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
    for i in 0..2 {
        tracing::Instrument::instrument(step(n + i), tracing::info_span!("step", i)).await;
    }
    step(n).instrument(dial9_span!("adhoc", n: u64 = n)).await;
    if n % 10 == 0 {
        burn(15);
    }
    let keep: Vec<Vec<u8>> = (0..8).map(|_| vec![1u8; 32 * 1024]).collect();
    Dial9Handle::current().record_event(RequestCompleted {
        timestamp_ns: clock_monotonic_ns(),
        status_code: if n % 7 == 0 { 500 } else { 200 },
        latency_us: begin.elapsed().as_micros() as u64,
        ratio: n as f64 / 3.0,
        cached: n % 2 == 0,
        error_message: if n % 7 == 0 { Some("no".to_string()) } else { None },
    });
    drop(keep);
    let _ = reply.send(n).await;
}

fn config() -> std::io::Result<AttachedRuntime> {
    let writer = DiskBuffer::builder()
        .base_path(std::env::args().nth(1).unwrap())
        .max_total_size(64 * 1024 * 1024)
        .max_file_size(16 * 1024 * 1024)
        .build()?;
    let recorder = dial9::recorder(writer)
        .segment_metadata([("service".to_string(), "checkout".to_string())])
        .with_cpu_profiling(CpuProfilingConfig::default())
        .with_sched_events(SchedEventConfig::default().include_kernel(true))
        .with_process_resource_usage(ProcessResourceUsageConfig::default())
        .with_socket_accept_queues(SocketAcceptQueuesConfig::default())
        .build();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().worker_threads(2);
    let runtime = recorder.handle().attach_tokio_runtime(
        builder,
        TokioAttachOptions::builder()
            .runtime_name("main")
            .task_tracking_enabled(true)
            .task_dump_config(TaskDumpConfig::builder().idle_threshold(Duration::from_millis(2)).build())
            .build(),
    )?;
    Ok((recorder, runtime))
}

#[dial9::main(config = config, graceful_shutdown = Duration::from_secs(30))]
async fn main() {
    let requests: u64 = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(60);
    tracing_subscriber::registry().with(Dial9TracingLayer::new()).init();
    let _memory = MemoryProfiler::from_config(
        MemoryProfilingConfig::builder().sample_rate_bytes(256 * 1024).track_liveset(true).build(),
    )
    .install(Dial9Handle::current())
    .expect("memory profiler");
    let _listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (send, mut receive) = mpsc::channel(16);
    for n in 0..requests {
        let work = tracing::Instrument::instrument(handle(n, send.clone()), tracing::info_span!("request", n));
        if n % 5 == 4 {
            tokio::spawn(work);
        } else {
            dial9::spawn(work);
        }
    }
    drop(send);
    tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(5))).await.unwrap();
    dial9::spawn(async { tokio::task::block_in_place(|| std::thread::sleep(Duration::from_millis(10))) })
        .await
        .unwrap();
    while receive.recv().await.is_some() {}
    tokio::time::sleep(Duration::from_millis(450)).await;
}
