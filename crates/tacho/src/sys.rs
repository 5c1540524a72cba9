//! The calls of `tacho.h` as they are: the structures, and its inline functions.
//!
//! `include/tacho.h` is the manual; what a call costs and where it may be made stands there. The safe
//! wrappers of this crate are made of these. Where the recorder does not exist (anything but Linux with
//! glibc on x86-64 and arm64) the same functions do nothing, and [`tacho_start`] returns `-ENOSYS`.
#![allow(non_camel_case_types, missing_docs)]

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};

pub const TACHO_STATE_NEVER: u32 = 0;
pub const TACHO_STATE_OFF: u32 = 1;
pub const TACHO_STATE_RECORDING: u32 = 2;
pub const TACHO_STATE_PAUSED: u32 = 3;
pub const TACHO_STATE_STOPPED: u32 = 4;

pub const TACHO_DEF_TEXT: u8 = 1;
pub const TACHO_DEF_KIND: u8 = 2;
pub const TACHO_DEF_LOOP: u8 = 3;
pub const TACHO_DEF_SPAN: u8 = 4;
pub const TACHO_DEF_COUNTER: u8 = 5;
pub const TACHO_DEF_GAUGE: u8 = 6;
pub const TACHO_DEF_PLACE: u8 = 7;

pub const TACHO_LEVEL_API: u8 = 3;

pub const TACHO_VALUE_I64: u8 = 1;
pub const TACHO_VALUE_F64: u8 = 2;

pub const TACHO_FIELD_U64: u8 = 1;
pub const TACHO_FIELD_I64: u8 = 2;
pub const TACHO_FIELD_F64: u8 = 3;
pub const TACHO_FIELD_BOOL: u8 = 4;
pub const TACHO_FIELD_STRING: u8 = 5;
pub const TACHO_FIELD_OPTIONAL: u8 = 0x80;

pub const TACHO_UNKNOWN: u32 = 0;
pub const TACHO_PENDING: u32 = 1;
pub const TACHO_DONE: u32 = 2;

pub const TACHO_WITH_STACK: c_uint = 1;

pub const TACHO_CLOCK_OPTION_AUTO: u32 = 0;
pub const TACHO_CLOCK_OPTION_MONOTONIC: u32 = 1;

#[repr(C)]
pub struct tacho_options {
    pub size: usize,
    pub max_bytes: u64,
    pub min_age_ns: u64,
    pub poll_threshold_ns: u64,
    pub box_dir: *const c_char,
    pub service: *const c_char,
    pub crash_file: *const c_char,
    pub clock: u32,
    pub keep_box: u32,
    pub dead_boxes: u32,
    pub reserved: u32,
}

#[repr(C)]
pub struct tacho_status_info {
    pub size: usize,
    pub state: u32,
    pub error: i32,
    pub reason: [c_char; 256],
    pub box_: [c_char; 256],
    pub max_bytes: u64,
    pub used_bytes: u64,
    pub overwritten_records: u64,
    pub dropped_records: u64,
    pub definitions: u32,
    pub threads: u32,
}

/// What loops, kinds, spans, counters and places are called. It has to last as long as the process.
#[repr(C)]
pub struct tacho_name {
    /// 0 until first use; the recorder stores here.
    pub id: AtomicU32,
    pub name_class: u8,
    pub detail: u8,
    pub reserved: u16,
    pub line: u32,
    pub reserved1: u32,
    pub text: *const c_char,
    pub file: *const c_char,
    pub unit: *const c_char,
    pub address: *const c_void,
}

// SAFETY: `id` is atomic, the rest is only read, and what it points to lasts.
unsafe impl Sync for tacho_name {}
// SAFETY: as above.
unsafe impl Send for tacho_name {}

impl tacho_name {
    /// The texts end with a zero byte, or are NULL, and last as long as the process.
    pub const fn new(
        name_class: u8,
        detail: u8,
        text: *const c_char,
        file: *const c_char,
        line: u32,
        unit: *const c_char,
    ) -> Self {
        tacho_name {
            id: AtomicU32::new(0),
            name_class,
            detail,
            reserved: 0,
            line,
            reserved1: 0,
            text,
            file,
            unit,
            address: ptr::null(),
        }
    }
}

#[repr(C)]
pub struct tacho__field {
    pub type_: u8,
    pub name: *const c_char,
}

#[repr(C)]
pub struct tacho__schema {
    pub id: AtomicU32,
    pub count: u32,
    pub name: *const c_char,
    pub fields: *const tacho__field,
}

// SAFETY: as `tacho_name`.
unsafe impl Sync for tacho__field {}
// SAFETY: as `tacho_name`.
unsafe impl Sync for tacho__schema {}

