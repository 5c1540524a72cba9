//! The one place in which the builds differ: who makes the runtime, and who spawns.
use crate::service;

#[cfg(not(feature = "dial9"))]
mod chosen {
    #[cfg(feature = "tacho")]
    pub use tacho_tokio::spawn;
    #[cfg(not(feature = "tacho"))]
    pub use tokio::spawn;

    pub fn run() {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all();
        #[cfg(feature = "tacho")]
        tacho_tokio::record(&mut builder);
        let runtime = builder.build().expect("a runtime");
        runtime.block_on(super::service());
    }
}

/// As dial9's README says; what is recorded is up to its DIAL9_ variables.
#[cfg(feature = "dial9")]
mod chosen {
    pub use dial9::spawn;

    #[dial9::main(config = || dial9::recorder_from_env_with(|tokio| { tokio.worker_threads(2); }))]
    pub async fn run() {
        super::service().await;
    }
}

pub use chosen::{run, spawn};
