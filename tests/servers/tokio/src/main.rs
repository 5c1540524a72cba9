//! A healthy server of Tokio with several workers: servers-tokio PORT THREADS
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{signal, SignalKind};

const ROUNDS: u32 = 50000; // of work for a request: some fifty microseconds

fn work(mut seed: u32) -> u32 {
    for _ in 0..ROUNDS {
        seed = std::hint::black_box(seed).wrapping_mul(1664525).wrapping_add(1013904223);
    }
    seed
}

async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = [0; 64];
    while stream.read(&mut request).await? > 0 {
        let answer = format!("{:010}\n", work(request[0].into()));
        stream.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

async fn run(port: u16) -> std::io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let mut end = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    end.recv().await;
    Ok(())
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(arguments[1])
        .enable_all()
        .build()?
        .block_on(run(arguments[0] as u16))
}