#[repr(C)]
pub struct tacho__event {
    pub schema: u32,
    pub used: u32,
    pub field: u32,
    pub present: u32,
    pub words: [u64; 128],
}

/// The functions of the recorder that this process has; see `c/calls.c`, whose order this is.
#[repr(C)]
pub struct Calls {
    pub on: *const AtomicI32,
    pub poll_begin: unsafe extern "C" fn(u32, u64),
    pub poll_end: unsafe extern "C" fn(u32),
    pub put1: unsafe extern "C" fn(u32, u32, u64),
    pub park: unsafe extern "C" fn(u32),
    pub unpark: unsafe extern "C" fn(u32, u32),
    pub put: unsafe extern "C" fn(u32, u32, u64, *const u64, u32),
    pub span_begin: unsafe extern "C" fn(u32),
    pub start: unsafe extern "C" fn(*const tacho_options) -> c_int,
    pub stop: unsafe extern "C" fn(),
    pub pause: unsafe extern "C" fn(),
    pub resume: unsafe extern "C" fn(),
    pub status: unsafe extern "C" fn(*mut tacho_status_info) -> c_int,
    pub task_new: unsafe extern "C" fn() -> u64,
    pub trigger: unsafe extern "C" fn(*const c_char) -> u32,
    pub snapshot: unsafe extern "C" fn(c_int) -> c_int,
    pub crash_handler: unsafe extern "C" fn(*const c_char) -> c_int,
    pub crash_stack: unsafe extern "C" fn() -> c_int,
    pub stacks_prepare: unsafe extern "C" fn(),
    pub modules_changed: unsafe extern "C" fn(),
    pub version: unsafe extern "C" fn() -> *const c_char,
    pub define: unsafe extern "C" fn(*const tacho_name) -> u32,
    pub define_schema: unsafe extern "C" fn(*const tacho__schema) -> u32,
    pub loop_: unsafe extern "C" fn(u32),
    pub poll_switch: unsafe extern "C" fn(u32, u64),
    pub poll_end_park: unsafe extern "C" fn(u32, u32),
    pub unpark_poll: unsafe extern "C" fn(u32, u32, u32, u64),
    pub span_end: unsafe extern "C" fn(u32),
    pub put2: unsafe extern "C" fn(u32, u32, u64, u64),
    pub log: unsafe extern "C" fn(u32, *const c_char, usize),
    pub stack: unsafe extern "C" fn() -> u32,
    pub stack_of: unsafe extern "C" fn(*const u64, u32) -> u32,
    pub event_string: unsafe extern "C" fn(*mut tacho__event, *const c_char),
    pub event_put: unsafe extern "C" fn(*mut tacho__event),
}

// What a poll, a wake and a park need is in the first line of the cache.
const _: () = assert!(core::mem::offset_of!(Calls, unpark) < 64);

// SAFETY: filled before main, and not changed afterwards.
unsafe impl Sync for Calls {}

#[cfg(tacho_recorder)]
extern "C" {
    static tachors_calls: Calls;
}
#[cfg(not(tacho_recorder))]
use crate::absent::CALLS as tachors_calls;

/// The recorder that this process has.
#[inline(always)]
#[allow(unused_unsafe)]
pub fn calls() -> &'static Calls {
    // SAFETY: see `Calls`.
    unsafe { &*ptr::addr_of!(tachors_calls) }
}

/// Whether recording is on: what each call below asks first.
#[inline(always)]
pub fn recording() -> bool {
    // SAFETY: it points to a variable of the recorder, which stays.
    cfg!(tacho_recorder) && unsafe { &*calls().on }.load(Relaxed) != 0
}

/// The number of a name while recording; NULL has 0.
///
/// # Safety
/// `name` is NULL or lasts as long as the process.
#[inline(always)]
pub unsafe fn id(name: *const tacho_name) -> u32 {
    if name.is_null() {
        return 0;
    }
    match (*name).id.load(Relaxed) {
        0 => define(name),
        id => id,
    }
}

#[cold]
unsafe fn define(name: *const tacho_name) -> u32 {
    (calls().define)(name)
}

macro_rules! functions {
    ($($name:ident = $call:ident($($arg:ident: $type:ty),*) $(-> $back:ty)?;)*) => {$(
        /// As in tacho.h.
        ///
        /// # Safety
        /// What the arguments point to is as tacho.h says.
        #[inline]
        pub unsafe fn $name($($arg: $type),*) $(-> $back)? {
            (calls().$call)($($arg),*)
        }
    )*};
}

