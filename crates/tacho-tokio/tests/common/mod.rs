//! A scenario runs in a process of its own, because a process has one box: the test starts itself again,
//! and reads with the `tacho` program what that recorded.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tacho::sys;

/// The program that reads traces: `TACHO_BIN`, or that of the tree's own build folder.
pub fn tacho() -> Option<PathBuf> {
    let of_tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/src/cli/tacho");
    let path = std::env::var_os("TACHO_BIN").map_or_else(|| of_tree.into(), PathBuf::from);
    path.exists().then_some(path)
}

/// One event, as `tacho cat --json` writes it.
pub struct Event(pub String);

impl Event {
    fn after(&self, key: &str) -> Option<&str> {
        let at = self.0.find(&format!("\"{key}\":"))?;
        Some(&self.0[at + key.len() + 3..])
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        let rest = self.after(key)?;
        rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()
    }

    pub fn text(&self, key: &str) -> &str {
        let rest = self.after(key).and_then(|rest| rest.strip_prefix('"')).unwrap_or("");
        &rest[..rest.find('"').unwrap_or(0)]
    }

    /// The name of the definition that a field holds.
    pub fn name(&self, key: &str) -> &str {
        let rest = self.after(key).unwrap_or("");
        let rest = rest.find("\"name\":\"").map_or("", |at| &rest[at + 8..]);
        &rest[..rest.find('"').unwrap_or(0)]
    }

    pub fn is(&self, kind: &str) -> bool {
        self.text("type") == kind
    }
}

/// What a scenario has recorded, and what it counted itself.
pub struct Outcome {
    pub events: Vec<Event>,
    counted: BTreeMap<String, u64>,
    pub report: String,
}

impl Outcome {
    pub fn count(&self, kind: &str) -> u64 {
        self.events.iter().filter(|event| event.is(kind)).count() as u64
    }

    /// Events of tasks of a kind, told by the kind of their spawn.
    pub fn of_kind(&self, event: &str, kind: &str) -> u64 {
        let tasks: Vec<_> = self
            .events
            .iter()
            .filter(|e| e.is("spawn") && e.name("kind").contains(kind))
            .filter_map(|e| e.number("task"))
            .collect();
        let of = |e: &&Event| e.is(event) && e.number("task").is_some_and(|t| tasks.contains(&t));
        self.events.iter().filter(of).count() as u64
    }

    pub fn counted(&self, what: &str) -> u64 {
        *self.counted.get(what).unwrap_or_else(|| panic!("the scenario counted no {what}"))
    }

    /// Tasks that have ended: in a poll, or without.
    pub fn ends(&self) -> u64 {
        let done = self.events.iter().filter(|e| e.is("poll-end") && e.text("result") == "done");
        done.count() as u64 + self.count("task-end")
    }

    pub fn loops(&self) -> Vec<String> {
        let mut names: Vec<_> = self
            .events
            .iter()
            .filter(|e| e.is("park"))
            .map(|e| e.name("loop").to_owned())
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Every poll that began has ended, on the same thread, and none is in a park.
    pub fn assert_sound(&self) {
        let mut open: BTreeMap<u64, (i64, bool)> = BTreeMap::new();
        for event in &self.events {
            let thread = open.entry(event.number("thread").unwrap_or(0)).or_default();
            match event.text("type") {
                "poll-begin" => {
                    assert!(!thread.1, "a poll begins in a park: {}", event.0);
                    thread.0 += 1;
                }
                "poll-end" => thread.0 -= 1,
                "park" => {
                    assert!(!thread.1, "a park in a park: {}", event.0);
                    thread.1 = true;
                }
                "unpark" => {
                    assert!(thread.1, "an unpark without a park: {}", event.0);
                    thread.1 = false;
                }
                _ => {}
            }
            assert!(thread.0 >= 0, "a poll ends that has not begun: {}", event.0);
        }
        assert!(open.values().all(|thread| thread.0 == 0), "a poll has not ended");
    }
}

/// What a scenario counted, by name.
pub type Counted = Vec<(&'static str, u64)>;

fn run_here(path: &str, body: impl FnOnce() -> Counted) -> ! {
    let counted = body();
    let result = if std::env::var_os("TACHO_SCENARIO_RUN").is_some() {
        0 // who runs it takes the trace
    } else if std::env::var_os("TACHO_SCENARIO_DUMP").is_some() {
        // From outside: with the names of functions.
        let mut dump = Command::new(tacho().expect("tacho"));
        let pid = std::process::id().to_string();
        i32::from(!dump.args(["dump", &pid, "-o", path]).status().expect("tacho").success())
    } else {
        let file = File::create(path).expect("a file for the trace");
        // SAFETY: a descriptor that is open.
        unsafe { sys::tacho_snapshot(file.as_raw_fd()) }
    };
    let mut text = format!("snapshot {}\n", result.unsigned_abs());
    for (what, count) in counted {
        text += &format!("{what} {count}\n");
    }
    std::fs::write(format!("{path}.counted"), text).expect("a file for what was counted");
    std::process::exit(0);
}

/// Runs the scenario of the test `name`. None: there is nothing to read traces with.
pub fn scenario(
    name: &str,
    settings: &[(&str, &str)],
    body: impl FnOnce() -> Counted,
) -> Option<Outcome> {
    if let Ok(path) = std::env::var("TACHO_SCENARIO_TRACE") {
        run_here(&path, body);
    }
    let Some(tacho) = tacho() else {
        eprintln!("skipped: TACHO_BIN names no tacho program");
        return None;
    };
    let folder = std::env::temp_dir().join(format!("tacho-tokio-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let trace = folder.join("trace.tacho");
    let this = std::env::current_exe().expect("this program");
    let mut command = Command::new(&this);
    if settings.iter().any(|(name, _)| *name == "TACHO_SCENARIO_RUN") {
        command = Command::new(&tacho);
        command.args(["run", "-o"]).arg(&trace).arg("--").arg(&this);
    }
    let output = command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env("TACHO_SCENARIO_TRACE", &trace)
        .env_remove("TACHO")
        .envs(settings.iter().copied())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .expect("this program again");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "the scenario {name} ended with {}: {said}", output.status);
    let read = |what: &str| {
        let output =
            Command::new(&tacho).args([what, "--json"]).arg(&trace).output().expect("tacho");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let counted = std::fs::read_to_string(folder.join("trace.tacho.counted")).expect("counts");
    let counted = counted.lines().filter_map(|line| line.split_once(' '));
    let counted: BTreeMap<_, _> =
        counted.map(|(what, n)| (what.to_owned(), n.parse().expect("a number"))).collect();
    let outcome = Outcome {
        events: read("cat").lines().map(|line| Event(line.to_owned())).collect(),
        counted,
        report: read("report"),
    };
    std::fs::remove_dir_all(&folder).expect("the folder can be deleted");
    Some(outcome)
}
