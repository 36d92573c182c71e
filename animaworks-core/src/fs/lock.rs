//! One holder at a time, across processes.

use std::{
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{FileError, create_dir};

/// How long a new holder may take to leave its name.
const NAME_WITHIN: Duration = Duration::from_millis(100);

/// A held lock; the operating system takes it back when the process dies, however it dies.
#[derive(Debug)]
pub struct Lock {
    _file: std::fs::File,
    path: PathBuf,
}

/// Who holds a lock, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder(pub String);

impl Lock {
    /// Waits for the lock.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the lock file.
    pub fn wait(path: &Path) -> Result<Self, FileError> {
        let file = open(path)?;
        file.lock().map_err(|error| FileError::io("lock", path, error))?;
        Ok(Self { _file: file, path: path.to_owned() })
    }

    /// Takes the lock if it is free and leaves `holder` in the file for others to read;
    /// `Err` inside says who has it.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the lock file.
    pub fn try_hold(path: &Path, holder: &str) -> Result<Result<Self, Holder>, FileError> {
        let mut file = open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Ok(Err(holder_of(&mut file).map_err(|error| FileError::io("read", path, error))?));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(FileError::io("lock", path, error)),
        }
        let noted = (|| -> io::Result<()> {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(holder.as_bytes())
        })();
        noted.map_err(|error| FileError::io("write", path, error))?;
        Ok(Ok(Self { _file: file, path: path.to_owned() }))
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Who left a name in a lock file. Whoever took the lock this very moment has not written it yet.
#[allow(clippy::disallowed_methods, reason = "two processes meet here, whatever their clocks say")]
fn holder_of(file: &mut std::fs::File) -> io::Result<Holder> {
    let step = Duration::from_millis(5);
    let mut waited = Duration::ZERO;
    loop {
        let mut text = String::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_string(&mut text)?;
        if !text.trim().is_empty() || waited >= NAME_WITHIN {
            return Ok(Holder(text.trim().to_owned()));
        }
        std::thread::sleep(step);
        waited += step;
    }
}

fn open(path: &Path) -> Result<std::fs::File, FileError> {
    if let Some(parent) = path.parent() {
        create_dir(parent)?;
    }
    let file = fs_err::OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path);
    file.map(|file| file.into_parts().0).map_err(|error| FileError::io("open", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_learns_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/sakura.lock");
        let first = Lock::try_hold(&path, "chat, pid 1").unwrap().unwrap();
        assert_eq!(Lock::try_hold(&path, "other").unwrap().unwrap_err(), Holder("chat, pid 1".into()));
        drop(first);
        assert!(Lock::try_hold(&path, "other").unwrap().is_ok());
    }
}
