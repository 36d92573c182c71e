//! Paths that models and people hand in, kept inside a directory.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use unicode_normalization::UnicodeNormalization;

use super::FileError;

/// A directory that nothing leads out of: no `..`, no absolute path, no symlink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jail {
    root: PathBuf,
}

impl Jail {
    /// A jail around an existing directory.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] when there is no such directory.
    pub fn new(root: &Path) -> Result<Self, FileError> {
        let root = fs_err::canonicalize(root).map_err(|error| FileError::io("open", root, error))?;
        Ok(Self { root })
    }

    /// The directory, without symlinks.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The real path of a relative one. The file need not exist; what exists of its way is
    /// followed, and must stay inside. A name that exists only in the other Unicode form (NFD) is found.
    ///
    /// # Errors
    ///
    /// [`FileError::Outside`].
    pub fn resolve(&self, relative: &str) -> Result<PathBuf, FileError> {
        let outside = || FileError::Outside { path: relative.chars().take(200).collect(), root: self.root.clone() };
        if relative.contains('\0') {
            return Err(outside());
        }
        let mut real = self.root.clone();
        for component in Path::new(relative).components() {
            match component {
                Component::Normal(name) => {
                    let name = name.to_string_lossy();
                    let next = existing_form(&real, &name);
                    real = match fs_err::canonicalize(&next) {
                        Ok(real) if real.starts_with(&self.root) => real,
                        Ok(_) => return Err(outside()),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {
                            // a dangling symlink would be followed by a write
                            if fs_err::symlink_metadata(&next).is_ok() {
                                return Err(outside());
                            }
                            next
                        }
                        Err(error) => return Err(FileError::io("open", &next, error)),
                    };
                }
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        Ok(real)
    }
}

/// `name` as it is on disk, or in NFC when it is not there in any form.
fn existing_form(directory: &Path, name: &str) -> PathBuf {
    let nfc: String = name.nfc().collect();
    let nfd: String = name.nfd().collect();
    [name, &nfc, &nfd]
        .into_iter()
        .map(|form| directory.join(form))
        .find(|path| fs_err::symlink_metadata(path).is_ok())
        .unwrap_or_else(|| directory.join(&nfc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("home");
        fs_err::create_dir_all(root.join("notes")).unwrap();
        fs_err::write(dir.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        std::os::unix::fs::symlink("../new-file", root.join("dangling")).unwrap();
        std::os::unix::fs::symlink("notes", root.join("inside")).unwrap();
        let jail = Jail::new(&root).unwrap();
        for bad in ["../secret", "/etc/passwd", "notes/../../secret", "link", "dangling", "a\0b"] {
            assert!(matches!(jail.resolve(bad), Err(FileError::Outside { .. })), "{bad}");
        }
        assert_eq!(jail.resolve("inside/a.md").unwrap(), jail.root().join("notes/a.md"));
        assert_eq!(jail.resolve("new/deep/a.md").unwrap(), jail.root().join("new/deep/a.md"));
    }

    #[test]
    fn finds_a_name_written_by_another_system() {
        let dir = tempfile::tempdir().unwrap();
        let nfd: String = "が.md".nfd().collect();
        fs_err::write(dir.path().join(&nfd), "x").unwrap();
        let jail = Jail::new(dir.path()).unwrap();
        assert_eq!(jail.resolve("が.md").unwrap(), jail.root().join(&nfd));
    }
}
