//! Sets the cfg `tokio_hooks` where Tokio has hooks for tasks and they are wanted, and `task_dumps` where it
//! can dump tasks.
use std::env::var_os;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(tokio_hooks, task_dumps)");
    if var_os("CARGO_FEATURE_UNSTABLE").is_none() {
        return;
    }
    if var_os("CARGO_CFG_TOKIO_UNSTABLE").is_some() {
        println!("cargo:rustc-cfg=tokio_hooks");
        let is = |name: &str, wanted: &[&str]| {
            var_os(name).is_some_and(|value| wanted.iter().any(|w| value == *w))
        };
        if var_os("CARGO_FEATURE_TASKDUMP").is_some()
            && is("CARGO_CFG_TARGET_OS", &["linux"])
            && is("CARGO_CFG_TARGET_ARCH", &["x86_64", "aarch64"])
        {
            println!("cargo:rustc-cfg=task_dumps");
        }
    } else {
        println!("cargo:warning=the feature `unstable` needs RUSTFLAGS=\"--cfg tokio_unstable\": without it, tasks are recorded that are spawned through tacho_tokio");
    }
}
