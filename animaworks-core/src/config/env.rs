//! The process environment, taken once at the edge and handed in from there.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use crate::{i18n::Locale, layout::DataDir, process::HARMLESS_ENV};

/// What the process was started with. Nothing else in the workspace reads the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env {
    vars: BTreeMap<OsString, OsString>,
    start_dir: PathBuf,
    home: PathBuf,
}

impl Env {
    /// The environment of this process. To be called once, in `main`.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn from_process() -> Self {
        let vars: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        // a start directory that was removed leaves absolute paths working
        let start_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let home = match vars.get(OsStr::new("HOME")).filter(|home| !home.is_empty()) {
            Some(home) => PathBuf::from(home),
            None => match nix::unistd::User::from_uid(nix::unistd::Uid::current()) {
                Ok(Some(user)) => user.dir,
                Ok(None) | Err(_) => start_dir.clone(),
            },
        };
        Self { vars, start_dir, home }
    }

    /// An environment of these variables; the start directory is `/`, the home is `HOME` or `/`.
    pub fn of<K: Into<OsString>, V: Into<OsString>>(vars: impl IntoIterator<Item = (K, V)>) -> Self {
        let vars: BTreeMap<OsString, OsString> = vars.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        let home = vars.get(OsStr::new("HOME")).map_or_else(|| PathBuf::from("/"), PathBuf::from);
        Self { vars, start_dir: PathBuf::from("/"), home }
    }

    /// The same, started in another directory.
    #[must_use]
    pub fn started_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.start_dir = directory.into();
        self
    }

    /// All variables.
    pub fn vars(&self) -> &BTreeMap<OsString, OsString> {
        &self.vars
    }

    /// A variable that is set, not empty and text.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(OsStr::new(name))?.to_str().filter(|value| !value.is_empty())
    }

    /// The directory the program was started in.
    pub fn start_dir(&self) -> &Path {
        &self.start_dir
    }

    /// The home directory of the user.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// A path as a person typed it, made absolute: `~/` is the home, everything else is relative to the start directory.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        match path.strip_prefix("~") {
            Ok(rest) => self.home.join(rest),
            Err(_) => self.start_dir.join(path),
        }
    }

    /// The data directory: `--data-dir`, else `ANIMAWORKS_DATA_DIR`, else `~/.animaworks`.
    pub fn data_dir(&self, flag: Option<&Path>) -> DataDir {
        let chosen = flag.or_else(|| self.path("ANIMAWORKS_DATA_DIR"));
        DataDir::new(chosen.map_or_else(|| self.home.join(".animaworks"), |path| self.absolute(path)))
    }

    /// The directory with templates to use instead of the built-in ones, from `ANIMAWORKS_TEMPLATES_DIR`.
    pub fn templates_dir(&self) -> Option<PathBuf> {
        self.path("ANIMAWORKS_TEMPLATES_DIR").map(|path| self.absolute(path))
    }

    /// The language: `--lang`, else the configured one, else `LC_ALL`, `LC_MESSAGES`, `LANG`; English when nothing says so (RULINGS 41).
    pub fn locale(&self, flag: Option<Locale>, configured: Option<Locale>) -> Locale {
        let posix = || ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(|name| self.var(name)).map(Locale::from_posix);
        flag.or(configured).or_else(posix).unwrap_or(Locale::En)
    }

    /// The log level: `ANIMAWORKS_LOG_LEVEL`, else the configured one.
    pub fn log_level<'a>(&'a self, configured: &'a str) -> &'a str {
        self.var("ANIMAWORKS_LOG_LEVEL").unwrap_or(configured)
    }

    /// What a child process may know of it: no keys, no tokens.
    pub fn harmless(&self) -> BTreeMap<OsString, OsString> {
        HARMLESS_ENV
            .iter()
            .filter_map(|name| self.vars.get_key_value(OsStr::new(name)))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    fn path(&self, name: &str) -> Option<&Path> {
        self.vars.get(OsStr::new(name)).filter(|value| !value.is_empty()).map(Path::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_comes_from_flag_then_variable_then_home() {
        let env = Env::of([("HOME", "/home/u"), ("ANIMAWORKS_DATA_DIR", "work/aw")]).started_in("/srv");
        assert_eq!(env.data_dir(Some(Path::new("/x"))).root(), Path::new("/x"));
        assert_eq!(env.data_dir(Some(Path::new("~/x"))).root(), Path::new("/home/u/x"));
        assert_eq!(env.data_dir(None).root(), Path::new("/srv/work/aw"));
        let empty = Env::of([("HOME", "/home/u"), ("ANIMAWORKS_DATA_DIR", "")]);
        assert_eq!(empty.data_dir(None).root(), Path::new("/home/u/.animaworks"));
    }

    #[test]
    fn the_language_is_asked_in_order() {
        let env = Env::of([("LANG", "ja_JP.UTF-8")]);
        assert_eq!(env.locale(Some(Locale::En), Some(Locale::Ja)), Locale::En);
        assert_eq!(env.locale(None, Some(Locale::En)), Locale::En);
        assert_eq!(env.locale(None, None), Locale::Ja);
        assert_eq!(Env::of([("LC_ALL", "C"), ("LANG", "ja_JP.UTF-8")]).locale(None, None), Locale::En);
        assert_eq!(Env::default().locale(None, None), Locale::En);
    }

    #[test]
    fn a_child_learns_no_secret() {
        let env = Env::of([("PATH", "/bin"), ("OPENAI_API_KEY", "sk-test"), ("LANG", "C")]);
        let names: Vec<_> = env.harmless().into_keys().collect();
        assert_eq!(names, ["LANG", "PATH"]);
    }
}
