//! What a program says through `tracing`, in the trace.
use crate::name::{Name, SpanName};
use crate::once::Table;
use crate::span::{put_trace_id, TraceId};
use crate::text::Line;
use crate::{is_recording, log, sys};
use core::cell::Cell;
use core::fmt::{self, Write};
use core::ptr;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Level, LevelFilter, Metadata, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// A layer for `tracing-subscriber` that records spans and events.
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// tracing_subscriber::registry().with(tacho::layer()).init();
/// ```
///
/// - A span is an asynchronous span from when it is made until it is closed, with its parent; while it
///   is entered, the thread has a synchronous span of the same name. Its fields are a log line at its
///   beginning.
/// - An event is a log line: target, message and fields. The levels are numbers: 1 error, 2 warn,
///   3 info, 4 debug, 5 trace.
/// - A field `trace_id` or `traceparent` of a span, with 32 hexadecimal digits, a W3C `traceparent` or a
///   number of 128 bits, is its trace id.
///
/// Filters are those of `tracing-subscriber` (`tacho::layer().with_filter(...)`);
/// [`Layer::with_max_level`] is a cheap one of its own. While recording is off, nothing is formatted.
pub fn layer() -> Layer {
    Layer { most: LevelFilter::TRACE, span_fields: true }
}

/// What [`layer`] makes.
#[derive(Clone, Debug)]
pub struct Layer {
    most: LevelFilter,
    span_fields: bool,
}

impl Layer {
    /// Records only what is as severe as `level`, or more. Other layers are not concerned.
    pub fn with_max_level(mut self, level: impl Into<LevelFilter>) -> Self {
        self.most = level.into();
        self
    }

    /// Whether the fields of a span are recorded as a log line; they are, unless this says no.
    pub fn with_span_fields(mut self, yes: bool) -> Self {
        self.span_fields = yes;
        self
    }

    #[inline]
    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        is_recording() && *metadata.level() <= self.most
    }
}

/// The name of the spans of a place in the code.
fn name_of(metadata: &'static Metadata<'static>) -> *const sys::tacho_name {
    static NAMES: Table<SpanName, 4096> = Table::new();
    let make = || SpanName::new(Name::at(metadata.name(), metadata.file(), metadata.line()));
    NAMES.get(metadata, make).map_or(ptr::null(), SpanName::as_raw)
}

#[derive(Clone, Copy)]
struct Last {
    layer: usize, // address: another one may have another registry, and that the same numbers
    id: u64,
    name: *const sys::tacho_name,
}

thread_local! {
    /// The span that this thread had to do with last: mostly it is the next one too, and to find it in
    /// the registry takes longer than to record it.
    static LAST: Cell<Last> = const { Cell::new(Last { layer: 0, id: 0, name: ptr::null() }) };
}

/// The registry gives small numbers too; these are others than those of tasks and spans of this crate.
fn number(id: &Id) -> u64 {
    id.into_u64() ^ 1 << 62
}

fn level(metadata: &Metadata<'_>) -> u8 {
    match *metadata.level() {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        _ => 5,
    }
}

/// Puts ` name=value` for each field into a line, the message first and without its name.
struct Fields {
    line: Line,
    trace_id: Option<TraceId>,
}

impl Fields {
    fn new(title: &str) -> Self {
        let mut line = Line::new();
        line.push(title);
        line.push(":");
        Fields { line, trace_id: None }
    }

    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        self.line.push(" ");
        if field.name() != "message" {
            self.line.push(field.name());
            self.line.push("=");
        }
        let _ = self.line.write_fmt(value);
    }

    fn is_trace_id(field: &Field) -> bool {
        matches!(field.name(), "trace_id" | "traceparent")
    }

    fn look(&mut self, field: &Field, text: &str) {
        if Self::is_trace_id(field) {
            self.trace_id = text.trim_matches('"').parse().ok().or(self.trace_id);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if Self::is_trace_id(field) {
            let mut text = Line::new();
            let _ = write!(text, "{value:?}");
            self.look(field, text.as_str());
        }
        self.put(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.look(field, value);
        self.put(field, format_args!("{value}"));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        if Self::is_trace_id(field) && value != 0 {
            self.trace_id = Some(TraceId(value));
        }
        self.put(field, format_args!("{value}"));
    }
}

impl Layer {
    fn put_fields(&self, metadata: &Metadata<'_>, id: &Id, record: impl FnOnce(&mut Fields)) {
        let mut fields = Fields::new(metadata.name());
        record(&mut fields);
        if let Some(trace_id) = fields.trace_id {
            put_trace_id(number(id), trace_id);
        }
        if self.span_fields {
            log::put(level(metadata), &fields.line);
        }
    }

    /// The name of a span that is recorded.
    #[inline]
    fn name<S>(&self, id: &Id, context: &Context<'_, S>) -> Option<*const sys::tacho_name>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let last = LAST.get();
        if last.id == id.into_u64() && last.layer == self.address() && is_recording() {
            return Some(last.name);
        }
        let metadata = context.metadata(id).filter(|m| self.wants(m))?;
        let name = name_of(metadata);
        self.remember(id, name);
        Some(name)
    }

    fn address(&self) -> usize {
        self as *const Self as usize
    }

    #[inline]
    fn remember(&self, id: &Id, name: *const sys::tacho_name) {
        LAST.set(Last { layer: self.address(), id: id.into_u64(), name });
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Layer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        if !self.wants(metadata) {
            return;
        }
        let parent = context.span(id).and_then(|span| span.parent());
        let parent = parent.map_or(0, |span| number(&span.id()));
        let name = name_of(metadata);
        // SAFETY: the name lasts.
        unsafe { sys::tacho_async_begin(name, number(id), parent) };
        self.remember(id, name);
        if !attributes.values().is_empty() {
            self.put_fields(metadata, id, |fields| attributes.record(fields));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(metadata) = context.metadata(id).filter(|m| self.wants(m)) else { return };
        if !values.is_empty() {
            self.put_fields(metadata, id, |fields| values.record(fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if !self.wants(metadata) {
            return;
        }
        let mut fields = Fields::new(metadata.target());
        event.record(&mut fields);
        log::put(level(metadata), &fields.line);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(name) = self.name(id, &context) {
            // SAFETY: the name lasts.
            unsafe { sys::tacho_span_begin(name) }
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if let Some(name) = self.name(id, &context) {
            // SAFETY: the name lasts.
            unsafe { sys::tacho_span_end(name) }
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(name) = self.name(&id, &context) {
            // SAFETY: the name lasts.
            unsafe { sys::tacho_async_end(name, number(&id)) }
            LAST.set(Last { layer: 0, id: 0, name: ptr::null() });
        }
    }
}
