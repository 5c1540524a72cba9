//! What loops, kinds of tasks, spans, counters and places are called.
use crate::once::Table;
use crate::sys::{self, tacho_name};
use crate::text::leak;
use core::ffi::c_char;
use core::panic::Location;
use core::ptr;

/// A text, where it stands in the code, and a unit: what [`name!`](crate::name!) makes.
pub struct Name {
    text: *const c_char,
    file: *const c_char,
    line: u32,
    unit: *const c_char,
}

/// As a C string, checked when the program is compiled.
pub(crate) const fn c(text: &'static str) -> *const c_char {
    let bytes = text.as_bytes();
    assert!(!bytes.is_empty() && bytes[bytes.len() - 1] == 0, "the text ends with a zero");
    bytes.as_ptr().cast()
}

impl Name {
    #[doc(hidden)]
    pub const fn __new(
        text: &'static str,
        file: &'static str,
        line: u32,
        unit: Option<&'static str>,
    ) -> Self {
        let unit = match unit {
            Some(unit) => c(unit),
            None => ptr::null(),
        };
        Name { text: c(text), file: c(file), line, unit }
    }

    /// Made at run time: the texts are copied, and never freed.
    pub(crate) fn at(text: &str, file: Option<&str>, line: Option<u32>) -> Self {
        Name {
            text: leak(text),
            file: file.map_or(ptr::null(), leak),
            line: line.unwrap_or(0),
            unit: ptr::null(),
        }
    }
}

/// A name with the place at which it stands: `name!("accept")`, or with a unit `name!("sent", "bytes")`.
///
/// Texts are cut at 255 bytes.
///
/// ```
/// static SENT: tacho::Counter = tacho::Counter::new(tacho::name!("sent", "bytes"));
/// ```
#[macro_export]
macro_rules! name {
    ($text:expr) => {
        $crate::Name::__new(concat!($text, "\0"), concat!(file!(), "\0"), line!(), None)
    };
    ($text:expr, $unit:expr) => {
        $crate::Name::__new(
            concat!($text, "\0"),
            concat!(file!(), "\0"),
            line!(),
            Some(concat!($unit, "\0")),
        )
    };
}

macro_rules! name_types {
    ($($(#[$doc:meta])* $Type:ident: $class:ident, $detail:expr, $leak:ident($($unit:ident)?);)*) => {$(
        $(#[$doc])*
        ///
        /// It is written into the box at its first use while recording.
        #[repr(transparent)]
        pub struct $Type(tacho_name);

        impl $Type {
            /// For a static.
            pub const fn new(name: Name) -> Self {
                $Type(tacho_name::new(
                    sys::$class, $detail, name.text, name.file, name.line, name.unit,
                ))
            }

            /// Made at run time, with the caller's place. It is never freed, so make a few of them
            /// and not one for each event.
            #[track_caller]
            pub fn $leak(text: &str $(, $unit: &str)?) -> &'static Self {
                let at = Location::caller();
                #[allow(unused_mut)] // of those without a unit
                let mut name = Name::at(text, Some(at.file()), Some(at.line()));
                $(name.unit = leak($unit);)?
                Box::leak(Box::new(Self::new(name)))
            }

            /// For the calls of [`sys`].
            #[inline(always)]
            pub fn as_raw(&'static self) -> *const tacho_name {
                &self.0
            }
        }
    )*};
}

name_types! {
    /// The name of a loop: something that runs tasks one after the other on a thread.
    Loop: TACHO_DEF_LOOP, sys::TACHO_LEVEL_API, leak();
    /// The name of a kind of task.
    Kind: TACHO_DEF_KIND, 0, leak();
    /// The name of a span; see [`span!`](crate::span!).
    SpanName: TACHO_DEF_SPAN, 0, leak();
    /// A number that only grows.
    Counter: TACHO_DEF_COUNTER, sys::TACHO_VALUE_I64, leak(unit);
    /// A number that goes up and down.
    Gauge: TACHO_DEF_GAUGE, sys::TACHO_VALUE_F64, leak(unit);
    /// A place in the code.
    Place: TACHO_DEF_PLACE, 0, leak();
    /// A text, such as what a task waits for.
    Text: TACHO_DEF_TEXT, 0, leak();
}

impl Place {
    /// The place from which the function that calls this was called, if both are `#[track_caller]`.
    ///
    /// ```
    /// #[track_caller]
    /// fn spawn_job() {
    ///     let whence = tacho::Place::caller();
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn caller() -> Option<&'static Place> {
        Self::of(Location::caller())
    }

    /// The place of a location. It is made at its first use, which allocates, and found again
    /// without a lock. `None` when there are many thousands already.
    #[inline]
    pub fn of(location: &'static Location<'static>) -> Option<&'static Place> {
        static PLACES: Table<Place, 16384> = Table::new();
        PLACES.get(location, || {
            // A location does not know its function: the name of a place is that of its file.
            let text = location.file().rsplit('/').next().unwrap_or_default();
            Place::new(Name::at(text, Some(location.file()), Some(location.line())))
        })
    }
}

/// This place in the code, as `&'static Place`.
#[macro_export]
macro_rules! place {
    () => {{
        static PLACE: $crate::Place = $crate::Place::new($crate::name!(module_path!()));
        &PLACE
    }};
}

impl Counter {
    /// Its total now.
    #[inline]
    pub fn set(&'static self, value: u64) {
        // SAFETY: it is static.
        unsafe { sys::tacho_counter(self.as_raw(), value as i64) }
    }
}

impl Gauge {
    /// Its value now.
    #[inline]
    pub fn set(&'static self, value: f64) {
        // SAFETY: it is static.
        unsafe { sys::tacho_gauge(self.as_raw(), value) }
    }
}

/// The total of a counter, which only grows: `counter!("sent", "bytes", total)`.
#[macro_export]
macro_rules! counter {
    ($text:expr, $unit:expr, $value:expr $(,)?) => {{
        static COUNTER: $crate::Counter = $crate::Counter::new($crate::name!($text, $unit));
        COUNTER.set($value)
    }};
}

/// The value of something that goes up and down: `gauge!("load", "%", value)`.
#[macro_export]
macro_rules! gauge {
    ($text:expr, $unit:expr, $value:expr $(,)?) => {{
        static GAUGE: $crate::Gauge = $crate::Gauge::new($crate::name!($text, $unit));
        GAUGE.set($value)
    }};
}
