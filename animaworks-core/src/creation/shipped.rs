//! The shipped texts in one language: from a directory of the operator's where it has them, else from the program.

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
    path::PathBuf,
};

use crate::{
    fs::{self, FileError},
    i18n::Locale,
    templates,
};

/// Where new organisations and Animas take their texts from.
#[derive(Debug, Clone)]
pub struct Shipped {
    /// The language.
    pub locale: Locale,
    /// A tree `{ja,en,_shared}/…` that comes before the program's own (`ANIMAWORKS_TEMPLATES_DIR`).
    pub directory: Option<PathBuf>,
}

impl Shipped {
    /// The program's own texts.
    pub fn new(locale: Locale) -> Self {
        Self { locale, directory: None }
    }

    /// A text.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the operator's own cannot be read.
    pub fn find(&self, path: &str) -> Result<Option<Cow<'static, str>>, FileError> {
        for place in self.places() {
            if let Some(text) = fs::read_text_if_exists(&place.join(path))? {
                return Ok(Some(Cow::Owned(text)));
            }
        }
        Ok(templates::find(self.locale, path).map(Cow::Borrowed))
    }

    /// All texts below a directory, by their path relative to it.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the operator's own cannot be read.
    pub fn list(&self, under: &str) -> Result<BTreeMap<String, Cow<'static, str>>, FileError> {
        let mut found = BTreeMap::new();
        for place in self.places() {
            let base = place.join(under);
            let mut next = vec![base.clone()];
            while let Some(directory) = next.pop() {
                let list = match fs_err::read_dir(&directory) {
                    Ok(list) => list,
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(FileError::io("list", &directory, error)),
                };
                for entry in list {
                    let path = entry.map_err(|error| FileError::io("list", &directory, error))?.path();
                    if path.is_dir() {
                        next.push(path);
                    } else if let Ok(relative) = path.strip_prefix(&base) {
                        let name = relative.to_string_lossy().into_owned();
                        if let Entry::Vacant(place) = found.entry(name) {
                            place.insert(Cow::Owned(fs::read_text(&path)?));
                        }
                    }
                }
            }
        }
        for (name, text) in templates::list(self.locale, under) {
            found.entry(name).or_insert(Cow::Borrowed(text));
        }
        Ok(found)
    }

    /// The names of the directories directly below one.
    ///
    /// # Errors
    ///
    /// As [`Shipped::list`].
    pub fn directories(&self, under: &str) -> Result<Vec<String>, FileError> {
        let mut names: Vec<String> =
            self.list(under)?.keys().filter_map(|path| path.split_once('/')).map(|(name, _)| name.to_owned()).collect();
        names.dedup();
        Ok(names)
    }

    fn places(&self) -> Vec<PathBuf> {
        let order = match self.locale {
            Locale::Ja => ["ja", "en", "_shared"],
            Locale::En => ["en", "ja", "_shared"],
        };
        self.directory.iter().flat_map(|directory| order.map(|place| directory.join(place))).collect()
    }
}
