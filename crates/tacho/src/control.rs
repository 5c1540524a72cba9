//! Starting and stopping, and how recording stands.
use crate::sys::{self, tacho_options, tacho_status_info};
use crate::system;
use crate::text::{c_string, with_c};
use core::ffi::{c_char, CStr};
use core::{fmt, mem, ptr};
use std::ffi::CString;
use std::io;
#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of a recording.
///
/// The environment variable that is named beside each wins over what the program says: the one who runs
/// the program decides. Options that are not given have their defaults.
///
/// ```no_run
/// # use std::time::Duration;
/// tacho::Options::new().max_bytes(64 << 20).min_age(Duration::from_secs(10)).service("shop").start()?;
/// # Ok::<(), tacho::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is recorded before `start`"]
pub struct Options {
    max_bytes: u64,
    min_age_ns: u64,
    poll_threshold_ns: u64,
    box_dir: Option<CString>,
    service: Option<CString>,
    crash_file: Option<CString>,
    monotonic_clock: bool,
    keep_box: bool,
    dead_boxes: u32,
}

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX)
}

fn c_path(path: &Path) -> CString {
    c_string(system::bytes(path))
}

impl Options {
    /// All defaults.
    pub fn new() -> Self {
        Options::default()
    }

    /// `TACHO_MAX_BYTES`: size of the whole box, 1 MiB to 64 GiB. Default: 32 MiB.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// `TACHO_MIN_AGE`: the window that is wanted. Default: as long as `max_bytes` allows.
    pub fn min_age(mut self, age: Duration) -> Self {
        self.min_age_ns = nanoseconds(age);
        self
    }

    /// `TACHO_POLL_THRESHOLD`: shorter polls in which nothing else was recorded are counted in a
    /// histogram. Default: every poll is recorded.
    pub fn poll_threshold(mut self, threshold: Duration) -> Self {
        self.poll_threshold_ns = nanoseconds(threshold);
        self
    }

    /// `TACHO_BOX_DIR`: where the box is made; must be on tmpfs. Default: `/dev/shm/tacho-<uid>`.
    pub fn box_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.box_dir = Some(c_path(folder.as_ref()));
        self
    }

    /// `TACHO_SERVICE`: a name for this program, shown by the tools.
    pub fn service(mut self, name: &str) -> Self {
        self.service = Some(c_string(name));
        self
    }

    /// `TACHO_CRASH_FILE`: installs the crash handler; see [`crash_handler`].
    pub fn crash_file(mut self, path: impl AsRef<Path>) -> Self {
        self.crash_file = Some(c_path(path.as_ref()));
        self
    }

    /// `TACHO_CLOCK=monotonic`: reads the clock of the system and not the counter of the CPU.
    pub fn monotonic_clock(mut self, yes: bool) -> Self {
        self.monotonic_clock = yes;
        self
    }

    /// `TACHO_KEEP_BOX`: leaves the box behind also when the process ends in order.
    pub fn keep_box(mut self, yes: bool) -> Self {
        self.keep_box = yes;
        self
    }

    /// `TACHO_DEAD_BOXES`: how many boxes of dead processes may lie in the folder. Default: 8.
    pub fn dead_boxes(mut self, most: u32) -> Self {
        self.dead_boxes = most;
        self
    }

    /// Starts recording.
    ///
    /// It is no error when recording is on already, by an earlier call or because the program runs
    /// under `tacho run`: then these options are not used. After an error recording is off, and every
    /// call of this crate still works, as a branch.
    pub fn start(&self) -> Result<(), Error> {
        let text = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |t| t.as_ptr());
        let options = tacho_options {
            size: mem::size_of::<tacho_options>(),
            max_bytes: self.max_bytes,
            min_age_ns: self.min_age_ns,
            poll_threshold_ns: self.poll_threshold_ns,
            box_dir: text(&self.box_dir),
            service: text(&self.service),
            crash_file: text(&self.crash_file),
            clock: self.monotonic_clock.into(),
            keep_box: self.keep_box.into(),
            dead_boxes: self.dead_boxes,
            reserved: 0,
        };
        // SAFETY: the options are as tacho.h says.
        match unsafe { sys::tacho_start(&options) } {
            0 => Ok(()),
            e if e == -EALREADY => Ok(()),
            error => Err(Error::new(error, Status::get().reason)),
        }
    }
}

pub(crate) const NO_RECORDER: &str =
    "tacho does not record on this system: it needs Linux with glibc on x86-64 or arm64.";

const EALREADY: i32 = 114;
const ECANCELED: i32 = 125;
const ENODATA: i32 = 61;

/// Starts recording with the defaults and what the environment says: [`Options::start`].
pub fn start() -> Result<(), Error> {
    Options::new().start()
}

/// Ends recording for good, and removes the box unless it is to be kept. For switching off and on there
/// are [`pause`] and [`resume`].
pub fn stop() {
    // SAFETY: it takes nothing.
    unsafe { sys::tacho_stop() }
}

/// Recording rests; the window stays.
pub fn pause() {
    // SAFETY: it takes nothing.
    unsafe { sys::tacho_pause() }
}

/// Recording goes on after [`pause`].
pub fn resume() {
    // SAFETY: it takes nothing.
    unsafe { sys::tacho_resume() }
}

/// Whether recording is on: one load. What is recorded while it is not costs no more than this.
#[inline(always)]
pub fn is_recording() -> bool {
    sys::recording()
}

/// Why something did not work.
#[derive(Clone, Debug)]
pub struct Error {
    errno: i32,
    reason: Option<String>,
}

impl Error {
    fn new(returned: i32, reason: Option<String>) -> Self {
        Error { errno: returned.wrapping_neg(), reason }
    }

