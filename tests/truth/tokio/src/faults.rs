//! The faults, each in a function of its own, whose name is what a report has to say.
use crate::record;
use crate::truth::{
    begin_moment, compute, end_moment, end_ns, fault_is, helper_thread, note, note_between, now_ns, options, pause,
    size, MS,
};
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{mpsc as std_mpsc, Condvar, Mutex, OnceLock, RwLock};
use tokio::sync::{mpsc, oneshot, Notify};

/// What comes after the last call of a function, so that it is no tail call.
macro_rules! stay {
    () => {
        // SAFETY: there is nothing in it.
        unsafe { std::arch::asm!("") }
    };
}

/// A function that stays one, one that is inlined into its caller, and an async one.
macro_rules! fault {
    ($name:ident, $body:block) => {
        pub mod $name {
            use super::*;
            pub mod called {
                use super::*;
                #[inline(never)]
                pub fn $name() $body
            }
            pub mod inlined {
                use super::*;
                #[inline(always)]
                pub fn $name() $body
            }
            pub mod awaited {
                use super::*;
                pub async fn $name() $body
            }
            pub async fn meet() {
                match options().style.as_str() {
                    "called" => called::$name(),
                    "inlined" => inlined::$name(),
                    _ => awaited::$name().await,
                }
            }
        }
    };
}

// When they are due ------------------------------------------------------------------------

fault!(fault_sleep, {
    std::thread::sleep(size());
    stay!();
});

// Another process, or a disk, that answers late.
fault!(fault_file, {
    let (ask, answer) = PIPES.get().expect("pipes");
    (&mut &*ask).write_all(b"q").expect("pipe");
    (&mut &*answer).read_exact(&mut [0]).expect("pipe");
});

fault!(fault_recv, {
    let (sender, receiver) = std_mpsc::channel();
    ASKED.get().expect("helper").send(sender).expect("helper");
    receiver.recv().expect("an answer");
    stay!();
});

fault!(fault_condvar, {
    let mut answered = ANSWERED.0.lock().expect("answered");
    *answered = false;
    ASKED.get().expect("helper").send(std_mpsc::channel().0).expect("helper");
    while !*answered {
        answered = ANSWERED.1.wait(answered).expect("answered");
    }
});

fault!(fault_child, {
    let text = format!("{:.3}", options().size_ns as f64 / 1e9);
    std::process::Command::new("sleep").arg(text).status().expect("sleep");
});

fault!(fault_cpu, {
    compute!(options().size_ns);
});

fault!(fault_holds_lock, {
    let mut table = TABLE.lock().expect("table");
    compute!(options().size_ns);
    *table += 1;
});

fault!(fault_herd, {
    HERD.notify_waiters();
});

// In each request ---------------------------------------------------------------------------

fault!(fault_wants_lock, {
    let begin = begin_moment();
    *TABLE.lock().expect("table") += 1;
    let got = end_moment();
    if got.at - begin.at > MS / 10 && !fault_is("lock-task") {
        note_between("fault_wants_lock", begin, got);
    }
});

fault!(fault_reads, {
    let begin = begin_moment();
    std::hint::black_box(*SHARED.read().expect("shared"));
    let got = end_moment();
    if got.at - begin.at > MS / 10 {
        note_between("fault_reads", begin, got);
    }
});

fault!(fault_saturate, {
    let begin = now_ns();
    compute!(options().size_ns);
    note("fault_saturate", begin, now_ns());
});

fault!(fault_leak, {
    record::spawn(async {
        let (_kept, never) = oneshot::channel::<()>();
        never.await.ok();
    });
    note("fault_leak", now_ns(), now_ns());
});

fault!(fault_channel, {
    for _ in 0..1 + options().size_ns / MS {
        LINES.get().expect("channel").send([1; 256]).expect("channel");
        record::lines_wait(IN_CHANNEL.fetch_add(1, Relaxed) + 1);
    }
    note("fault_channel", now_ns(), now_ns());
});

