//! The prompts themselves: what ships with the program, under what an operator changed.

use std::{collections::BTreeMap, path::Path};

use crate::{
    fs::{FileError, read_text_if_exists},
    i18n::{Locale, fill},
    templates,
};

/// The prompts of one language. A file `{data}/prompts/{name}.md` stands before the shipped one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    locale: Locale,
    changed: BTreeMap<String, String>,
}

impl Texts {
    /// As they ship.
    pub fn shipped(locale: Locale) -> Self {
        Self { locale, changed: BTreeMap::new() }
    }

    /// As they ship, with the files of a directory in front. Blocks; a directory that is not there changes nothing.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file that cannot be read.
    pub fn read(locale: Locale, prompts: &Path) -> Result<Self, FileError> {
        let mut changed = BTreeMap::new();
        for (name, shipped) in templates::list(locale, "prompts") {
            if let Some(text) = read_text_if_exists(&prompts.join(&name))?
                && text != shipped
            {
                changed.insert(name, text);
            }
        }
        Ok(Self { locale, changed })
    }

    /// A prompt by its name without ending, such as `builder/hiring_context`, with its placeholders
    /// filled; empty when there is none. Braces that are no known placeholder stay.
    pub fn text<V: AsRef<str>>(&self, name: &str, fields: &[(&str, V)]) -> String {
        let file = format!("{name}.md");
        let template = match self.changed.get(&file) {
            Some(changed) => changed.as_str(),
            None => templates::find(self.locale, &format!("prompts/{file}")).unwrap_or_default(),
        };
        fill(template.trim(), fields)
    }

    /// A prompt without placeholders.
    pub fn plain(&self, name: &str) -> String {
        self.text::<&str>(name, &[])
    }
}
