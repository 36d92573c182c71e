//! Opening and replacing files by paths that were checked, without following a link that was put in since.
//!
//! A path that has been checked is free of links. On Linux the kernel is told so
//! (`RESOLVE_NO_SYMLINKS`), and a file is replaced inside a directory that is held open.

use std::{io, path::Path};

use animaworks_core::fs::FileError;

/// What is at a path.
#[derive(Debug)]
pub(crate) enum Content {
    File(Vec<u8>),
    /// A file of this many bytes, which is too many.
    TooLarge(u64),
    /// A directory, a pipe, a device.
    NoFile,
}

/// Reads a file. Blocks.
pub(crate) fn read(real: &Path, max_bytes: u64) -> Result<Content, FileError> {
    read_inner(real, max_bytes).map_err(|error| FileError::io("read", real, error))
}

fn read_inner(real: &Path, max_bytes: u64) -> io::Result<Content> {
    use io::Read;
    let file = os::open(real)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Content::NoFile);
    }
    if metadata.len() > max_bytes {
        return Ok(Content::TooLarge(metadata.len()));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(Content::File(bytes))
}

/// Replaces a file, making the directories above it. Blocks.
pub(crate) fn write(real: &Path, bytes: &[u8]) -> Result<(), FileError> {
    os::write(real, bytes)
}

/// Makes a directory and those above it. Blocks.
pub(crate) fn directory(real: &Path) -> Result<(), FileError> {
    os::directory(real).map(drop).map_err(|error| FileError::io("create directory", real, error))
}

#[cfg(target_os = "linux")]
mod os {
    use std::{
        fs::File,
        io,
        os::fd::{AsRawFd, OwnedFd},
        path::{Component, Path, PathBuf},
    };

    use animaworks_core::fs::{FileError, Privacy, create_dir, write_atomic};
    use nix::{
        errno::Errno,
        fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2},
    };

    /// Not blocking: a pipe that nobody writes to would hold us for ever.
    pub(super) fn open(real: &Path) -> io::Result<File> {
        let how = OpenHow::new()
            .flags(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY)
            .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        Ok(File::from(openat2(AT_FDCWD, real, how)?))
    }

    fn hold(real: &Path) -> Result<OwnedFd, Errno> {
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        openat2(AT_FDCWD, real, how)
    }

    /// The directory, held open; what was missing of it is made below what was there.
    pub(super) fn directory(real: &Path) -> io::Result<OwnedFd> {
        let mut there = real;
        let mut missing = Vec::new();
        let mut held = loop {
            match hold(there) {
                Ok(held) => break held,
                Err(Errno::ENOENT) => {
                    let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else {
                        return Err(io::ErrorKind::NotFound.into());
                    };
                    missing.push(name.to_owned());
                    there = parent;
                }
                Err(error) => return Err(error.into()),
            }
        };
        for name in missing.into_iter().rev() {
            if !matches!(Path::new(&name).components().next(), Some(Component::Normal(_))) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            create_dir(&through(&held).join(&name)).map_err(io::Error::other)?;
            let how = OpenHow::new()
                .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
                .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_BENEATH);
            held = openat2(&held, Path::new(&name), how)?;
        }
        Ok(held)
    }

    /// A directory that is held, by a name that cannot lead elsewhere.
    fn through(held: &OwnedFd) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()))
    }

    pub(super) fn write(real: &Path, bytes: &[u8]) -> Result<(), FileError> {
        let failed = |error: io::Error| FileError::io("write", real, error);
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        };
        let held = directory(parent).map_err(failed)?;
        let place = through(&held).join(name);
        write_atomic(&place, bytes, Privacy::Normal).map_err(|error| match error {
            FileError::Io { action, source, .. } => FileError::io(action, real, source),
            other => other,
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod os {
    use std::{fs::File, io, path::Path};

    use animaworks_core::fs::{FileError, Privacy, create_dir, write_atomic};

    pub(super) fn open(real: &Path) -> io::Result<File> {
        File::open(real)
    }

    pub(super) fn directory(real: &Path) -> io::Result<()> {
        create_dir(real).map_err(io::Error::other)
    }

    pub(super) fn write(real: &Path, bytes: &[u8]) -> Result<(), FileError> {
        write_atomic(real, bytes, Privacy::Normal)
    }
}
