//! Words for people and Animas, in Japanese and English.
//!
//! Code holds keys; sentences live in `locales/{ja,en}/{area}.json` and, when they
//! are longer than a sentence, in `templates/`. The first part of a key is its area.
//!
//! ```
//! use animaworks_core::{Locale, t};
//!
//! assert_eq!(t!(Locale::En, "core.lines", count = 3), "3 lines");
//! ```

use std::{collections::HashMap, fmt, str::FromStr, sync::LazyLock};

use serde::{Deserialize, Serialize};

/// A language that everything is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Locale {
    /// Japanese.
    #[default]
    Ja,
    /// English.
    En,
}

impl Locale {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ja, Self::En];

    /// The word used in configuration and directory names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ja => "ja",
            Self::En => "en",
        }
    }

    /// Reads a POSIX locale such as `ja_JP.UTF-8`; `C`, `POSIX` and everything else is English (RULINGS 41).
    pub fn from_posix(value: &str) -> Self {
        if value.to_ascii_lowercase().starts_with("ja") { Self::Ja } else { Self::En }
    }

    /// The sentence of a key, if the catalogue has it: in this language, else in English, else in Japanese.
    pub fn find(self, key: &str) -> Option<&'static str> {
        let area = key.split('.').next().unwrap_or_default();
        let pages = CATALOGUE.iter().find(|pages| pages.area == area)?;
        let lookup = |locale: Self| match locale {
            Self::Ja => pages.ja.get(key),
            Self::En => pages.en.get(key),
        };
        [self, Self::En, Self::Ja].into_iter().find_map(lookup).map(String::as_str)
    }

    /// The keys that begin with a prefix, in order: for a page that fills its own sentences.
    pub fn keys(self, prefix: &str) -> Vec<&'static str> {
        let area = prefix.split('.').next().unwrap_or_default();
        let Some(pages) = CATALOGUE.iter().find(|pages| pages.area == area) else { return Vec::new() };
        let mut keys: Vec<&str> = pages.en.keys().map(String::as_str).filter(|key| key.starts_with(prefix)).collect();
        keys.sort_unstable();
        keys
    }

    /// The sentence of a key with its placeholders filled; the key itself when there is none.
    pub fn text(self, key: &str, fields: &[(&str, String)]) -> String {
        match self.find(key) {
            Some(template) => fill(template, fields),
            None => key.to_owned(),
        }
    }
}

impl fmt::Display for Locale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Locale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ja" => Ok(Self::Ja),
            "en" => Ok(Self::En),
            other => Err(format!("{other} is not one of ja, en")),
        }
    }
}

/// Fills `{name}` placeholders. Unknown ones and other braces stay as they are, so that JSON examples survive.
pub fn fill<K: AsRef<str>, V: AsRef<str>>(template: &str, fields: &[(K, V)]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let known = after.split_once('}').and_then(|(name, behind)| {
            let (_, value) = fields.iter().find(|(key, _)| key.as_ref() == name)?;
            Some((value.as_ref(), behind))
        });
        match known {
            Some((value, behind)) => {
                out.push_str(value);
                rest = behind;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The sentence of a key, filled: `t!(locale, "area.key", name = value, …)`.
#[macro_export]
macro_rules! t {
    ($locale:expr, $key:literal $(, $name:ident = $value:expr)* $(,)?) => {
        $crate::i18n::Locale::text($locale, $key, &[$((stringify!($name), ::std::string::ToString::to_string(&$value))),*])
    };
}

/// The sentences of one area; read when the first of them is needed.
struct Pages {
    area: &'static str,
    ja: LazyLock<HashMap<String, String>>,
    en: LazyLock<HashMap<String, String>>,
}

macro_rules! catalogue {
    ($($area:literal => $file:literal),* $(,)?) => {
        static CATALOGUE: [Pages; [$($area),*].len()] = [$(Pages {
            area: $area,
            ja: LazyLock::new(|| parse(include_str!(concat!("../locales/ja/", $file, ".json")))),
            en: LazyLock::new(|| parse(include_str!(concat!("../locales/en/", $file, ".json")))),
        }),*];
    };
}

catalogue! {
    "core" => "core",
    "error" => "error",
    "hint" => "hint",
    "prompt" => "prompt",
    "memory" => "memory",
    "exec" => "exec",
    "tools" => "tools",
    "server" => "server",
    "cli" => "cli",
    "pack" => "pack",
}

fn parse(json: &str) -> HashMap<String, String> {
    // a broken page would be a broken build: a test reads every one
    serde_json::from_str(json).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn placeholders(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(name, _)| name).collect()
    }

    #[test]
    fn both_languages_have_the_same_keys_and_placeholders() {
        for pages in &CATALOGUE {
            let keys = |page: &HashMap<String, String>| page.keys().cloned().collect::<BTreeSet<_>>();
            assert_eq!(keys(&pages.ja), keys(&pages.en), "area {}", pages.area);
            assert!(!pages.en.is_empty(), "area {} has no sentences, or is no JSON", pages.area);
            for (key, ja) in &*pages.ja {
                let en = &pages.en[key];
                assert_eq!(placeholders(ja), placeholders(en), "{key}");
                assert!(key.starts_with(&format!("{}.", pages.area)), "{key} is not of its area");
            }
        }
    }

    #[test]
    fn json_braces_survive_filling() {
        assert_eq!(fill(r#"{"a": {x}, {y}}"#, &[("x", "1")]), r#"{"a": 1, {y}}"#);
        assert_eq!(fill("{x", &[("x", "1")]), "{x");
    }
}
