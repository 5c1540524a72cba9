//! A small server, with a client of its own: `cargo run --example server -- [SECONDS]`.
//!
//! While it runs: `tacho report $(pidof server)`, or under `tacho run -o server.tacho -- server`.
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Every eighth request is answered by a task of its own.
async fn connection(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = [0; 64];
    for number in 1_u64.. {
        if stream.read_exact(&mut request).await.is_err() {
            break;
        }
        if number % 8 == 0 {
            let (answer, answered) = oneshot::channel();
            tacho_tokio::spawn(async move {
                let _ = answer.send(number);
            });
            let _ = answered.await;
        }
        stream.write_all(&request).await?;
    }
    Ok(())
}

async fn accept(listener: TcpListener) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tacho_tokio::spawn(connection(stream));
    }
}

async fn client(address: std::net::SocketAddr, until: Instant) -> std::io::Result<u64> {
    let mut stream = TcpStream::connect(address).await?;
    let mut request = [0; 64];
    let mut count = 0;
    while Instant::now() < until {
        stream.write_all(&request).await?;
        stream.read_exact(&mut request).await?;
        count += 1;
    }
    Ok(count)
}

#[tacho_tokio::main(worker_threads = 2, name = "server")]
async fn main() -> std::io::Result<()> {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tacho_tokio::spawn(accept(listener));
    let until = Instant::now() + Duration::from_secs(seconds);
    let clients: Vec<_> = (0..4).map(|_| tacho_tokio::spawn(client(address, until))).collect();
    let mut count = 0;
    for client in clients {
        count += client.await.map_err(std::io::Error::other)??;
    }
    println!("{count} requests");
    Ok(())
}
