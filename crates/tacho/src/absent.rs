//! The recorder of targets that have none: every call is there and does nothing.
use crate::sys::{
    tacho__event, tacho__schema, tacho_name, tacho_options, tacho_status_info, Calls,
};
use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};

static ON: AtomicI32 = AtomicI32::new(0);
static LAST_TASK: AtomicUsize = AtomicUsize::new(0);
const ENOSYS: c_int = 38;

macro_rules! nothing {
    ($($name:ident($($type:ty),*) $(-> $back:ty = $value:expr)?;)*) => {$(
        unsafe extern "C" fn $name($(_: $type),*) $(-> $back)? { $($value)? }
    )*};
}

nothing! {
    start(*const tacho_options) -> c_int = -ENOSYS;
    stop();
    pause();
    resume();
    status(*mut tacho_status_info) -> c_int = -ENOSYS;
    task_new() -> u64 = LAST_TASK.fetch_add(1, Relaxed) as u64 + 1;
    trigger(*const c_char) -> u32 = 0;
    snapshot(c_int) -> c_int = -ENOSYS;
    crash_handler(*const c_char) -> c_int = -ENOSYS;
    crash_stack() -> c_int = -ENOSYS;
    stacks_prepare();
    modules_changed();
    version() -> *const c_char = c"0.1.0".as_ptr();
    define(*const tacho_name) -> u32 = 0;
    define_schema(*const tacho__schema) -> u32 = 0;
    loop_(u32);
    park(u32);
    unpark(u32, u32);
    poll_begin(u32, u64);
    poll_switch(u32, u64);
    poll_end(u32);
    poll_end_park(u32, u32);
    unpark_poll(u32, u32, u32, u64);
    span_begin(u32);
    span_end(u32);
    put1(u32, u32, u64);
    put2(u32, u32, u64, u64);
    put(u32, u32, u64, *const u64, u32);
    log(u32, *const c_char, usize);
    stack() -> u32 = 0;
    stack_of(*const u64, u32) -> u32 = 0;
    event_string(*mut tacho__event, *const c_char);
    event_put(*mut tacho__event);
}

pub(crate) static CALLS: Calls = Calls {
    on: &ON,
    start,
    stop,
    pause,
    resume,
    status,
    task_new,
    trigger,
    snapshot,
    crash_handler,
    crash_stack,
    stacks_prepare,
    modules_changed,
    version,
    define,
    define_schema,
    loop_,
    park,
    unpark,
    poll_begin,
    poll_switch,
    poll_end,
    poll_end_park,
    unpark_poll,
    span_begin,
    span_end,
    put1,
    put2,
    put,
    log,
    stack,
    stack_of,
    event_string,
    event_put,
};
