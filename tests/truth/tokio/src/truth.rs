//! What is asked for, and what really happened: kept in memory and written at the end, as the servers
//! in C do it (../base.c).
use std::cell::{Cell, UnsafeCell};
use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;
use std::time::Duration;

pub const MS: u64 = 1_000_000;
const MAX_NOTES: usize = 200_000;
const MAX_THREADS: usize = 64;

#[derive(Debug)]
pub struct Options {
    pub shape: String,
    pub fault: String,
    pub style: String,   // how the function of the fault is called
    pub place: String,   // who meets it: a request, or a task beside them
    pub runtime: String, // "current", or the number of workers
    pub truth: String,
    pub ready: String,
    pub seconds: f64,
    pub size_ns: u64,
    pub period_ns: u64,
    pub work_us: u64,
    pub many: usize, // tasks beside those that serve
    pub threads: usize,
    pub cpu: i32, // that all threads run on; negative: any
    pub seed: u64,
}

static OPTIONS: OnceLock<Options> = OnceLock::new();

pub fn options() -> &'static Options {
    OPTIONS.get().expect("parse() comes first")
}

pub fn parse() {
    let mut o = Options {
        shape: "echo".into(),
        fault: "healthy".into(),
        style: "async".into(),
        place: "request".into(),
        runtime: "2".into(),
        truth: "truth.json".into(),
        ready: "ready".into(),
        seconds: 2.0,
        size_ns: 20 * MS,
        period_ns: 200 * MS,
        work_us: 50,
        many: 0,
        threads: 2,
        cpu: -1,
        seed: 1,
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ms = |value: &str| (value.parse::<f64>().expect("a number of ms") * 1e6) as u64;
    for pair in arguments.chunks(2) {
        let value = pair.get(1).expect("a value").clone();
        match pair[0].as_str() {
            "--shape" => o.shape = value,
            "--fault" => o.fault = value,
            "--style" => o.style = value,
            "--place" => o.place = value,
            "--runtime" => o.runtime = value,
            "--truth" => o.truth = value,
            "--ready" => o.ready = value,
            "--seconds" => o.seconds = value.parse().expect("seconds"),
            "--size-ms" => o.size_ns = ms(&value),
            "--period-ms" => o.period_ns = ms(&value),
            "--work-us" => o.work_us = value.parse().expect("us"),
            "--many" => o.many = value.parse().expect("a number"),
            "--threads" => o.threads = value.parse().expect("a number"),
            "--cpu" => o.cpu = value.parse().expect("a number"),
            "--seed" => o.seed = value.parse().expect("a number"),
            other => panic!("there is no option {other}"),
        }
    }
    pin(o.cpu);
    OPTIONS.set(o).expect("once");
    calibrate();
}

/// Before there are threads, which inherit it.
fn pin(cpu: i32) {
    if cpu < 0 {
        return;
    }
    // SAFETY: a set of zeroes is a set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours, and as large as its size says.
    let failed = unsafe {
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set)
    };
    assert_eq!(failed, 0, "sched_setaffinity");
}

pub fn fault_is(name: &str) -> bool {
    options().fault == name
}

pub fn size() -> Duration {
    Duration::from_nanos(options().size_ns)
}

pub fn pause() -> Duration {
    let o = options();
    Duration::from_nanos(if o.period_ns > o.size_ns { o.period_ns - o.size_ns } else { MS })
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: t is ours.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

pub fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

pub fn cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// This thread now: wall clock, CPU time, and how long it waited for a CPU so far. Reading the CPU time invites
/// the kernel to run others, so a begin has its wall clock last, and an end first.
#[derive(Clone, Copy)]
pub struct Moment {
    pub at: u64,
    ran: u64,
    delayed: u64,
}

pub fn begin_moment() -> Moment {
    let (ran, delayed) = (cpu_ns(), run_delay_ns());
    Moment { at: now_ns(), ran, delayed }
}

pub fn end_moment() -> Moment {
    let at = now_ns();
    let delayed = run_delay_ns();
    Moment { at, ran: cpu_ns(), delayed }
}

/// By raw calls: hooks must not see them.
fn run_delay_ns() -> u64 {
    let mut text = [0u8; 128];
    let path = c"/proc/thread-self/schedstat".as_ptr();
    // SAFETY: the path ends with 0, and the buffer is ours.
    let count = unsafe {
        let fd = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, libc::O_RDONLY | libc::O_CLOEXEC);
        let count = libc::syscall(libc::SYS_read, fd, text.as_mut_ptr(), text.len());
        libc::syscall(libc::SYS_close, fd);
        count.max(0) as usize
    };
    let text = std::str::from_utf8(&text[..count]).unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}

// Work, in CPU time ---------------------------------------------------------------------

pub static ROUNDS_PER_MS: AtomicU64 = AtomicU64::new(1_000_000);
pub static SINK: AtomicU64 = AtomicU64::new(0);

/// A macro, because the place of a fault is the function that it stands in.
macro_rules! compute {
    ($ns:expr) => {{
        use std::sync::atomic::Ordering::Relaxed;
        let rounds = $crate::truth::ROUNDS_PER_MS.load(Relaxed) * $ns / $crate::truth::MS;
        let mut sum = $crate::truth::SINK.load(Relaxed);
        for i in 0..rounds {
            sum = std::hint::black_box(sum).wrapping_mul(31).wrapping_add(i);
        }
        $crate::truth::SINK.store(sum, Relaxed);
    }};
}
pub(crate) use compute;

/// The fastest of some tries: what others do on this machine does not count.
fn calibrate() {
    let best = (0..8).map(|_| {
        let begin = cpu_ns();
        compute!(MS);
        (cpu_ns() - begin).max(1)
    });
    ROUNDS_PER_MS.store(1_000_000 * MS / best.min().unwrap_or(MS), Relaxed);
}

