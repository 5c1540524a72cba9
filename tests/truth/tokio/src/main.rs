//! Services of Tokio with one planted fault each, or none, that write themselves what happened.
//! tests/truth/tokio.py draws, runs and judges them.
mod faults;
mod record;
mod truth;

use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use truth::{begun, compute, end_ns, now_ns, options, over};

#[inline(never)]
fn healthy_work() {
    compute!(options().work_us * 1000);
}

async fn request() {
    truth::serving_thread();
    let begin = now_ns();
    healthy_work();
    truth::note_healthy(now_ns() - begin);
    faults::request(begin).await;
}

async fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    let mut number = [0; 8];
    while stream.read_exact(&mut number).await.is_ok() {
        request().await;
        stream.write_all(&number).await?;
    }
    Ok(())
}

/// Each request is a task of its own.
async fn children(mut stream: TcpStream) -> std::io::Result<()> {
    let mut number = [0; 8];
    while stream.read_exact(&mut number).await.is_ok() {
        record::spawn(request()).await?;
        stream.write_all(&number).await?;
    }
    Ok(())
}

/// Each request is handed to one of some tasks that wait for work.
async fn pooled(mut stream: TcpStream, jobs: mpsc::Sender<oneshot::Sender<()>>) -> std::io::Result<()> {
    let mut number = [0; 8];
    while stream.read_exact(&mut number).await.is_ok() {
        let (done, answer) = oneshot::channel();
        if jobs.send(done).await.is_err() || answer.await.is_err() {
            break;
        }
        stream.write_all(&number).await?;
    }
    Ok(())
}

async fn pool_worker(mut jobs: mpsc::Receiver<oneshot::Sender<()>>) {
    while let Some(done) = jobs.recv().await {
        request().await;
        done.send(()).ok();
    }
}

async fn ticks(period: Duration) {
    let mut interval = tokio::time::interval(period);
    loop {
        interval.tick().await;
        compute!(5000);
    }
}

async fn serve(listener: TcpListener) {
    let mut pool = Vec::new();
    if options().shape == "handed" {
        for _ in 0..8 {
            let (sender, jobs) = mpsc::channel(64);
            record::spawn(pool_worker(jobs));
            pool.push(sender);
        }
    }
    if options().shape == "periodic" {
        for i in 0..20 {
            record::spawn(ticks(Duration::from_millis(5 + 3 * i)));
        }
    }
    let mut next = 0;
    while let Ok((stream, _)) = listener.accept().await {
        end_ns();
        stream.set_nodelay(true).ok();
        next += 1;
        match options().shape.as_str() {
            "children" => drop(record::spawn(children(stream))),
            "handed" => drop(record::spawn(pooled(stream, pool[next % pool.len()].clone()))),
            _ => drop(record::spawn(echo(stream))),
        }
    }
}

async fn run() -> std::io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    faults::start_helpers();
    record::spawn(serve(listener));
    truth::tell_ready(port)?;
    while !begun() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    while !over() || faults::ends_badly() {
        tokio::time::sleep(Duration::from_nanos(end_ns().saturating_sub(now_ns()).max(1_000_000))).await;
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    truth::parse();
    truth::make_room();
    let mut builder = match options().runtime.as_str() {
        "current" => tokio::runtime::Builder::new_current_thread(),
        workers => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(workers.parse().expect("a number of workers"));
            builder
        }
    };
    builder.enable_all();
    if truth::fault_is("pool") {
        builder.max_blocking_threads(options().threads);
    }
    let runtime = record::recorded(&mut builder).build()?;
    runtime.block_on(run())?;
    truth::write_truth()?;
    // SAFETY: it does not come back; what is left of the runtime does not matter.
    unsafe { libc::_exit(0) }
}
