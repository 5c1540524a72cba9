//! Panics in the trace.
use crate::text::Line;
use crate::{is_recording, trigger, Event};
use core::any::Any;
use core::fmt::Write;
use core::panic::Location;
use std::panic;
use std::sync::Once;

#[derive(Event)]
#[tacho(name = "panic")]
struct Panic<'a> {
    message: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
}

/// From now on a panic is in the trace: an event `panic` with message and place, and a trigger,
/// so that an agent that watches keeps the window. Then the hook that was there before runs, as the one
/// that prints the message. Calling this again changes nothing.
///
/// A panic that ends the process in order (in `main`) deletes the box as any exit does, unless an agent
/// looks after it or [`Options::keep_box`](crate::Options::keep_box) is set. With `panic = "abort"` the
/// crash handler writes its file.
pub fn panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if is_recording() {
                note(info.payload(), info.location());
            }
            before(info);
        }));
    });
}

fn note(payload: &(dyn Any + Send), place: Option<&Location<'_>>) {
    let message = (payload.downcast_ref::<&str>().copied())
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a value that is no text");
    Panic {
        message,
        file: place.map(|p| p.file()),
        line: place.map(|p| p.line()),
        column: place.map(|p| p.column()),
    }
    .record();
    // Without the message: each reason is a definition, and messages may differ without end.
    let mut reason = Line::new();
    let _ = match place {
        Some(place) => write!(reason, "panic at {place}"),
        None => write!(reason, "panic"),
    };
    trigger(reason.as_str());
}
