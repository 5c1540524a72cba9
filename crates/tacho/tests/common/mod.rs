//! A test that records has a process for itself: its body runs in a child, and what it recorded is read
//! back with the program `tacho`, which TACHO_BIN names. Without it only the child is run.
#![allow(dead_code)] // each test program uses a part of it
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CHILD: &str = "TACHO_CRATE_TEST";
const TRACE: &str = "TACHO_CRATE_TRACE";

/// A folder that is deleted afterwards.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("tacho-crate-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The events of a trace, each as `tacho cat --json` prints it.
pub struct Events(Vec<String>);

impl Events {
    pub fn read(trace: &Path) -> Option<Self> {
        let tacho = env::var_os("TACHO_BIN")?;
        let out = run(Command::new(tacho).arg("cat").arg("--json").arg(trace));
        assert!(out.status.success(), "{out:?}");
        let text = String::from_utf8(out.stdout).unwrap();
        Some(Events(text.lines().map(str::to_owned).collect()))
    }

    /// How many have all of these texts.
    pub fn count(&self, texts: &[&str]) -> usize {
        self.0.iter().filter(|line| texts.iter().all(|text| line.contains(text))).count()
    }

    /// Fails with all events unless so many have these texts.
    #[track_caller]
    pub fn expect(&self, count: usize, texts: &[&str]) {
        let found = self.count(texts);
        assert_eq!(found, count, "events with {texts:?} in\n{}", self.0.join("\n"));
    }

    /// The numbers of processes that recorded.
    pub fn processes(&self) -> std::collections::BTreeSet<&str> {
        self.0.iter().filter_map(|line| line.split("\"pid\":").nth(1)?.split(',').next()).collect()
    }
}

pub fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"))
}

/// The command that runs `test` of this program as the child.
pub fn child(test: &str, before: &[&std::ffi::OsStr]) -> Command {
    let this = env::current_exe().unwrap();
    let mut command = match before {
        [] => Command::new(this),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(this);
            command
        }
    };
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, test);
    command
}

/// Runs `body` and ends, if this is the child.
pub fn if_child(test: &str, body: impl FnOnce()) {
    if env::var(CHILD).as_deref() == Ok(test) {
        body();
        std::process::exit(0);
    }
}

/// What `body` recorded; None without TACHO_BIN.
pub fn recorded(test: &str, body: impl FnOnce()) -> Option<Events> {
    if_child(test, || {
        tacho::start().unwrap();
        body();
        if let Some(path) = env::var_os(TRACE) {
            tacho::snapshot_to(std::fs::File::create(path).unwrap()).unwrap();
        }
    });
    let folder = Folder::new(test);
    let trace = folder.join("window.tacho");
    let out = run(child(test, &[]).env(TRACE, &trace));
    assert!(out.status.success(), "{out:?}");
    Events::read(&trace)
}
