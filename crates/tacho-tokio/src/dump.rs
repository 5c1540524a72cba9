//! Where tasks wait that were not spawned through this crate: Tokio's task dumps.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tacho::sys;
use tokio::runtime::Handle;

use crate::task::TASK_WAITS;

const TASKS: usize = 1 << 14;
/// Milliseconds of a process fit 32 bits; the rest is of the task's number.
const MS_BITS: u32 = 32;
/// When the task was polled last. Of two that meet here, the one polled later has it.
static POLLED: [AtomicU64; TASKS] = [const { AtomicU64::new(0) }; TASKS];

fn now_ms() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64 + 1
}

#[inline]
pub(crate) fn polled(task: u64) {
    POLLED[task as usize % TASKS].store(task << MS_BITS | now_ms(), Ordering::Relaxed);
}

fn is_idle(task: u64, since_ms: u64) -> bool {
    let polled = POLLED[task as usize % TASKS].load(Ordering::Relaxed);
    polled >> MS_BITS == task & ((1 << (64 - MS_BITS)) - 1)
        && (polled & ((1 << MS_BITS) - 1)) <= since_ms
}

/// Takes a task dump of the runtime that this is called in, and records where each task waits that was not
/// polled for `idle`. How many they were.
///
/// As [`Handle::dump`]: all workers stop for it, every task is polled once in a special mode and then once
/// more, so a task whose wake was lost goes on. It may never end where a worker is blocked: give it a
/// time-out. Tasks that are spawned through this crate tell where they go idle without that.
pub async fn dump(idle: Duration) -> usize {
    let Ok(handle) = Handle::try_current() else { return 0 };
    let since = now_ms().saturating_sub(idle.as_millis() as u64);
    let dump = handle.dump().await;
    let mut count = 0;
    for task in dump.tasks().iter() {
        let number = crate::number(task.id());
        if !sys::recording() || !is_idle(number, since) {
            continue;
        }
        count += 1;
        for trace in task.trace().resolve_backtraces() {
            let frames: Vec<u64> = trace.frames().map(|frame| frame.ip() as u64).collect();
            // SAFETY: the frames are there; two words.
            unsafe {
                let stack = (sys::calls().stack_of)(frames.as_ptr(), frames.len() as u32);
                (sys::calls().put)(TASK_WAITS, 0, stack.into(), [number, 0].as_ptr(), 2);
            }
        }
    }
    count
}
