//! The macros of `tacho` and `tacho-tokio`; use them through those.
//!
//! They read tokens by hand: what they take is a struct with named fields, and a function, and for that
//! a parser of the whole language would take longer to compile than all the rest.
mod event;
mod main_function;
mod tokens;

use proc_macro::TokenStream;

/// Makes a struct with named fields an event with typed fields; see `tacho::Event`.
#[proc_macro_derive(Event, attributes(tacho))]
pub fn event(input: TokenStream) -> TokenStream {
    event::derive(input).unwrap_or_else(|error| error.into_tokens())
}

/// Runs `async fn main` on a Tokio runtime that is recorded, by the crate `tacho-tokio`.
///
/// ```text
/// #[tacho_tokio::main]
/// async fn main() {
///     serve().await;
/// }
/// ```
///
/// Arguments as of `tokio::main`: `flavor = "current_thread"` or `"multi_thread"`, `worker_threads = 4`;
/// and `name = "api"`, the name of the runtime in the trace.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    main_function::expand(arguments, item).unwrap_or_else(|error| error.into_tokens())
}
