//! Compiles the recorder: the C files of the tree, unchanged, to which the links in `c/` lead.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The recorder needs Linux, glibc and a counter that it can read without a system call.
fn is_supported() -> bool {
    let of = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    of("OS") == "linux"
        && of("ENV") == "gnu"
        && of("POINTER_WIDTH") == "64"
        && ["x86_64", "aarch64"].contains(&of("ARCH").as_str())
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|why| panic!("{}: {why}", folder.display()))
        .map(|entry| entry.expect("a folder that can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == ending))
        .collect();
    found.sort();
    found
}

/// Gives every name of the recorder an ending of this crate's. A program may have another recorder
/// in itself, as libtacho.a in C code that it is linked with; without this, the linker would take
/// some functions of the one and some of the other.
fn own_names(files: &[PathBuf]) -> String {
    let mut names = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file).expect("a C file is text");
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        names.extend(words.filter(|w| w.starts_with("tacho_")).map(str::to_owned));
    }
    names.iter().map(|name| format!("#define {name} {name}__rs\n")).collect()
}

fn main() {
    println!("cargo:rerun-if-changed=c");
    println!("cargo:rustc-check-cfg=cfg(tacho_recorder)");
    if !is_supported() {
        return;
    }
    println!("cargo:rustc-cfg=tacho_recorder");

    let mut sources = files(Path::new("c/base"), "c");
    sources.extend(files(Path::new("c/core"), "c"));
    sources.push("c/calls.c".into());
    let mut all = sources.clone();
    for folder in ["c/base", "c/core", "c/format", "c/include"] {
        all.extend(files(Path::new(folder), "h"));
    }
    for file in &all {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    let names = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("names.h");
    fs::write(&names, own_names(&all)).expect("OUT_DIR can be written");

    cc::Build::new()
        .files(&sources)
        .include("c")
        .include("c/include")
        .define("_GNU_SOURCE", None)
        .flag("-include")
        .flag(names.to_str().expect("OUT_DIR is UTF-8"))
        .std("gnu11")
        .flag("-fvisibility=hidden")
        .opt_level(2)
        .pic(true)
        .warnings(false)
        // Not `tacho`: that is what C code in the same program asks the linker for.
        .compile("tacho_of_rust");
}
