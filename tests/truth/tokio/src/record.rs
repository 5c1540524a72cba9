//! How tasks are spawned and a runtime is made: by Tokio alone, or through tacho.
#[cfg(not(feature = "stable"))]
pub use tokio::{spawn, task::spawn_blocking};
#[cfg(feature = "stable")]
pub use tacho_tokio::{spawn, spawn_blocking};

use tokio::runtime::Builder;

pub fn recorded(builder: &mut Builder) -> &mut Builder {
    #[cfg(feature = "stable")]
    tacho_tokio::record(builder);
    builder
}

/// How many lines wait to be written.
pub fn lines_wait(count: u64) {
    #[cfg(feature = "stable")]
    tacho::gauge!("lines in the channel", "lines", count as f64);
    #[cfg(not(feature = "stable"))]
    let _ = count;
}
