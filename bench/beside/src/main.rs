//! A TCP service on Tokio, the same for every recorder: bench/beside.py.
//!
//!     beside PORT [sleep|lock|lost|lone]
//!
//! Two workers. A request is 16 bytes and costs about 1.9 us of work; its answer is 16 bytes. Every 8th
//! request of a connection spawns a child task and awaits a oneshot of it, every 4th takes a tokio
//! Mutex and yields while it has it. Ends on SIGTERM, as dial9 keeps what it has when main returns.
//!
//! With the name of a fault it has that fault:
//!
//!     sleep   one request in 512 sleeps 80 ms in async code
//!     lock    a thread that is none of Tokio's holds a std Mutex for 60 ms, twice a second; one
//!             request in 16 takes it
//!     lost    one request in 32 starts a task that waits for another one; one of these tasks is
//!             never woken
//!     lone    one request starts a task that nobody wakes, and there is no other of its kind
mod faults;
mod recorder;

use std::hint::black_box;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::{oneshot, Mutex};

use faults::Fault;

const MESSAGE: usize = 16;
const WORK_STEPS: u64 = 1120;

/// About 1.9 us at 3 GHz: a chain of multiplications that no compiler can shorten.
fn work(mut x: u64) -> u64 {
    for _ in 0..black_box(WORK_STEPS) {
        x = (x ^ (x >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    x
}

async fn child(value: u64, done: oneshot::Sender<u64>) {
    let _ = done.send(value ^ 1);
}

async fn answer(number: u64, total: &Mutex<u64>, fault: Fault) -> u64 {
    let mut value = work(number);
    if number % 8 == 0 {
        let (done, result) = oneshot::channel();
        recorder::spawn(child(value, done));
        value ^= result.await.unwrap_or(0);
    }
    if number % 4 == 0 {
        let mut total = total.lock().await;
        *total = total.wrapping_add(value);
        tokio::task::yield_now().await;
    }
    fault.happens(number);
    value
}

async fn serve(mut client: TcpStream, total: Arc<Mutex<u64>>, fault: Fault) {
    let mut message = [0; MESSAGE];
    for number in 1.. {
        if client.read_exact(&mut message).await.is_err() {
            return;
        }
        let value = answer(number, &total, fault).await;
        message[..8].copy_from_slice(&value.to_le_bytes());
        if client.write_all(&message).await.is_err() {
            return;
        }
    }
}

async fn accept(port: u16, fault: Fault) -> std::io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let total = Arc::new(Mutex::new(0));
    loop {
        let (client, _) = listener.accept().await?;
        client.set_nodelay(true)?;
        recorder::spawn(serve(client, total.clone(), fault));
    }
}

fn arguments() -> Option<(u16, Fault)> {
    let mut words = std::env::args().skip(1);
    let port = words.next()?.parse().ok()?;
    Some((port, Fault::named(words.next().as_deref())?))
}

/// What every way of recording runs.
async fn service() {
    let Some((port, fault)) = arguments() else {
        eprintln!("usage: beside PORT [sleep|lock|lost|lone]");
        std::process::exit(2);
    };
    fault.begins();
    let mut end = signal(SignalKind::terminate()).expect("a handler for SIGTERM");
    let accepting = recorder::spawn(accept(port, fault));
    tokio::select! {
        _ = end.recv() => {}
        failed = accepting => {
            eprintln!("beside: cannot serve port {port}: {failed:?}");
            std::process::exit(1);
        }
    }
}

fn main() {
    recorder::run();
}