    /// The number of the system behind it.
    pub fn errno(&self) -> i32 {
        self.errno
    }

    /// Recording was switched off by `TACHO=off`.
    pub fn is_switched_off(&self) -> bool {
        self.errno == ECANCELED
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => f.write_str(reason),
            None if self.errno == ENODATA => f.write_str("Nothing is being recorded."),
            None if !cfg!(tacho_recorder) => f.write_str(NO_RECORDER),
            None => io::Error::from_raw_os_error(self.errno).fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = io::Error::from_raw_os_error(error.errno).kind();
        io::Error::new(kind, error)
    }
}

fn checked(returned: i32) -> Result<(), Error> {
    match returned {
        0 => Ok(()),
        error => Err(Error::new(error, None)),
    }
}

/// Where recording stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It was not started.
    Never,
    /// It could not be started: [`Status::reason`] says why.
    Off,
    /// It is on.
    Recording,
    /// It rests.
    Paused,
    /// It was stopped.
    Stopped,
}

/// How recording stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// Where it stands.
    pub state: State,
    /// Why it is off, or why the box could not grow, in a sentence.
    pub reason: Option<String>,
    /// The box, if there is one.
    pub box_path: Option<PathBuf>,
    /// The most that the box may take.
    pub max_bytes: u64,
    /// What it holds now.
    pub used_bytes: u64,
    /// Records that made room for newer ones.
    pub overwritten_records: u64,
    /// Records that never found room: they are lost.
    pub dropped_records: u64,
    /// How many names are defined.
    pub definitions: u32,
    /// How many threads have recorded so far.
    pub threads: u32,
}

/// A text of a C structure; None: it is empty.
fn text(of: &[c_char]) -> Option<&[u8]> {
    // SAFETY: a c_char is a byte.
    let bytes = unsafe { core::slice::from_raw_parts(of.as_ptr().cast::<u8>(), of.len()) };
    let text = CStr::from_bytes_until_nul(bytes).ok()?.to_bytes();
    (!text.is_empty()).then_some(text)
}

impl Status {
    /// How it stands now.
    pub fn get() -> Self {
        // SAFETY: zeros are valid, and the recorder fills what it knows.
        let raw = unsafe {
            let mut raw: tacho_status_info = mem::zeroed();
            raw.size = mem::size_of::<tacho_status_info>();
            if sys::tacho_status(&mut raw) != 0 {
                raw.state = sys::TACHO_STATE_OFF;
            }
            raw
        };
        let reason = text(&raw.reason).map(|t| String::from_utf8_lossy(t).into_owned());
        Status {
            state: match raw.state {
                sys::TACHO_STATE_NEVER => State::Never,
                sys::TACHO_STATE_RECORDING => State::Recording,
                sys::TACHO_STATE_PAUSED => State::Paused,
                sys::TACHO_STATE_STOPPED => State::Stopped,
                _ => State::Off,
            },
            reason: reason.or_else(|| (!cfg!(tacho_recorder)).then(|| NO_RECORDER.into())),
            box_path: text(&raw.box_).map(system::path),
            max_bytes: raw.max_bytes,
            used_bytes: raw.used_bytes,
            overwritten_records: raw.overwritten_records,
            dropped_records: raw.dropped_records,
            definitions: raw.definitions,
            threads: raw.threads,
        }
    }
}

/// Something worth keeping happened. The reason stands in the list of triggers of the trace, and wakes
/// an agent that watches. Costs a system call. The number of the trigger, from 1; `None`: recording is
/// off.
pub fn trigger(reason: &str) -> Option<u32> {
    // SAFETY: the text ends with a zero.
    match with_c(reason, |c| unsafe { sys::tacho_trigger(c) }) {
        0 => None,
        number => Some(number),
    }
}

/// Writes the window as a trace to `out`, and says how many bytes it has.
///
/// The window is taken at once, into memory, however slow `out` is. Recording goes on meanwhile. For a
/// file, [`snapshot_to`] needs no memory.
pub fn snapshot(out: &mut impl io::Write) -> io::Result<u64> {
    system::snapshot(out)
}

/// Writes the window as a trace to a file, pipe or socket, from its current position.
///
/// ```no_run
/// tacho::snapshot_to(std::fs::File::create("window.tacho")?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(unix)]
pub fn snapshot_to(file: impl AsFd) -> Result<(), Error> {
    // SAFETY: it is open.
    checked(unsafe { sys::tacho_snapshot(file.as_fd().as_raw_fd()) })
}

/// Installs the crash handler: on a fatal signal the window is written to the file `path`, in which
/// `%p` becomes the process id, and then whatever handled the signal before is run.
pub fn crash_handler(path: impl AsRef<Path>) -> Result<(), Error> {
    let path = c_path(path.as_ref());
    // SAFETY: it ends with a zero.
    checked(unsafe { sys::tacho_crash_handler(path.as_ptr()) })
}

/// Gives this thread an alternate signal stack, so that even an overflow of its stack is reported. Rust
/// gives one to its own threads.
pub fn crash_stack() -> Result<(), Error> {
    // SAFETY: it takes nothing.
    checked(unsafe { sys::tacho_crash_stack() })
}

/// The program loaded or unloaded libraries: the list of mapped code is put into the box again.
pub fn modules_changed() {
    // SAFETY: it takes nothing.
    unsafe { sys::tacho_modules_changed() }
}

/// Version of the recorder that runs, e.g. "0.1.0".
pub fn version() -> &'static str {
    // SAFETY: it is a text that lasts.
    unsafe { CStr::from_ptr(sys::tacho_version()) }.to_str().unwrap_or_default()
}
