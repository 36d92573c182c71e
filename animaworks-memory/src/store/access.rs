//! Reading files, within the walls.

use std::path::PathBuf;

use animaworks_core::{
    MemoryError, MemoryFile, MemoryPath,
    fs::{self, FileError, Jail},
    memory::Etag,
};

use super::{Inner, origin_of, rules};
use crate::index::sources;

/// So many similar names are offered for one that is not there.
const NEAR: usize = 5;

/// A memory path, found on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Located {
    /// Where it really is.
    pub(super) file: PathBuf,
    /// The path it is known by once links are followed, relative to its root.
    pub(super) real: String,
    /// Whether it is in the Anima's own directory.
    pub(super) own: bool,
}

impl Inner {
    /// Where a path leads; a path that leads out is refused.
    pub(super) fn locate(&self, path: &MemoryPath) -> Result<Located, MemoryError> {
        let (root, rest) = sources::locate(&self.reading.dir, path.as_str());
        let own = root == self.reading.dir.root();
        fs::create_dir(&root)?;
        let jail = Jail::new(&root)?;
        let file = jail.resolve(&rest).map_err(|error| match error {
            FileError::Outside { .. } => rules::outside(path),
            other => MemoryError::File(other),
        })?;
        let real = file.strip_prefix(jail.root()).map(|real| real.to_string_lossy().into_owned()).unwrap_or(rest);
        Ok(Located { file, real, own })
    }

    /// Reads a file.
    pub(super) fn read_file(&self, path: &MemoryPath) -> Result<MemoryFile, MemoryError> {
        let located = self.locate(path)?;
        if located.file.is_dir() {
            return Err(MemoryError::Invalid { path: path.to_string(), problem: "is a directory".to_owned() });
        }
        let bytes = match fs_err::read(&located.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(MemoryError::NotFound { path: path.to_string(), near: self.near(path) });
            }
            Err(error) => return Err(FileError::io("read", &located.file, error).into()),
        };
        let text = crate::index::plan::text_of(&bytes);
        let origin = origin_of(&text);
        Ok(MemoryFile { path: path.clone(), text, etag: Etag::of(&bytes), origin })
    }

    /// Names that look like one that is not there, most alike first.
    fn near(&self, path: &MemoryPath) -> Vec<String> {
        let directory = self.directory.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let wanted = pairs(path.file_name());
        let mut near: Vec<(usize, &str)> = directory
            .files()
            .map(|(_, source)| {
                let name = source.path.rsplit('/').next().unwrap_or_default();
                let shared = pairs(name).intersection(&wanted).count() * 2;
                let same_tree = usize::from(source.path.split('/').next() == Some(path.root()));
                (shared + same_tree, source.path.as_str())
            })
            .filter(|(likeness, _)| *likeness > wanted.len())
            .collect();
        near.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        near.into_iter().take(NEAR).map(|(_, path)| path.to_owned()).collect()
    }
}

/// The neighbouring characters of a name, without its extension.
fn pairs(name: &str) -> std::collections::BTreeSet<(char, char)> {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_lowercase();
    stem.chars().zip(stem.chars().skip(1)).collect()
}