// What happened ---------------------------------------------------------------------------

#[derive(Clone, Copy)]
struct Note {
    function: &'static str,
    begin: u64,
    end: u64,
    ran: u64,
    delayed: u64,
}

struct Notes(UnsafeCell<Vec<Note>>);
// SAFETY: each index is written once, by the thread that took it, and read when all is over.
unsafe impl Sync for Notes {}

static NOTES: OnceLock<Notes> = OnceLock::new();
static NOTED: AtomicUsize = AtomicUsize::new(0);
static END: AtomicU64 = AtomicU64::new(0);
static LONGEST_HEALTHY: AtomicU64 = AtomicU64::new(0);
static REQUESTS: AtomicU64 = AtomicU64::new(0);
static SERVERS: AtomicUsize = AtomicUsize::new(0);
static SERVING: [[AtomicU64; 4]; MAX_THREADS] =
    [const { [const { AtomicU64::new(0) }; 4] }; MAX_THREADS];

pub fn make_room() {
    let none = Note { function: "", begin: 0, end: 0, ran: 0, delayed: 0 };
    let _ = NOTES.set(Notes(UnsafeCell::new(vec![none; MAX_NOTES])));
}

fn keep(note: Note) {
    let i = NOTED.fetch_add(1, Relaxed);
    if i < MAX_NOTES {
        // SAFETY: see Notes.
        unsafe { (&mut *NOTES.get().expect("room").0.get())[i] = note };
    }
}

/// One occurrence of the fault. Any thread.
pub fn note(function: &'static str, begin: u64, end: u64) {
    keep(Note { function, begin, end, ran: 0, delayed: 0 });
}

/// One that began and ended on the same thread.
pub fn note_between(function: &'static str, begin: Moment, end: Moment) {
    keep(Note {
        function,
        begin: begin.at,
        end: end.at,
        ran: end.ran.saturating_sub(begin.ran),
        delayed: end.delayed.saturating_sub(begin.delayed),
    });
}

pub fn note_healthy(ns: u64) {
    REQUESTS.fetch_add(1, Relaxed);
    LONGEST_HEALTHY.fetch_max(ns, Relaxed);
}

fn schedstat(tid: u64) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).unwrap_or_default();
    let mut numbers = text.split_whitespace().map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

thread_local!(static SERVES: Cell<bool> = const { Cell::new(false) });

/// A thread that serves requests: what the kernel let it wait for a CPU is in the truth.
pub fn serving_thread() {
    count_thread(0);
}

/// The same for a thread that requests wait for now and then, such as the holder of a lock.
pub fn helper_thread() {
    count_thread(1);
}

fn count_thread(helper: u64) {
    if SERVES.replace(true) {
        return;
    }
    let i = SERVERS.fetch_add(1, Relaxed);
    if i < MAX_THREADS {
        // SAFETY: it takes nothing.
        let tid = unsafe { libc::gettid() } as u64;
        let (ran, waited) = schedstat(tid);
        SERVING[i][0].store(tid, Relaxed);
        SERVING[i][1].store(ran, Relaxed);
        SERVING[i][2].store(waited, Relaxed);
        SERVING[i][3].store(helper, Relaxed);
    }
}

/// When serving ends: so many seconds after the first call.
pub fn end_ns() -> u64 {
    let end = now_ns() + (options().seconds * 1e9) as u64;
    END.compare_exchange(0, end, Relaxed, Relaxed).unwrap_or_else(|end| end);
    END.load(Relaxed)
}

pub fn begun() -> bool {
    END.load(Relaxed) != 0
}

pub fn over() -> bool {
    begun() && now_ns() >= END.load(Relaxed)
}

pub fn write_truth() -> std::io::Result<()> {
    let to = now_ns();
    let path = format!("{}.new", options().truth);
    let mut f = std::io::BufWriter::new(std::fs::File::create(&path)?);
    writeln!(
        f,
        r#"{{"pid":{},"from":{},"to":{to},"requests":{},"healthy":{},"throttled":0}}"#,
        std::process::id(),
        end_ns() - (options().seconds * 1e9) as u64,
        REQUESTS.load(Relaxed),
        LONGEST_HEALTHY.load(Relaxed)
    )?;
    for s in &SERVING[..SERVERS.load(Relaxed).min(MAX_THREADS)] {
        let tid = s[0].load(Relaxed);
        let (ran, waited) = schedstat(tid);
        writeln!(
            f,
            r#"{{"thread":{tid},"helper":{},"ran":{},"runnable":{}}}"#,
            s[3].load(Relaxed),
            ran.saturating_sub(s[1].load(Relaxed)),
            waited.saturating_sub(s[2].load(Relaxed))
        )?;
    }
    // SAFETY: see Notes; who writes now writes behind what is read.
    let notes = unsafe { &*NOTES.get().expect("room").0.get() };
    for n in notes[..NOTED.load(Relaxed).min(MAX_NOTES)].iter().filter(|n| n.end > 0) {
        writeln!(
            f,
            r#"{{"function":"{}","begin":{},"end":{},"ran":{},"delayed":{}}}"#,
            n.function, n.begin, n.end, n.ran, n.delayed
        )?;
    }
    f.into_inner()?.sync_all().ok();
    std::fs::rename(path, &options().truth)
}

pub fn tell_ready(port: u16) -> std::io::Result<()> {
    let path = format!("{}.new", options().ready);
    std::fs::write(&path, format!("{port} {}\n", std::process::id()))?;
    std::fs::rename(path, &options().ready)
}
