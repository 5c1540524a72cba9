//! What differs between systems: paths as bytes, and files that the recorder writes to.
#[cfg(unix)]
mod here {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    pub fn bytes(path: &Path) -> Vec<u8> {
        path.as_os_str().as_bytes().to_vec()
    }

    pub fn path(bytes: &[u8]) -> PathBuf {
        OsStr::from_bytes(bytes).into()
    }
}

#[cfg(not(unix))]
mod here {
    use std::path::{Path, PathBuf};

    pub fn bytes(path: &Path) -> Vec<u8> {
        path.to_string_lossy().into_owned().into()
    }

    pub fn path(bytes: &[u8]) -> PathBuf {
        String::from_utf8_lossy(bytes).into_owned().into()
    }
}

/// A file in memory, which the recorder can write to and any writer is given.
#[cfg(tacho_recorder)]
mod memory {
    use core::ffi::{c_char, c_int, c_uint};
    use std::fs::File;
    use std::io::{self, Seek, Write};
    use std::os::fd::{FromRawFd, OwnedFd};

    extern "C" {
        fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
    }
    const MFD_CLOEXEC: c_uint = 1;

    pub fn snapshot(out: &mut impl Write) -> io::Result<u64> {
        // SAFETY: the name ends with a zero; what is returned is open and ours.
        let mut file = unsafe {
            let fd = memfd_create(c"tacho-snapshot".as_ptr(), MFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            File::from(OwnedFd::from_raw_fd(fd))
        };
        crate::snapshot_to(&file)?;
        file.rewind()?;
        io::copy(&mut file, out)
    }
}

#[cfg(not(tacho_recorder))]
mod memory {
    use std::io::{self, ErrorKind, Write};

    pub fn snapshot(_: &mut impl Write) -> io::Result<u64> {
        Err(io::Error::new(ErrorKind::Unsupported, crate::control::NO_RECORDER))
    }
}

pub(crate) use here::{bytes, path};
pub(crate) use memory::snapshot;