/// The backend wakes whoever asked it; the one in the middle it forgets.
async fn fault_lost_wake() {
    let (sender, receiver) = oneshot::channel();
    if WAITERS.fetch_add(1, Relaxed) == 19 {
        note("fault_lost_wake", now_ns(), end_ns());
        std::mem::forget(sender);
    } else {
        BACKEND.get().expect("backend").send(sender).expect("backend");
    }
    receiver.await.ok();
}

async fn fault_wants_async_lock() {
    let begin = now_ns();
    *ASYNC_TABLE.lock().await += 1;
    let got = now_ns();
    if got - begin > MS {
        note("fault_wants_async_lock", begin, got);
    }
}

fn fault_pool() {
    let begin = now_ns();
    std::thread::sleep(size());
    note("fault_pool", begin, now_ns());
}

// At the end --------------------------------------------------------------------------------

fault!(fault_spin, {
    loop {
        compute!(MS);
    }
});

// Beside the requests -------------------------------------------------------------------------

static TABLE: Mutex<u64> = Mutex::new(0);
static SHARED: RwLock<u64> = RwLock::new(0);
static ANSWERED: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
static ASYNC_TABLE: tokio::sync::Mutex<u64> = tokio::sync::Mutex::const_new(0);
static HERD: Notify = Notify::const_new();
static PIPES: OnceLock<(std::fs::File, std::fs::File)> = OnceLock::new();
static ASKED: OnceLock<std_mpsc::Sender<std_mpsc::Sender<()>>> = OnceLock::new();
static BACKEND: OnceLock<mpsc::UnboundedSender<oneshot::Sender<()>>> = OnceLock::new();
static LINES: OnceLock<mpsc::UnboundedSender<[u8; 256]>> = OnceLock::new();
static IN_CHANNEL: AtomicU64 = AtomicU64::new(0);
static WAITERS: AtomicUsize = AtomicUsize::new(0);
static NEXT_DUE: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn keeps_lock_asleep() {
    let table = TABLE.lock().expect("table");
    std::thread::sleep(size());
    drop(table);
    stay!();
}

#[inline(never)]
fn keeps_writing() {
    let shared = SHARED.write().expect("shared");
    std::thread::sleep(size());
    drop(shared);
    stay!();
}

#[inline(never)]
fn keeps_lock_computing() {
    let table = TABLE.lock().expect("table");
    compute!(options().size_ns);
    drop(table);
    stay!();
}

/// A thread that Tokio does not know.
fn keeper() {
    helper_thread();
    std::thread::sleep(pause() / 2);
    loop {
        match options().fault.as_str() {
            "lock-sleep" => keeps_lock_asleep(),
            "lock-cpu" => keeps_lock_computing(),
            _ => keeps_writing(),
        }
        std::thread::sleep(pause());
    }
}

async fn keeps_async_lock() {
    loop {
        tokio::time::sleep(pause()).await;
        let mut table = ASYNC_TABLE.lock().await;
        tokio::time::sleep(size()).await;
        *table += 1;
    }
}

async fn one_of_the_herd() {
    loop {
        HERD.notified().await;
        compute!(3000);
    }
}

async fn fault_timers() {
    let mut interval = tokio::time::interval(std::time::Duration::from_nanos(options().period_ns));
    loop {
        interval.tick().await;
        compute!(1000);
    }
}

