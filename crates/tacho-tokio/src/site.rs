//! Spawn sites: the place of a spawn and the type of what is spawned there, as the kind of the task.
//!
//! A site is made when something is spawned there for the first time, and stays. It is found in a table
//! without locks: a hash of two addresses, then a few loads.

use std::ffi::CString;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

use tacho::sys;

use crate::name;

const BITS: u32 = 12;
const SIZE: usize = 1 << BITS;
/// A site that is not among so many has no room.
const PROBES: usize = 64;

pub(crate) struct Site {
    place: &'static Location<'static>,
    /// Address of the name of the type; 0: what is known of the place alone.
    type_at: usize,
    pub(crate) kind: sys::tacho_name,
    /// Of a place: tasks are spawned here through this crate, and tell of themselves.
    #[cfg(tokio_hooks)]
    pub(crate) tells: std::sync::atomic::AtomicBool,
    /// Of a place: tasks are spawned here that do not.
    #[cfg(tokio_hooks)]
    pub(crate) plain: std::sync::atomic::AtomicBool,
}

#[allow(clippy::declare_interior_mutable_const)]
const FREE: AtomicPtr<Site> = AtomicPtr::new(ptr::null_mut());
static TABLE: [AtomicPtr<Site>; SIZE] = [FREE; SIZE];

/// A text that lasts. One that holds a zero byte ends there.
pub(crate) fn lasting(text: &str) -> *const std::ffi::c_char {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default().into_raw()
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn start_of(place: &'static Location<'static>, type_at: usize) -> usize {
    let key = (ptr::from_ref(place) as usize ^ type_at.rotate_left(32)) as u64;
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize
}

impl Site {
    fn new(place: &'static Location<'static>, type_name: Option<&'static str>) -> Site {
        let text = match type_name {
            Some(name) if name::is_block(name) => format!("{}:{}", name::short(name), place.line()),
            Some(name) => name::short(name),
            None => format!("{}:{}", base_name(place.file()), place.line()),
        };
        Site {
            place,
            type_at: type_name.map_or(0, |name| name.as_ptr() as usize),
            kind: sys::tacho_name::new(
                sys::TACHO_DEF_KIND,
                0,
                lasting(&text),
                lasting(place.file()),
                place.line(),
                ptr::null(),
            ),
            #[cfg(tokio_hooks)]
            tells: false.into(),
            #[cfg(tokio_hooks)]
            plain: false.into(),
        }
    }

    /// The site, or where it would stand.
    #[inline]
    fn find(place: &'static Location<'static>, type_at: usize) -> Result<&'static Site, usize> {
        let start = start_of(place, type_at);
        for i in 0..PROBES {
            let at = (start + i) % SIZE;
            // Acquire: with the pointer comes what it points to.
            let site = TABLE[at].load(Ordering::Acquire);
            if site.is_null() {
                return Err(at);
            }
            // SAFETY: sites are never freed.
            let site: &'static Site = unsafe { &*site };
            if ptr::eq(site.place, place) && site.type_at == type_at {
                return Ok(site);
            }
        }
        Err(SIZE) // no room
    }

    #[inline]
    pub(crate) fn of(
        place: &'static Location<'static>,
        type_name: Option<&'static str>,
    ) -> &'static Site {
        let type_at = type_name.map_or(0, |name| name.as_ptr() as usize);
        match Site::find(place, type_at) {
            Ok(site) => site,
            Err(_) => Site::make(place, type_name),
        }
    }

    /// What is known of the place alone, if something was spawned there.
    #[cfg(tokio_hooks)]
    #[inline]
    pub(crate) fn known(place: &'static Location<'static>) -> Option<&'static Site> {
        Site::find(place, 0).ok()
    }

    #[cold]
    fn make(place: &'static Location<'static>, type_name: Option<&'static str>) -> &'static Site {
        static OTHERS: OnceLock<Site> = OnceLock::new();
        crate::idle::refresh();
        let made = Box::into_raw(Box::new(Site::new(place, type_name)));
        let type_at = type_name.map_or(0, |name| name.as_ptr() as usize);
        loop {
            match Site::find(place, type_at) {
                // Another thread was faster. What it made is used; this one is left alone.
                Ok(site) => return site,
                // A program with thousands of sites.
                Err(SIZE) => {
                    // SAFETY: it was made above, and nobody else knows it.
                    drop(unsafe { Box::from_raw(made) });
                    return OTHERS.get_or_init(|| Site::new(Location::caller(), Some("others")));
                }
                Err(at) => {
                    let null = ptr::null_mut();
                    let order = Ordering::AcqRel;
                    if TABLE[at].compare_exchange(null, made, order, Ordering::Acquire).is_ok() {
                        // SAFETY: sites are never freed.
                        return unsafe { &*made };
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_the_same_for_one_place_and_type() {
        let here = Location::caller();
        let there = Location::caller();
        let one = Site::of(here, Some("a::one"));
        assert!(ptr::eq(one, Site::of(here, Some("a::one"))));
        assert!(!ptr::eq(one, Site::of(here, Some("a::two"))));
        assert!(!ptr::eq(one, Site::of(there, Some("a::one"))));
        assert!(!ptr::eq(one, Site::of(here, None)));
    }

    #[test]
    fn threads_that_come_at_once_find_one_site() {
        let here = Location::caller();
        let made: Vec<usize> = (0..8)
            .map(|_| std::thread::spawn(move || ptr::from_ref(Site::of(here, Some("b"))) as usize))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        assert!(made.iter().all(|site| *site == made[0]));
    }

    #[test]
    fn a_text_with_a_zero_byte_ends_there() {
        // SAFETY: a text that was just made.
        let text = unsafe { std::ffi::CStr::from_ptr(lasting("one\0two")) };
        assert_eq!(text.to_str(), Ok("one"));
    }
}
