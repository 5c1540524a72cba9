//! The stack at which a task goes idle, without unwinding it each time.
//!
//! Unwinding takes some ten microseconds, and most tasks go idle where others did before. So the part of
//! the stack that belongs to the poll is looked at first: all words in it that are addresses of code, in
//! their order, the return addresses among them. Where all these are as they were at another time, the
//! return addresses are, and the stack is the same. Some of the words are leftovers, for which one place
//! may be unwound several times.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::thread::Thread;

/// More than this between the poll and the wait is not looked through: 8 KiB.
const MOST_WORDS: usize = 1024;
const KNOWN_BITS: u32 = 10;
/// The number of a definition fits 24 bits; the rest tells signatures apart.
const STACK_BITS: u32 = 24;

/// Code of the module that this is in, and of all others together.
static CODE: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
/// A part of the signature, and the stack: one word, so that they belong together.
static KNOWN: [AtomicU64; 1 << KNOWN_BITS] = [const { AtomicU64::new(0) }; 1 << KNOWN_BITS];

#[cfg(target_os = "linux")]
mod modules {
    use super::CODE;
    use std::ffi::{c_int, c_void, CStr};
    use std::sync::atomic::Ordering;

    /// Libraries that call nothing of what a task does.
    fn is_system(name: &[u8]) -> bool {
        let base = name.rsplit(|c| *c == b'/').next().unwrap_or(name);
        [&b"libc.so"[..], b"libm.so", b"libgcc_s.so", b"ld-linux", b"libpthread.so", b"linux-vdso"]
            .iter()
            .any(|system| base.starts_with(system))
    }

    struct Found {
        own: (usize, usize),
        others: (usize, usize),
    }

    unsafe extern "C" fn module(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        found: *mut c_void,
    ) -> c_int {
        let (info, found) = (&*info, &mut *found.cast::<Found>());
        let name = if info.dlpi_name.is_null() { c"" } else { CStr::from_ptr(info.dlpi_name) };
        for i in 0..usize::from(info.dlpi_phnum) {
            let part = &*info.dlpi_phdr.add(i);
            if part.p_type != libc::PT_LOAD || part.p_flags & libc::PF_X == 0 {
                continue;
            }
            let begin = (info.dlpi_addr as usize).wrapping_add(part.p_vaddr as usize);
            let end = begin.wrapping_add(part.p_memsz as usize);
            if (begin..end).contains(&(refresh as *const () as usize)) {
                found.own = (begin, end);
            } else if !is_system(name.to_bytes()) {
                found.others = (found.others.0.min(begin), found.others.1.max(end));
            }
        }
        0
    }