async fn writes_lines(mut lines: mpsc::UnboundedReceiver<[u8; 256]>) {
    while lines.recv().await.is_some() {
        IN_CHANNEL.fetch_sub(1, Relaxed);
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

async fn backend(mut asked: mpsc::UnboundedReceiver<oneshot::Sender<()>>) {
    while let Some(sender) = asked.recv().await {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        sender.send(()).ok();
    }
}

fn pipe() -> (std::fs::File, std::fs::File) {
    let mut fds = [0; 2];
    // SAFETY: both descriptors are new, and nobody else's.
    unsafe {
        assert_eq!(libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (std::fs::File::from_raw_fd(fds[0]), std::fs::File::from_raw_fd(fds[1]))
    }
}

fn answers_file() {
    let (mut asked, ask) = pipe();
    let (answer, mut answered) = pipe();
    PIPES.set((ask, answer)).expect("once");
    std::thread::spawn(move || {
        while asked.read_exact(&mut [0]).is_ok() {
            std::thread::sleep(size());
            answered.write_all(b"a").expect("pipe");
        }
    });
}

fn answers_recv() {
    let (sender, receiver) = std_mpsc::channel::<std_mpsc::Sender<()>>();
    ASKED.set(sender).expect("once");
    std::thread::spawn(move || {
        for asked in receiver {
            std::thread::sleep(size());
            asked.send(()).ok();
            *ANSWERED.0.lock().expect("answered") = true;
            ANSWERED.1.notify_all();
        }
    });
}

/// Threads and tasks that a fault needs beside those that serve.
pub fn start_helpers() {
    match options().fault.as_str() {
        "file" => answers_file(),
        "recv" | "condvar" => answers_recv(),
        "lock-sleep" | "lock-cpu" | "lock-shared" => drop(std::thread::spawn(keeper)),
        "async-lock" => drop(record::spawn(keeps_async_lock())),
        "herd" => (0..options().many).for_each(|_| drop(record::spawn(one_of_the_herd()))),
        "timers" => (0..options().many).for_each(|_| drop(record::spawn(fault_timers()))),
        "lost-wake" => {
            let (sender, asked) = mpsc::unbounded_channel();
            BACKEND.set(sender).expect("once");
            record::spawn(backend(asked));
        }
        "channel" => {
            let (sender, lines) = mpsc::unbounded_channel();
            LINES.set(sender).expect("once");
            record::spawn(writes_lines(lines));
        }
        _ => {}
    }
    if options().place == "beside" {
        record::spawn(beside());
    }
}

// Who meets them -------------------------------------------------------------------------------

async fn meet_due() {
    let begin = begin_moment();
    let function = match options().fault.as_str() {
        "sleep" => { fault_sleep::meet().await; "fault_sleep" }
        "file" => { fault_file::meet().await; "fault_file" }
        "recv" => { fault_recv::meet().await; "fault_recv" }
        "condvar" => { fault_condvar::meet().await; "fault_condvar" }
        "child" => { fault_child::meet().await; "fault_child" }
        "cpu" => { fault_cpu::meet().await; "fault_cpu" }
        "lock-task" => { fault_holds_lock::meet().await; "fault_holds_lock" }
        "herd" => { fault_herd::meet().await; "fault_herd" }
        _ => return,
    };
    note_between(function, begin, end_moment());
}

/// A task that has nothing to do with requests.
async fn beside() {
    loop {
        tokio::time::sleep(pause()).await;
        meet_due().await;
    }
}

/// Whether this request is the one that meets it now.
fn due(now: u64) -> bool {
    let at = NEXT_DUE.load(Relaxed);
    if at == 0 {
        NEXT_DUE.compare_exchange(0, now + options().period_ns / 2, Relaxed, Relaxed).ok();
        return false;
    }
    now >= at && NEXT_DUE.compare_exchange(at, u64::MAX, Relaxed, Relaxed).is_ok()
}

/// What one request meets after its work.
pub async fn request(begin: u64) {
    match options().fault.as_str() {
        "lock-sleep" | "lock-cpu" => fault_wants_lock::meet().await,
        "lock-task" => fault_wants_lock::meet().await,
        "lock-shared" => fault_reads::meet().await,
        "async-lock" => fault_wants_async_lock().await,
        "lost-wake" => fault_lost_wake().await,
        "saturate" => fault_saturate::meet().await,
        "leak" => fault_leak::meet().await,
        "channel" => fault_channel::meet().await,
        "pool" => record::spawn_blocking(fault_pool).await.expect("pool"),
        "spin" if now_ns() >= end_ns() && !ENDED.swap(true, Relaxed) => {
            note("fault_spin", now_ns(), now_ns());
            crate::truth::write_truth().expect("truth");
            fault_spin::meet().await;
        }
        _ => {}
    }
    if options().place == "request" && due(begin) {
        meet_due().await;
        let pause = pause().as_nanos() as u64 * (700 + (begin / 1000 + options().seed) % 600) / 1000;
        NEXT_DUE.store(now_ns() + pause, Relaxed);
    }
}

pub fn ends_badly() -> bool {
    fault_is("spin")
}
