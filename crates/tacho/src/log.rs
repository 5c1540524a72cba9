//! Lines of text.
use crate::sys;
use crate::text::Line;
use core::fmt::{self, Write};

/// Records a line of text, cut at 512 bytes. The level is the program's own, 0 to 255.
#[inline]
pub fn log(level: u8, text: &str) {
    // SAFETY: it has that many bytes.
    unsafe { sys::tacho_log_n(level.into(), text.as_ptr().cast(), text.len()) }
}

/// For [`log!`](crate::log!): puts the line together on the stack.
#[doc(hidden)]
#[inline(never)]
pub fn __log(level: u8, arguments: fmt::Arguments<'_>) {
    let mut line = Line::new();
    let _ = line.write_fmt(arguments);
    put(level, &line);
}

pub(crate) fn put(level: u8, line: &Line) {
    let (text, size) = line.raw();
    // SAFETY: it has that many bytes.
    unsafe { sys::tacho_log_n(level.into(), text, size) }
}

/// Records a line that is formatted as by `println!`: `log!(3, "order {id} is late")`. Nothing is
/// formatted while recording is off, and nothing is allocated.
#[macro_export]
macro_rules! log {
    ($level:expr, $($text:tt)+) => {
        if $crate::is_recording() {
            $crate::__log($level, format_args!($($text)+));
        }
    };
}
