//! What is made once for each place in the code, and found again without a lock.
use core::sync::atomic::{AtomicPtr, Ordering};

struct Entry<V> {
    key: usize,
    value: V,
}

/// Values by the address of something that lasts. They are made at first use and never freed.
pub(crate) struct Table<V: 'static, const SLOTS: usize> {
    slots: [AtomicPtr<Entry<V>>; SLOTS],
}

/// How many slots are looked at before a key is given up.
const PROBES: usize = 32;

impl<V: Sync, const SLOTS: usize> Table<V, SLOTS> {
    #[allow(clippy::declare_interior_mutable_const)] // it initialises the array
    const EMPTY: AtomicPtr<Entry<V>> = AtomicPtr::new(core::ptr::null_mut());

    pub const fn new() -> Self {
        Table { slots: [Self::EMPTY; SLOTS] }
    }

    /// None when there is no room left near where the key belongs.
    #[inline]
    pub fn get<K>(&self, key: &'static K, make: impl Fn() -> V) -> Option<&'static V> {
        let key = key as *const K as usize;
        // Addresses differ in their middle bits most.
        let hash = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        for probe in 0..PROBES {
            let slot = &self.slots[(hash as usize + probe) % SLOTS];
            let mut found = slot.load(Ordering::Acquire);
            if found.is_null() {
                found = fill(slot, key, &make);
            }
            // SAFETY: an entry is whole when it is in a slot, and is never freed.
            let entry = unsafe { &*found };
            if entry.key == key {
                return Some(&entry.value);
            }
        }
        None
    }
}

/// What is in the slot then: the new entry, or one that another thread has put there meanwhile.
#[cold]
fn fill<V>(slot: &AtomicPtr<Entry<V>>, key: usize, make: &impl Fn() -> V) -> *mut Entry<V> {
    let new = Box::into_raw(Box::new(Entry { key, value: make() }));
    let put =
        slot.compare_exchange(core::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
    match put {
        Ok(_) => new,
        Err(theirs) => {
            // SAFETY: nobody else has seen it.
            drop(unsafe { Box::from_raw(new) });
            theirs
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn threads_find_the_same_value_and_a_full_table_has_none() {
        static TABLE: Table<usize, 64> = Table::new();
        static MADE: AtomicUsize = AtomicUsize::new(0);
        static KEYS: [u64; 200] = [0; 200];
        let all = || -> Vec<Option<usize>> {
            let make = || MADE.fetch_add(1, Ordering::Relaxed);
            KEYS.iter().map(|key| TABLE.get(key, make).copied()).collect()
        };
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(all)).collect();
        let lists: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        let last = all();
        let found = last.iter().flatten().count();
        assert!((40..=64).contains(&found), "{found} of 64 slots are used");
        for list in lists {
            for (then, now) in list.iter().zip(&last) {
                assert!(then.is_none() || then == now);
            }
        }
    }
}