    /// What is code. Anew for each spawn site: a library that was loaded since brings sites of its own.
    pub(crate) fn refresh() {
        let mut found = Found { own: (0, 0), others: (usize::MAX, 0) };
        // SAFETY: `module` takes what it is given here.
        unsafe { libc::dl_iterate_phdr(Some(module), std::ptr::addr_of_mut!(found).cast()) };
        for (at, value) in
            CODE.iter().zip([found.own.0, found.own.1, found.others.0, found.others.1])
        {
            at.store(value, Ordering::Relaxed);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod modules {
    pub(crate) fn refresh() {}
}

pub(crate) use modules::refresh;

/// 0: it cannot be told. `from` and `to` are addresses on this thread's stack, of this function's caller and
/// of a function that called it.
fn signature(from: usize, to: usize) -> u64 {
    // Of pointers that are signed, on arm64, the signature does not count.
    const ADDRESS: usize = (1 << 47) - 1;
    let [begin, end, others_begin, others_end] = CODE.each_ref().map(|c| c.load(Ordering::Relaxed));
    let from = from & !7;
    if end == 0 || to <= from || to - from > MOST_WORDS * 8 {
        return 0;
    }
    let (own, others) = (end - begin, others_end.saturating_sub(others_begin));
    let is_code =
        |word: usize| (word.wrapping_sub(begin) < own) | (word.wrapping_sub(others_begin) < others);
    let add = |hash: u64, word: usize| match is_code(word) {
        true => (hash ^ word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29),
        false => hash,
    };
    // SAFETY: it is on the stack of this thread, above this function's frame.
    let word = |at: usize| unsafe { std::ptr::read_volatile(at as *const usize) } & ADDRESS;
    let mut hash = (to - from) as u64;
    let mut at = from;
    // Most words are no addresses of code: that is asked of four at once.
    while at + 32 <= to {
        let four = [word(at), word(at + 8), word(at + 16), word(at + 24)];
        if is_code(four[0]) | is_code(four[1]) | is_code(four[2]) | is_code(four[3]) {
            hash = four.into_iter().fold(hash, add);
        }
        at += 32;
    }
    while at < to {
        hash = add(hash, word(at));
        at += 8;
    }
    hash | 1
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod unwinding {
    use std::ffi::{c_int, c_void};
    use tacho::sys;

    struct Frames {
        pc: [u64; 64],
        count: u32,
        /// Outside of this is not what the task does.
        poll: usize,
    }

    extern "C" {
        // Of the unwinder that Rust's panics need.
        fn _Unwind_Backtrace(
            frame: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
            frames: *mut c_void,
        ) -> c_int;
        fn _Unwind_GetIP(context: *mut c_void) -> usize;
        fn _Unwind_GetCFA(context: *mut c_void) -> usize;
    }

    unsafe extern "C" fn frame(context: *mut c_void, frames: *mut c_void) -> c_int {
        const GO_ON: c_int = 0;
        const END: c_int = 4;
        let frames = &mut *frames.cast::<Frames>();
        if frames.count as usize == frames.pc.len() {
            return END;
        }
        frames.pc[frames.count as usize] = _Unwind_GetIP(context) as u64;
        frames.count += 1;
        if _Unwind_GetCFA(context) > frames.poll {
            END
        } else {
            GO_ON
        }
    }

    /// The stack from here to the poll.
    #[cold]
    pub(crate) fn unwind(poll: usize) -> u32 {
        let mut frames = Frames { pc: [0; 64], count: 0, poll };
        // SAFETY: `frame` takes what it is given here; recording is on.
        unsafe {
            _Unwind_Backtrace(frame, std::ptr::addr_of_mut!(frames).cast());
            (sys::calls().stack_of)(frames.pc.as_ptr(), frames.count)
        }
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod unwinding {
    pub(crate) fn unwind(_: usize) -> u32 {
        0
    }
}

/// The stack of the caller, which is in a poll whose frame is at `poll`. 0: none, or none now.
#[inline(never)]
pub(crate) fn stack(thread: &Thread, poll: usize) -> u32 {
    let here = 0_u8;
    let signature = signature(std::ptr::addr_of!(here) as usize, poll);
    let known = &KNOWN[(signature >> (64 - KNOWN_BITS)) as usize];
    let tag = signature << STACK_BITS;
    let found = known.load(Ordering::Relaxed);
    if signature != 0 && found & !((1 << STACK_BITS) - 1) == tag {
        return (found & ((1 << STACK_BITS) - 1)) as u32;
    }
    if !thread.may_unwind() {
        return 0;
    }
    let stack = unwinding::unwind(poll);
    if signature != 0 && stack != 0 && stack < 1 << STACK_BITS {
        known.store(tag | u64::from(stack), Ordering::Relaxed);
    }
    stack
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn of(words: &[usize]) -> u64 {
        let at = words.as_ptr() as usize;
        signature(at, at + 8 * words.len())
    }

    #[test]
    fn every_address_of_code_counts_wherever_it_stands_and_nothing_else_does() {
        refresh();
        let one = signature as *const () as usize;
        let two = refresh as *const () as usize;
        for size in 1..=13 {
            let none = vec![1; size];
            assert_eq!(of(&none), of(&vec![usize::MAX >> 17; size]));
            for at in 0..size {
                let mut words = none.clone();
                words[at] = one;
                assert_ne!(of(&words), of(&none), "{at} of {size}");
                for other in at + 1..size {
                    words[other] = two;
                    let so = of(&words);
                    words.swap(at, other);
                    assert_ne!(of(&words), so, "{at} and {other} of {size}");
                    words.swap(at, other);
                    words[other] = 1;
                }
            }
        }
    }
}
