//! What is shipped for Animas and people to read: prompts, guides, skills, skeletons.
//!
//! The tree `templates/{ja,en,_shared}` is inside the binary. A file is looked up in
//! the wanted language, then English, then Japanese, then `_shared` (server-cli-ui §8.1).

use std::collections::BTreeMap;

use include_dir::{Dir, include_dir};

use crate::i18n::Locale;

static TREE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// The places a language looks in, best first.
fn order(locale: Locale) -> [&'static str; 3] {
    match locale {
        Locale::Ja => ["ja", "en", "_shared"],
        Locale::En => ["en", "ja", "_shared"],
    }
}

/// A shipped text, such as `prompts/behavior_rules.md`.
pub fn find(locale: Locale, path: &str) -> Option<&'static str> {
    order(locale).into_iter().find_map(|place| TREE.get_file(format!("{place}/{path}"))?.contents_utf8())
}

/// All shipped texts below a directory, by their path relative to it. An empty `under` lists everything.
pub fn list(locale: Locale, under: &str) -> BTreeMap<String, &'static str> {
    let mut found = BTreeMap::new();
    for place in order(locale) {
        let base = if under.is_empty() { place.to_owned() } else { format!("{place}/{under}") };
        if let Some(dir) = TREE.get_dir(&base) {
            collect(dir, &base, &mut found);
        }
    }
    found
}

/// All shipped texts of one language below a directory, without looking elsewhere: for
/// stories, whose people have other names in each language.
pub fn own(locale: Locale, under: &str) -> BTreeMap<String, &'static str> {
    let mut found = BTreeMap::new();
    let base = format!("{locale}/{under}");
    if let Some(dir) = TREE.get_dir(&base) {
        collect(dir, &base, &mut found);
    }
    found
}

fn collect(dir: &Dir<'static>, base: &str, found: &mut BTreeMap<String, &'static str>) {
    for file in dir.files() {
        let path = file.path().to_string_lossy();
        if let (Some(relative), Some(text)) = (path.strip_prefix(&format!("{base}/")), file.contents_utf8()) {
            found.entry(relative.to_owned()).or_insert(text);
        }
    }
    for sub in dir.dirs() {
        collect(sub, base, found);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn both_languages_ship_the_same_files() {
        let names = |place: &str| {
            let mut found = BTreeMap::new();
            if let Some(dir) = TREE.get_dir(place) {
                collect(dir, place, &mut found);
            }
            // the story of the demo has other people in each language
            found.into_keys().filter(|path| !path.starts_with("demo/")).collect::<BTreeSet<_>>()
        };
        assert_eq!(names("ja"), names("en"));
        assert!(!names("ja").is_empty());
        assert_eq!(own(Locale::Ja, "demo").len(), own(Locale::En, "demo").len());
    }
}
