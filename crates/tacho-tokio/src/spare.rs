//! Memory of one line of the cache each. Memory that begins with a line is dear to ask for, and tasks come
//! and go: so each thread keeps some that is not in use.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

const MOST: u32 = 32;

#[repr(C, align(64))]
pub(crate) union Line {
    next: *mut Line,
    bytes: MaybeUninit<[u8; 64]>,
}

struct Spares {
    first: Cell<*mut Line>,
    count: Cell<u32>,
}

thread_local! {
    static SPARES: Spares =
        const { Spares { first: Cell::new(ptr::null_mut()), count: Cell::new(0) } };
}

impl Spares {
    #[inline]
    fn take(&self) -> Option<NonNull<Line>> {
        let line = NonNull::new(self.first.get())?;
        // SAFETY: it is ours, and `give` has put it there.
        self.first.set(unsafe { line.as_ref().next });
        self.count.set(self.count.get() - 1);
        Some(line)
    }

    /// Whether it is kept.
    #[inline]
    fn give(&self, mut line: NonNull<Line>) -> bool {
        let keeps = self.count.get() < MOST;
        if keeps {
            // SAFETY: nobody else has it any more.
            unsafe { line.as_mut().next = self.first.get() };
            self.first.set(line.as_ptr());
            self.count.set(self.count.get() + 1);
        }
        keeps
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        while let Some(line) = self.take() {
            // SAFETY: `take` of the module has made it.
            drop(unsafe { Box::from_raw(line.as_ptr()) });
        }
    }
}

/// Memory whose content means nothing.
pub(crate) fn take() -> NonNull<Line> {
    match SPARES.try_with(Spares::take) {
        Ok(Some(line)) => line,
        // None is left, or the thread is about to end.
        _ => NonNull::from(Box::leak(Box::new(Line { bytes: MaybeUninit::uninit() }))),
    }
}

/// # Safety
/// It is from `take`, of whatever thread, and not used any more.
pub(crate) unsafe fn give(line: NonNull<Line>) {
    if !SPARES.try_with(|spares| spares.give(line)).unwrap_or(false) {
        drop(Box::from_raw(line.as_ptr()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> u32 {
        SPARES.with(|spares| spares.count.get())
    }

    #[test]
    fn what_was_given_back_is_taken_again_and_not_too_much_is_kept() {
        std::thread::spawn(|| {
            let lines: Vec<_> = (0..MOST + 8).map(|_| take()).collect();
            assert!(lines.iter().all(|line| line.as_ptr() as usize % 64 == 0));
            assert_eq!(kept(), 0);
            let (first, last) = (lines[0], lines[MOST as usize - 1]);
            // SAFETY: they were taken above.
            lines.into_iter().for_each(|line| unsafe { give(line) });
            assert_eq!(kept(), MOST);
            assert_eq!(take(), last);
            let rest: Vec<_> = (1..MOST).map(|_| take()).collect();
            assert_eq!(rest.last(), Some(&first));
            assert_eq!(kept(), 0);
            // SAFETY: as above.
            rest.into_iter().for_each(|line| unsafe { give(line) });
            // SAFETY: as above.
            unsafe { give(last) };
        })
        .join()
        .unwrap();
    }
}
