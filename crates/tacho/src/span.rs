//! Stretches of work with a name.
use crate::name::SpanName;
use crate::sys;
use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;

/// A synchronous span, from here until it is dropped: [`span!`](crate::span!) and [`SpanName::enter`].
///
/// It begins and ends on one thread, within one poll; do not keep it across an `.await`. For that there
/// is [`AsyncSpan`].
#[must_use = "the span ends when this is dropped"]
pub struct Span {
    name: &'static SpanName,
    // What begins on a thread ends on it.
    here: PhantomData<*const ()>,
}

impl SpanName {
    /// A synchronous span begins.
    #[inline]
    pub fn enter(&'static self) -> Span {
        // SAFETY: it is static.
        unsafe { sys::tacho_span_begin(self.as_raw()) };
        Span { name: self, here: PhantomData }
    }

    /// An asynchronous span begins.
    #[inline]
    pub fn begin(&'static self) -> AsyncSpan {
        AsyncSpan::new(self, 0)
    }

    /// An asynchronous span begins whose number the program chooses, as that of a request; no other that
    /// is open may have it. It ends by [`SpanName::end_id`].
    #[inline]
    pub fn begin_id(&'static self, id: u64, parent: Option<u64>) {
        // SAFETY: it is static.
        unsafe { sys::tacho_async_begin(self.as_raw(), id, parent.unwrap_or(0)) }
    }

    /// The asynchronous span with this number ends.
    #[inline]
    pub fn end_id(&'static self, id: u64) {
        // SAFETY: it is static.
        unsafe { sys::tacho_async_end(self.as_raw(), id) }
    }
}

impl Span {
    /// The trace id of the program's tracing system, for the innermost span of this thread.
    #[inline]
    pub fn trace_id(&self, id: TraceId) {
        put_trace_id(0, id);
    }
}

impl Drop for Span {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is static.
        unsafe { sys::tacho_span_end(self.name.as_raw()) }
    }
}

/// A span from here to the end of the block: `let _span = tacho::span!("parse");`
#[macro_export]
macro_rules! span {
    ($text:expr) => {{
        static SPAN: $crate::SpanName = $crate::SpanName::new($crate::name!($text));
        SPAN.enter()
    }};
}

/// A span that begins here, and ends where it is dropped: on any thread, in any task.
///
/// ```
/// # use tacho::{name, SpanName};
/// static REQUEST: SpanName = SpanName::new(name!("request"));
/// static QUERY: SpanName = SpanName::new(name!("query"));
/// async fn handle() {
///     let request = REQUEST.begin();
///     let query = request.child(&QUERY);
/// }
/// ```
#[must_use = "the span ends when this is dropped"]
pub struct AsyncSpan {
    name: &'static SpanName,
    id: u64,
}

impl AsyncSpan {
    #[inline]
    fn new(name: &'static SpanName, parent: u64) -> Self {
        // SAFETY: the name is static.
        unsafe {
            let id = sys::tacho_task_new();
            sys::tacho_async_begin(name.as_raw(), id, parent);
            AsyncSpan { name, id }
        }
    }

    /// A span within this one begins.
    #[inline]
    pub fn child(&self, name: &'static SpanName) -> AsyncSpan {
        AsyncSpan::new(name, self.id)
    }

    /// Its number, which no other span or task of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The trace id of the program's tracing system.
    #[inline]
    pub fn trace_id(&self, id: TraceId) {
        put_trace_id(self.id, id);
    }
}

impl TraceId {
    /// It is that of the asynchronous span with this number; see [`SpanName::begin_id`].
    #[inline]
    pub fn set(self, span: u64) {
        put_trace_id(span, self);
    }
}

impl Drop for AsyncSpan {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is static.
        unsafe { sys::tacho_async_end(self.name.as_raw(), self.id) }
    }
}

#[inline]
pub(crate) fn put_trace_id(span: u64, id: TraceId) {
    // SAFETY: there are only numbers.
    unsafe { sys::tacho_span_trace_id(span, (id.0 >> 64) as u64, id.0 as u64) }
}

/// The 128-bit id that a distributed trace has, as in W3C Trace Context and OpenTelemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub u128);

/// A text that is no trace id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTraceId;

impl fmt::Display for NoTraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace id is a traceparent, or 32 hexadecimal digits that are not all 0")
    }
}

impl std::error::Error for NoTraceId {}

impl FromStr for TraceId {
    type Err = NoTraceId;

    /// A W3C `traceparent` (`00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`), its 32 digits
    /// alone, or a UUID.
    fn from_str(text: &str) -> Result<Self, NoTraceId> {
        let digits = match text.as_bytes() {
            [_, _, b'-', rest @ ..] if text.len() >= 55 && rest[32] == b'-' => &rest[..32],
            all => all,
        };
        let mut id: u128 = 0;
        let mut count = 0;
        for &byte in digits {
            let digit = match byte {
                b'-' if text.len() == 36 => continue,
                _ => (byte as char).to_digit(16).ok_or(NoTraceId)?,
            };
            id = id << 4 | u128::from(digit);
            count += 1;
        }
        if count == 32 && id != 0 {
            Ok(TraceId(id))
        } else {
            Err(NoTraceId)
        }
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_ids_are_read_from_what_programs_hand_on() {
        let id = TraceId(0x4bf92f3577b34da6a3ce929d0e0e4736);
        for text in [
            "4bf92f3577b34da6a3ce929d0e0e4736",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later",
            "4bf92f35-77b3-4da6-a3ce-929d0e0e4736",
            "4BF92F3577B34DA6A3CE929D0E0E4736",
        ] {
            assert_eq!(text.parse(), Ok(id), "{text}");
        }
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in [
            "",
            "4bf92f3577b34da6a3ce929d0e0e473",
            "4bf92f3577b34da6a3ce929d0e0e47361",
            "00000000000000000000000000000000",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736",
            "not a trace id, but as long as a traceparent would be...",
            "4bf92f3577b34da6a3ce929d0e0e473é",
            "ééééééééééééééééééééééééééé-",
        ] {
            assert_eq!(text.parse::<TraceId>(), Err(NoTraceId), "{text}");
        }
    }
}
