//! Where a process stands: on, off, without a box, after fork, under `tacho run`.
mod common;

use common::{child, if_child, recorded, run, Events, Folder};
use std::env;
use std::ffi::{c_char, c_void};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use tacho::{name, Counter, Event, Options, State, Status};

static SEEN: Counter = Counter::new(name!("seen", "1"));

#[derive(Event)]
struct Order {
    id: u64,
}

/// A bit of everything.
fn say_all() {
    static SPAN: tacho::SpanName = tacho::SpanName::new(name!("span"));
    SEEN.set(1);
    Order { id: 1 }.record();
    let _outer = SPAN.begin();
    let _inner = SPAN.enter();
    tacho::log!(1, "line {}", 1);
    tacho::modules_changed();
}

fn passes(command: &mut Command) {
    let out = run(command);
    assert!(out.status.success(), "{out:?}");
}

#[test]
fn pause_resume_and_stop() {
    let test = "pause_resume_and_stop";
    let Some(events) = recorded(test, || {
        assert!(tacho::is_recording());
        tacho::start().unwrap(); // again is no error
        SEEN.set(1);
        tacho::pause();
        assert_eq!(Status::get().state, State::Paused);
        SEEN.set(2);
        assert!(tacho::trigger("while it rests").is_none());
        tacho::resume();
        SEEN.set(3);
        assert_eq!(tacho::trigger("something").unwrap(), 1);
        let status = Status::get();
        assert_eq!(status.state, State::Recording);
        assert_eq!((status.dropped_records, status.threads, status.reason), (0, 1, None));
        assert!(status.box_path.unwrap().exists());
    }) else {
        return;
    };
    events.expect(2, &["\"name\":\"seen\""]);
    events.expect(0, &["\"name\":\"seen\"", "\"value\":2}"]);
    events.expect(1, &["\"type\":\"trigger\"", "\"name\":\"something\"", "\"number\":1"]);
}

#[test]
fn stopped_and_started_again() {
    let test = "stopped_and_started_again";
    if_child(test, || {
        assert_eq!(Status::get().state, State::Never);
        tacho::start().unwrap();
        let first = Status::get().box_path.unwrap();
        say_all();
        tacho::stop();
        assert_eq!(Status::get().state, State::Stopped);
        assert!(!first.exists());
        say_all();
        Options::new().max_bytes(2 << 20).service("again").start().unwrap();
        assert_eq!(Status::get().max_bytes, 2 << 20);
        say_all();
        let mut trace = Vec::new();
        let size = tacho::snapshot(&mut trace).unwrap();
        assert!(size > 1000 && size == trace.len() as u64);
        tacho::stop();
    });
    passes(child(test, &[]).env_remove("TACHO_MAX_BYTES"));
}

#[test]
fn switched_off_everything_is_a_branch() {
    let test = "switched_off_everything_is_a_branch";
    if_child(test, || {
        let error = tacho::start().unwrap_err();
        assert!(error.is_switched_off(), "{error:?}");
        assert!(error.to_string().contains("TACHO"), "{error}");
        tacho::panic_hook();
        say_all();
        assert!(!tacho::is_recording());
        assert!(tacho::snapshot(&mut Vec::new()).is_err());
        assert!(std::panic::catch_unwind(|| panic!("not recorded")).is_err());
        assert_eq!(Status::get().box_path, None);
    });
    passes(child(test, &[]).env("TACHO", "off"));
}

#[test]
fn without_a_box_everything_is_a_branch() {
    let test = "without_a_box_everything_is_a_branch";
    if_child(test, || {
        for _ in 0..2 {
            let error = tacho::start().unwrap_err();
            assert!(error.to_string().contains("/proc/self"), "{error}");
            assert_eq!(Status::get().state, State::Off);
            assert!(Status::get().reason.is_some());
            say_all();
        }
        let error = Options::new().max_bytes(7).start().unwrap_err();
        assert_eq!(error.errno(), 22, "{error}");
    });
    passes(child(test, &[]).env("TACHO_BOX_DIR", "/proc/self"));
}

#[test]
fn a_writer_that_fails_is_an_error() {
    let test = "a_writer_that_fails_is_an_error";
    if_child(test, || {
        tacho::start().unwrap();
        say_all();
        let mut small = [0u8; 10];
        let error = tacho::snapshot(&mut &mut small[..]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WriteZero);
        assert!(tacho::snapshot(&mut std::io::sink()).unwrap() > 1000);
        assert!(tacho::crash_handler("/tmp/%p.tacho").is_ok());
    });
    passes(&mut child(test, &[]));
}

extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// The child of a fork records into a box of its own, and not into its parent's.
#[test]
fn a_child_of_fork_has_its_own_box() {
    let test = "a_child_of_fork_has_its_own_box";
    let Some(events) = recorded(test, || {
        SEEN.set(1);
        let parent = Status::get().box_path;
        // SAFETY: this process has no thread that holds a lock which the child needs.
        unsafe {
            let pid = fork();
            if pid == 0 {
                SEEN.set(2);
                let own = Status::get().box_path;
                let good = own.is_some() && own != parent && tacho::is_recording();
                tacho::stop();
                _exit(if good { 0 } else { 1 });
            }
            let mut status = -1;
            assert_eq!(waitpid(pid, &mut status, 0), pid);
            assert_eq!(status, 0);
        }
        SEEN.set(3);
    }) else {
        return;
    };
    events.expect(2, &["\"name\":\"seen\""]);
    events.expect(0, &["\"name\":\"seen\"", "\"value\":2}"]);
}

/// Rust has a handler of its own for this signal, which runs after that of the recorder.
#[test]
fn a_crash_leaves_a_trace() {
    let test = "a_crash_leaves_a_trace";
    let folder = Folder::new(test);
    if_child(test, || {
        tacho::start().unwrap();
        SEEN.set(7);
        // SAFETY: there is no such memory, which is what is wanted.
        unsafe { std::ptr::null_mut::<u32>().wrapping_add(1).write_volatile(1) };
    });
    let trace = folder.join("crash.tacho");
    let out = run(child(test, &[]).env("TACHO_CRASH_FILE", &trace));
    assert_eq!(out.status.signal(), Some(11), "{out:?}");
    let Some(events) = Events::read(&trace) else { return };
    events.expect(1, &["\"name\":\"seen\"", "\"value\":7}"]);
}

/// What the program says and what the hooks see of it are in one box.
#[test]
fn under_tacho_run_there_is_one_box() {
    let test = "under_tacho_run_there_is_one_box";
    if_child(test, || {
        assert!(tacho::is_recording(), "before start");
        SEEN.set(1);
        tacho::start().unwrap();
        SEEN.set(2);
        static LOOP: tacho::Loop = tacho::Loop::new(name!("said"));
        LOOP.run_here();
        std::thread::sleep(std::time::Duration::from_millis(60));
    });
    let Some(tacho) = env::var_os("TACHO_BIN") else { return };
    let folder = Folder::new(test);
    let trace = folder.join("run.tacho");
    let before =
        [tacho.as_os_str(), "run".as_ref(), "-o".as_ref(), trace.as_os_str(), "--".as_ref()];
    passes(&mut child(test, &before));
    let events = Events::read(&trace).unwrap();
    assert_eq!(events.processes().len(), 1);
    events.expect(2, &["\"name\":\"seen\"", "\"file\":\"tacho/tests/process.rs\""]);
    // A hook saw the sleep of the thread that said that it is a loop.
    assert!(
        events.count(&["\"name\":\"clock_nanosleep\""]) + events.count(&["\"name\":\"nanosleep\""])
            > 0
    );
}

extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// A part of the program that is linked with libtacho.so, and this crate, have one recorder.
#[test]
fn with_libtacho_in_the_process_there_is_one_recorder() {
    let test = "with_libtacho_in_the_process_there_is_one_recorder";
    if_child(test, || {
        // SAFETY: it is the variable of tacho.h; NULL is RTLD_DEFAULT.
        let on = unsafe {
            let found = dlsym(std::ptr::null_mut(), c"tacho__on".as_ptr());
            found.cast::<AtomicI32>().as_ref().unwrap()
        };
        assert_eq!(on.load(Relaxed), 0);
        tacho::start().unwrap();
        SEEN.set(1);
        assert_eq!(on.load(Relaxed), 1);
    });
    let Some(build) = env::var_os("TACHO_BUILD") else { return };
    let library = std::path::Path::new(&build).join("src/core/libtacho.so");
    passes(child(test, &[]).env("LD_PRELOAD", library));
}

#[test]
fn a_panic_is_in_the_trace() {
    let Some(events) = recorded("a_panic_is_in_the_trace", || {
        std::panic::set_hook(Box::new(|_| SEEN.set(99)));
        tacho::panic_hook();
        tacho::panic_hook(); // once
        let number = 5;
        assert!(std::panic::catch_unwind(|| panic!("number {number}")).is_err());
        let named = std::thread::Builder::new().name("worker".into());
        assert!(named.spawn(|| panic!("plain")).unwrap().join().is_err());
        assert!(std::panic::catch_unwind(|| std::panic::panic_any(7)).is_err());
    }) else {
        return;
    };
    let panic = "\"class\":\"schema\",\"name\":\"panic\"";
    let here = "\"file\":\"tacho/tests/process.rs\",\"line\":";
    events.expect(3, &[panic, here]);
    events.expect(1, &[panic, "\"message\":\"number 5\""]);
    events.expect(1, &[panic, "\"message\":\"plain\"", "\"thread_name\":\"worker\""]);
    events.expect(1, &[panic, "\"message\":\"a value that is no text\""]);
    events.expect(3, &["\"type\":\"trigger\"", "panic at tacho/tests/process.rs:"]);
    // The hook that was there before has run each time.
    events.expect(3, &["\"name\":\"seen\"", "\"value\":99}"]);
}
