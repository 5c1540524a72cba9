//! Texts for the recorder, without allocating where something is recorded.
use core::ffi::c_char;
use core::fmt;
use core::mem::MaybeUninit;
use std::ffi::CString;

/// What the recorder keeps of a text, and one byte more by which it sees that there was more.
const MOST: usize = 513;

/// A line that is put together on the stack. What does not fit is left out.
pub(crate) struct Line {
    bytes: [MaybeUninit<u8>; MOST + 1],
    used: usize,
}

impl Line {
    #[inline]
    pub fn new() -> Self {
        Line { bytes: [MaybeUninit::uninit(); MOST + 1], used: 0 }
    }

    #[inline]
    pub fn push(&mut self, text: &str) {
        let size = text.len().min(MOST - self.used);
        // SAFETY: both have `size` bytes from there, and do not overlap.
        unsafe {
            let to = self.bytes.as_mut_ptr().add(self.used).cast::<u8>();
            core::ptr::copy_nonoverlapping(text.as_ptr(), to, size);
        }
        self.used += size;
    }

    /// Text and bytes, without a zero at the end.
    pub fn raw(&self) -> (*const c_char, usize) {
        (self.bytes.as_ptr().cast(), self.used)
    }

    /// As a C string, which ends at the first zero that is in it.
    #[inline]
    pub fn as_c(&mut self) -> *const c_char {
        // `used` is at most MOST.
        self.bytes[self.used] = MaybeUninit::new(0);
        self.bytes.as_ptr().cast()
    }

    /// As far as it is valid: it may have been cut within a character.
    pub fn as_str(&self) -> &str {
        // SAFETY: `used` bytes were copied.
        let bytes = unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.used) };
        match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        }
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

/// A C string on the stack.
#[inline]
pub(crate) fn with_c<R>(text: &str, f: impl FnOnce(*const c_char) -> R) -> R {
    let mut line = Line::new();
    line.push(text);
    f(line.as_c())
}

/// A C string, which ends before the first zero that is in `text`.
pub(crate) fn c_string(text: impl Into<Vec<u8>>) -> CString {
    CString::new(text).unwrap_or_else(|zero| {
        let at = zero.nul_position();
        let mut bytes = zero.into_vec();
        bytes.truncate(at);
        CString::new(bytes).unwrap_or_default()
    })
}

pub(crate) fn leak(text: &str) -> *const c_char {
    c_string(text).into_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::fmt::Write;

    fn as_c(text: &str) -> Vec<u8> {
        // SAFETY: it is one.
        with_c(text, |c| unsafe { CStr::from_ptr(c) }.to_bytes().to_vec())
    }

    #[test]
    fn a_text_ends_at_its_first_zero() {
        assert_eq!(as_c("order 7"), b"order 7");
        assert_eq!(as_c(""), b"");
        assert_eq!(as_c("a\0b"), b"a");
        assert_eq!(c_string("a\0b").to_bytes(), b"a");
    }

    #[test]
    fn a_long_text_is_cut_after_one_byte_more_than_is_kept() {
        let long = "x".repeat(2000);
        assert_eq!(as_c(&long).len(), MOST);
        let mut line = Line::new();
        for _ in 0..100 {
            let _ = write!(line, "bytes: {}", 12);
        }
        assert_eq!(line.raw().1, MOST);
    }
}
