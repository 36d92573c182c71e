//! Where the programs of an Anima are at home: settings, sessions and logins, apart from those of the user.
//!
//! Every run has a room of its own, because settings name the socket of one turn. The
//! first room is the home itself; what must outlive a room, such as sessions, is kept
//! there and linked into the others.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use animaworks_core::{
    AnimaName, DataDir, ResultExt,
    fs::{self, FileError, Privacy, create_private_dir, remove_if_exists, write_atomic},
};

/// What the home of one program looks like.
#[derive(Debug)]
pub struct Rooms {
    /// Its directory in that of the Anima.
    pub directory: &'static str,
    /// Directories that all rooms share.
    pub shared: &'static [&'static str],
    /// Files with the user's login, as they are called in the user's home and in a room.
    pub logins: &'static [(&'static str, &'static str)],
}

/// The homes of all programs of an organisation. Cheap to clone; all clones know which rooms are taken.
#[derive(Clone)]
pub struct Homes {
    data: DataDir,
    user_home: PathBuf,
    sockets: Option<PathBuf>,
    taken: Arc<Mutex<BTreeMap<PathBuf, Vec<bool>>>>,
}

impl fmt::Debug for Homes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Homes").field("data", &self.data).finish()
    }
}

impl Homes {
    /// Homes in the Animas' directories; logins come from the user's home.
    pub fn new(data: DataDir, user_home: impl Into<PathBuf>) -> Self {
        Self { data, user_home: user_home.into(), sockets: None, taken: Arc::default() }
    }

    /// The same, with the directory of the sockets that programs may speak to.
    #[must_use]
    pub fn with_sockets(mut self, directory: impl Into<PathBuf>) -> Self {
        self.sockets = Some(directory.into());
        self
    }

    pub(super) fn sockets(&self) -> Option<&Path> {
        self.sockets.as_deref()
    }

    /// A free room; it is free again when the slot is dropped.
    ///
    /// # Errors
    ///
    /// When the room cannot be made.
    pub(super) async fn enter(&self, anima: &AnimaName, rooms: &'static Rooms) -> Result<Slot, FileError> {
        let base = self.data.anima(anima).root().join(rooms.directory);
        let number = {
            let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            let slots = taken.entry(base.clone()).or_default();
            let free = slots.iter().position(|taken| !taken).unwrap_or(slots.len());
            slots.resize(slots.len().max(free + 1), false);
            if let Some(slot) = slots.get_mut(free) {
                *slot = true;
            }
            free
        };
        let path = match number {
            0 => base.clone(),
            number => base.join("workers").join(number.to_string()),
        };
        let mut slot = Slot { homes: self.clone(), base, path, number, logins: Vec::new() };
        fs::blocking(move || {
            slot.furnish(rooms)?;
            Ok(slot)
        })
        .await
    }
}

/// A room that is taken.
#[derive(Debug)]
pub(super) struct Slot {
    homes: Homes,
    base: PathBuf,
    path: PathBuf,
    number: usize,
    logins: Vec<PathBuf>,
}

impl Slot {
    /// The room.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The home that the room belongs to.
    pub(super) fn base(&self) -> &Path {
        &self.base
    }

    /// Where the program puts what it throws away.
    pub(super) fn temp(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// The real files of the user's login that the program may read and renew.
    pub(super) fn logins(&self) -> &[PathBuf] {
        &self.logins
    }

    /// Writes a file only the program's user can read.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, FileError> {
        let path = self.path.join(name);
        write_atomic(&path, text.as_bytes(), Privacy::Secret)?;
        Ok(path)
    }

    fn furnish(&mut self, rooms: &Rooms) -> Result<(), FileError> {
        for directory in [&self.base, &self.path, &self.temp()] {
            create_private_dir(directory)?;
        }
        if self.number > 0 {
            for shared in rooms.shared {
                create_private_dir(&self.base.join(shared))?;
                link(&self.base.join(shared), &self.path.join(shared))?;
            }
        }
        for (there, here) in rooms.logins {
            let login = self.homes.user_home.join(there);
            if login.is_file() {
                link(&login, &self.path.join(here))?;
                self.logins.push(login);
            }
        }
        Ok(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.homes.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = taken.get_mut(&self.base).and_then(|slots| slots.get_mut(self.number)) {
            *slot = false;
        }
    }
}

/// Makes `at` a link to `target`; what is there already and is no link is left alone.
fn link(target: &Path, at: &Path) -> Result<(), FileError> {
    match fs_err::read_link(at) {
        Ok(there) if there == target => return Ok(()),
        Ok(_) => {
            remove_if_exists(at)?;
        }
        Err(_) if at.symlink_metadata().is_ok() => return Ok(()),
        Err(_) => {}
    }
    if let Some(parent) = at.parent() {
        create_private_dir(parent)?;
    }
    fs_err::os::unix::fs::symlink(target, at).map_err(|error| FileError::io("link", at, error))
}

/// What a program consists of on disk: its own directory, or the packages it was installed with.
pub(super) fn installation(program: &Path) -> Vec<PathBuf> {
    let real = fs_err::canonicalize(program).ignore("a program that is not there is reported when it is started");
    [Some(program.to_owned()), real]
        .into_iter()
        .flatten()
        .filter_map(|path| {
            let packages = path.ancestors().filter(|part| part.ends_with("node_modules")).last();
            packages.or_else(|| path.parent()).map(Path::to_owned)
        })
        .collect()
}

/// Finds a program by its names in a `PATH`.
pub fn find(names: &[&str], path: Option<&std::ffi::OsStr>) -> Option<PathBuf> {
    let directories: Vec<_> = std::env::split_paths(path?).filter(|directory| directory.is_absolute()).collect();
    names.iter().find_map(|name| directories.iter().map(|directory| directory.join(name)).find(|file| file.is_file()))
}