functions! {
    tacho_start = start(options: *const tacho_options) -> c_int;
    tacho_stop = stop();
    tacho_pause = pause();
    tacho_resume = resume();
    tacho_status = status(status: *mut tacho_status_info) -> c_int;
    tacho_task_new = task_new() -> u64;
    tacho_trigger = trigger(reason: *const c_char) -> u32;
    tacho_snapshot = snapshot(fd: c_int) -> c_int;
    tacho_crash_handler = crash_handler(path: *const c_char) -> c_int;
    tacho_crash_stack = crash_stack() -> c_int;
    tacho_stacks_prepare = stacks_prepare();
    tacho_modules_changed = modules_changed();
    tacho_version = version() -> *const c_char;
}

macro_rules! inline_functions {
    ($($name:ident($($arg:ident: $type:ty),*) $body:block)*) => {$(
        /// As in tacho.h.
        ///
        /// # Safety
        /// Names are NULL or last as long as the process; a text has the bytes that are said.
        #[inline(always)]
        pub unsafe fn $name($($arg: $type),*) {
            if recording() $body
        }
    )*};
}

inline_functions! {
    tacho_loop(loop_: *const tacho_name) { (calls().loop_)(id(loop_)) }
    tacho_park(loop_: *const tacho_name) { (calls().park)(id(loop_)) }
    tacho_unpark(loop_: *const tacho_name, ready: u32) { (calls().unpark)(id(loop_), ready) }
    tacho_queue_depth(loop_: *const tacho_name, depth: u64) { (calls().put1)(0x47, id(loop_), depth) }
    tacho_steal(thief: *const tacho_name, victim: *const tacho_name, tasks: u64) {
        (calls().put2)(0x81, id(thief), id(victim).into(), tasks)
    }
    tacho_task_spawn(task: u64, kind: *const tacho_name, parent: u64, place: *const tacho_name) {
        (calls().put)(0xc0, id(kind), id(place).into(), [task, parent].as_ptr(), 2)
    }
    tacho_poll_begin(kind: *const tacho_name, task: u64) { (calls().poll_begin)(id(kind), task) }
    tacho_poll_end(result: u32) { (calls().poll_end)(result) }
    tacho_poll_switch(kind: *const tacho_name, task: u64) { (calls().poll_switch)(id(kind), task) }
    tacho_poll_end_park(result: u32, loop_: *const tacho_name) {
        (calls().poll_end_park)(result, id(loop_))
    }
    tacho_unpark_poll(loop_: *const tacho_name, ready: u32, kind: *const tacho_name, task: u64) {
        (calls().unpark_poll)(id(loop_), ready, id(kind), task)
    }
    tacho_wake(task: u64) { (calls().put1)(0x43, 0, task) }
    tacho_task_end(task: u64) { (calls().put1)(0x44, 0, task) }
    tacho_task_waits(task: u64, what: *const tacho_name, resource: u64, flags: c_uint) {
        let stack = if flags & TACHO_WITH_STACK != 0 { (calls().stack)() } else { 0 };
        (calls().put)(0xc1, id(what), stack.into(), [task, resource].as_ptr(), 2)
    }
    tacho_lock_wait(lock: *const c_void, place: *const tacho_name) {
        (calls().put1)(0x45, id(place), lock as usize as u64)
    }
    tacho_lock_waited(lock: *const c_void, got: bool) {
        (calls().put1)(0x46, got.into(), lock as usize as u64)
    }
    tacho_lock_release(lock: *const c_void, waiters: u64, place: *const tacho_name) {
        (calls().put2)(0x80, id(place), lock as usize as u64, waiters)
    }
    tacho_span_begin(name: *const tacho_name) { (calls().span_begin)(id(name)) }
    tacho_span_end(name: *const tacho_name) { (calls().span_end)(id(name)) }
    tacho_async_begin(name: *const tacho_name, span: u64, parent: u64) {
        (calls().put2)(0x82, id(name), span, parent)
    }
    tacho_async_end(name: *const tacho_name, span: u64) { (calls().put1)(0x49, id(name), span) }
    tacho_span_trace_id(span: u64, high: u64, low: u64) {
        (calls().put)(0xc2, 0, 0, [span, high, low].as_ptr(), 3)
    }
    tacho_log_n(level: u32, text: *const c_char, size: usize) { (calls().log)(level, text, size) }
    tacho_counter(counter: *const tacho_name, value: i64) {
        (calls().put1)(0x48, id(counter), value as u64)
    }
    tacho_gauge(gauge: *const tacho_name, value: f64) {
        (calls().put1)(0x48, id(gauge), value.to_bits())
    }
}
