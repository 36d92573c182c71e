//! Replacing whole files: the old one or the new one, never half of either.

use std::{
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

use super::FileError;

/// Who may read a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Privacy {
    /// As other files of the user.
    #[default]
    Normal,
    /// Only the user: secrets and configuration (mode 0600).
    Secret,
}

/// Replaces a file: temp file beside it, sync, rename, sync of the directory.
///
/// Missing parent directories are made. The mode of an existing file is kept
/// unless [`Privacy::Secret`] asks for less.
///
/// # Errors
///
/// [`FileError::Io`] names the path; the old file is then untouched.
pub fn write_atomic(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<(), FileError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_dir(directory)?;
    replace(path, directory, bytes, privacy).map_err(|error| FileError::io("write", path, error))
}

fn replace(path: &Path, directory: &Path, bytes: &[u8], privacy: Privacy) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
    let mode = match privacy {
        Privacy::Secret => 0o600,
        Privacy::Normal => match fs_err::metadata(path) {
            Ok(old) => old.permissions().mode() & 0o7777,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0o644,
            Err(error) => return Err(error),
        },
    };
    let mut temp = tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .suffix(".tmp")
        .permissions(std::fs::Permissions::from_mode(mode))
        .tempfile_in(directory)?;
    temp.write_all(bytes)?;
    temp.as_file().sync_data()?;
    temp.persist(path).map_err(|error| error.error)?;
    sync_dir(directory)
}

/// Makes a directory and its parents.
///
/// # Errors
///
/// [`FileError::Io`] names the directory.
pub fn create_dir(directory: &Path) -> Result<(), FileError> {
    create_dir_with(directory, 0o755)
}

/// Makes a directory that only the user can open (mode 0700). One that is there already keeps its mode.
///
/// # Errors
///
/// [`FileError::Io`] names the directory.
pub fn create_private_dir(directory: &Path) -> Result<(), FileError> {
    create_dir_with(directory, 0o700)
}

fn create_dir_with(directory: &Path, mode: u32) -> Result<(), FileError> {
    if directory.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(directory)
        .map_err(|error| FileError::io("create directory", directory, error))
}

/// Moves a file, making parent directories of its new place. Refuses to replace anything.
///
/// # Errors
///
/// [`FileError::Io`] names the old path.
pub fn move_file(from: &Path, to: &Path) -> Result<(), FileError> {
    if let Some(parent) = to.parent() {
        create_dir(parent)?;
    }
    let moved = (|| {
        if fs_err::symlink_metadata(to).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists", to.display())));
        }
        fs_err::rename(from, to)?;
        for directory in [from.parent(), to.parent()].into_iter().flatten() {
            sync_dir(directory)?;
        }
        Ok(())
    })();
    moved.map_err(|error| FileError::io("move", from, error))
}

/// Removes a file that may be gone already; whether it was there.
///
/// # Errors
///
/// [`FileError::Io`] names the path.
pub fn remove_if_exists(path: &Path) -> Result<bool, FileError> {
    match fs_err::remove_file(path) {
        Ok(()) => {
            if let Some(directory) = path.parent() {
                sync_dir(directory).map_err(|error| FileError::io("remove", path, error))?;
            }
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FileError::io("remove", path, error)),
    }
}

/// Makes a rename in a directory durable.
pub(super) fn sync_dir(directory: &Path) -> io::Result<()> {
    fs_err::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_leaves_no_temp_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b.md");
        write_atomic(&path, "一".as_bytes(), Privacy::Normal).unwrap();
        write_atomic(&path, "二".as_bytes(), Privacy::Normal).unwrap();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "二");
        assert_eq!(fs_err::read_dir(dir.path().join("a")).unwrap().count(), 1);
    }

    #[test]
    fn a_secret_is_readable_by_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        write_atomic(&path, b"{}", Privacy::Normal).unwrap();
        write_atomic(&path, b"{}", Privacy::Secret).unwrap();
        assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn moving_never_replaces() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("x/b"));
        write_atomic(&a, b"a", Privacy::Normal).unwrap();
        write_atomic(&b, b"b", Privacy::Normal).unwrap();
        assert!(move_file(&a, &b).is_err());
        assert_eq!(fs_err::read(&b).unwrap(), b"b");
    }
}
