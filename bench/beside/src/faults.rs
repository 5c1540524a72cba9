//! Three faults that a service may have.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::recorder;

#[derive(Clone, Copy, PartialEq)]
pub enum Fault {
    None,
    Sleep,
    Lock,
    Lost,
    Lone,
}

/// Which of the tasks is never woken.
const FORGOTTEN: u64 = 20;

static PRICES: Mutex<u64> = Mutex::new(0);
static CONFIRMED: AtomicU64 = AtomicU64::new(0);
static LOGGED: AtomicU64 = AtomicU64::new(0);

/// What one task gives and another waits for.
#[derive(Default)]
struct Slot {
    given: bool,
    waker: Option<Waker>,
}

struct Reply(Arc<Mutex<Slot>>);

impl Future for Reply {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut slot = self.0.lock().unwrap();
        if slot.given {
            return Poll::Ready(());
        }
        slot.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Not ready, and it keeps no waker: who waits for it waits forever.
struct Forgets;

impl Future for Forgets {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

async fn backup() {
    Forgets.await;
}

async fn audit(reply: Reply) {
    reply.await;
}

/// Gives what `audit` waits for, and once forgets to wake it.
async fn confirm(slot: Arc<Mutex<Slot>>) {
    tokio::time::sleep(Duration::from_millis(1)).await;
    let mut slot = slot.lock().unwrap();
    slot.given = true;
    if CONFIRMED.fetch_add(1, Relaxed) != FORGOTTEN {
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    }
}

fn start_audit() {
    let slot = Arc::new(Mutex::new(Slot::default()));
    recorder::spawn(audit(Reply(slot.clone())));
    recorder::spawn(confirm(slot));
}

fn refresh_prices() {
    loop {
        thread::sleep(Duration::from_millis(440));
        let mut prices = PRICES.lock().unwrap();
        thread::sleep(Duration::from_millis(60));
        *prices += 1;
    }
}

fn price() -> u64 {
    *PRICES.lock().unwrap()
}

fn write_log() {
    thread::sleep(Duration::from_millis(80));
    LOGGED.fetch_add(1, Relaxed);
}

impl Fault {
    pub fn named(name: Option<&str>) -> Option<Fault> {
        match name {
            None => Some(Fault::None),
            Some("sleep") => Some(Fault::Sleep),
            Some("lock") => Some(Fault::Lock),
            Some("lost") => Some(Fault::Lost),
            Some("lone") => Some(Fault::Lone),
            Some(_) => None,
        }
    }

    pub fn begins(self) {
        if self == Fault::Lock {
            thread::Builder::new()
                .name("prices".into())
                .spawn(refresh_prices)
                .expect("a thread");
        }
    }

    pub fn happens(self, number: u64) {
        match self {
            Fault::Sleep if number % 512 == 0 => write_log(),
            Fault::Lock if number % 16 == 0 => {
                std::hint::black_box(price());
            }
            Fault::Lost if number % 32 == 0 => start_audit(),
            Fault::Lone if number == 64 && CONFIRMED.fetch_add(1, Relaxed) == 0 => {
                recorder::spawn(backup());
            }
            _ => {}
        }
    }
}
