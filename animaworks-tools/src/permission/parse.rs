//! `permissions.md`, line by line, and the Python version's `permissions.json`.

use std::path::{Path, PathBuf};

use animaworks_core::error::{ErrorKind, Fault, chain};
use serde::{Deserialize, Serialize};

use super::{Access, CommandRule, EffectiveTable, FileRule, NameRule, Source};

pub(super) const MARKDOWN: &str = "permissions.md";
pub(super) const JSON: &str = "permissions.json";

/// Why a permission file grants nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{file}:{line}: {problem}: {text}")]
pub struct PermissionError {
    /// `permissions.md` or `permissions.json`.
    pub file: &'static str,
    /// The line, from 1; 0 when the whole file is meant.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What can be wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// A `##` heading that is none of ours.
    #[error("unknown section")]
    Section,
    /// A line before the first section, or of a form the section does not have.
    #[error("unknown line")]
    Line,
    /// Not an absolute path, or one with `..`.
    #[error("not an absolute path")]
    Path,
    /// Neither yes nor no.
    #[error("neither yes nor no")]
    Value,
    /// Not a program's name.
    #[error("not a command name")]
    Command,
    /// A comment that never ends.
    #[error("a comment without end")]
    Comment,
    /// The file cannot be read.
    #[error("cannot be read")]
    Unreadable,
}

impl PermissionError {
    pub(super) fn unreadable(file: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        Self { file, line: 0, text: chain(error), problem: Problem::Unreadable }
    }
}

impl Fault for PermissionError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Corrupt
    }

    fn code(&self) -> &'static str {
        "permissions_syntax"
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![("file", self.file.to_owned()), ("line", self.line.to_string()), ("text", self.text.clone())]
    }
}

#[derive(Debug, Clone, Copy)]
enum Section {
    Files,
    Readable,
    Writable,
    Commands,
    DeniedCommands,
    External,
    Creation,
    Network,
    Inherited,
}

fn section(heading: &str) -> Option<Section> {
    Some(match heading.to_lowercase().as_str() {
        "ファイル操作" | "file operations" => Section::Files,
        "読める場所" | "readable locations" => Section::Readable,
        "書ける場所" | "writable locations" => Section::Writable,
        "コマンド実行" | "実行できるコマンド" | "command execution" | "executable commands" => {
            Section::Commands
        }
        "実行できないコマンド" | "denied commands" => Section::DeniedCommands,
        "外部ツール" | "external tools" => Section::External,
        "ツール作成" | "tool creation" => Section::Creation,
        "ネットワーク" | "network" => Section::Network,
        "引き継ぎ" | "inherited" => Section::Inherited,
        _ => return None,
    })
}

/// Reads `permissions.md`; also says whether it takes over `permissions.json`, which only an explicit line does.
///
/// # Errors
///
/// [`PermissionError`] with the first line that cannot be understood.
pub fn parse(text: &str, home: Option<&Path>) -> Result<(EffectiveTable, bool), PermissionError> {
    let mut reader = Reader { table: EffectiveTable::default(), home, inherits: false };
    let mut current = None;
    let mut comment: Option<(usize, &str)> = None;
    for (at, raw) in text.lines().enumerate() {
        let error = |problem| PermissionError { file: MARKDOWN, line: at + 1, text: raw.trim().to_owned(), problem };
        let line = raw.trim();
        if comment.is_some() {
            match line.split_once("-->") {
                None => continue,
                Some((_, after)) if after.trim().is_empty() => comment = None,
                Some(_) => return Err(error(Problem::Line)),
            }
            continue;
        }
        if let Some(rest) = line.strip_prefix("<!--") {
            match rest.split_once("-->") {
                None => comment = Some((at + 1, line)),
                Some((_, after)) if after.trim().is_empty() => {}
                Some(_) => return Err(error(Problem::Line)),
            }
        } else if let Some(heading) = line.strip_prefix("## ") {
            current = Some(section(heading.trim()).ok_or_else(|| error(Problem::Section))?);
        } else if line.is_empty() || line.starts_with("# ") || line.starts_with('>') {
            // a title, or a word to the reader
        } else {
            let source = Source::Line { file: MARKDOWN, line: at + 1 };
            let current = current.ok_or_else(|| error(Problem::Line))?;
            reader.line(current, line, &source).map_err(error)?;
        }
    }
    match comment {
        Some((line, text)) => {
            Err(PermissionError { file: MARKDOWN, line, text: text.to_owned(), problem: Problem::Comment })
        }
        None => Ok((reader.table, reader.inherits)),
    }
}

struct Reader<'a> {
    table: EffectiveTable,
    home: Option<&'a Path>,
    inherits: bool,
}

impl Reader<'_> {
    fn line(&mut self, section: Section, line: &str, source: &Source) -> Result<(), Problem> {
        let bullet = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).map(str::trim);
        match section {
            Section::Files | Section::Readable | Section::Writable => {
                self.file(section, bullet.ok_or(Problem::Line)?, source)
            }
            Section::Commands => self.commands(bullet.unwrap_or(line), source),
            Section::DeniedCommands => {
                let (names, _) = split_name(bullet.unwrap_or(line));
                for words in command_list(names)? {
                    self.table.denied_commands.push(CommandRule { words, source: source.clone() });
                }
                Ok(())
            }
            Section::External => self.external(bullet.ok_or(Problem::Line)?, source),
            Section::Creation => self.creation(bullet.ok_or(Problem::Line)?, source),
            Section::Network => self.network(bullet.ok_or(Problem::Line)?, source),
            Section::Inherited => {
                let (name, _) = split_name(bullet.ok_or(Problem::Line)?);
                if name != JSON {
                    return Err(Problem::Line);
                }
                self.inherits = true;
                Ok(())
            }
        }
    }

    fn file(&mut self, section: Section, line: &str, source: &Source) -> Result<(), Problem> {
        let lower = line.to_lowercase();
        if ["自分のディレクトリ", "own directory"].iter().any(|words| lower.starts_with(words)) {
            return Ok(()); // always so
        }
        let (path, description) = match line.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
            Some((path, rest)) => (path, rest),
            None => split_name(line),
        };
        let path = match (path.strip_prefix("~/"), self.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => PathBuf::from(path),
        };
        let plain = path.components().all(|part| !matches!(part, std::path::Component::ParentDir));
        if !path.is_absolute() || !plain {
            return Err(Problem::Path);
        }
        let access = match section {
            Section::Readable => Access::ReadOnly,
            Section::Writable => Access::ReadWrite,
            _ => Access::ReadWrite.min(said(description)),
        };
        // a word against it counts everywhere
        let access = if said(description) == Access::Denied { Access::Denied } else { access };
        self.table.files.push(FileRule { path, access, source: source.clone() });
        Ok(())
    }

    fn commands(&mut self, line: &str, source: &Source) -> Result<(), Problem> {
        let (names, description) = split_name(line);
        if is_all(names) {
            if !description.is_empty() && yes(description) == Some(false) {
                return Err(Problem::Value);
            }
            self.table.all_commands = Some(source.clone());
            return Ok(());
        }
        if yes(description) == Some(false) {
            for words in command_list(names)? {
                self.table.denied_commands.push(CommandRule { words, source: source.clone() });
            }
            return Ok(());
        }
        for words in command_list(names)? {
            self.table.commands.push(CommandRule { words, source: source.clone() });
        }
        Ok(())
    }

    fn external(&mut self, line: &str, source: &Source) -> Result<(), Problem> {
        let (name, value) = split_name(line);
        let allowed = yes(value).ok_or(Problem::Value)?;
        if is_all(name) {
            self.table.all_external = allowed.then(|| source.clone());
            return Ok(());
        }
        let valid = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !valid {
            return Err(Problem::Line);
        }
        let rule = NameRule { name: name.replace('-', "_"), source: source.clone() };
        if allowed {
            self.table.external.push(rule);
        } else {
            self.table.denied_external.push(rule);
        }
        Ok(())
    }

    fn creation(&mut self, line: &str, source: &Source) -> Result<(), Problem> {
        let (name, value) = split_name(line);
        let allowed = yes(value).ok_or(Problem::Value)?.then(|| source.clone());
        match name.to_lowercase().as_str() {
            "個人ツール" | "personal" | "personal tools" => self.table.personal_tools = allowed,
            "共有ツール" | "shared" | "shared tools" => self.table.shared_tools = allowed,
            _ => return Err(Problem::Line),
        }
        Ok(())
    }

    fn network(&mut self, line: &str, source: &Source) -> Result<(), Problem> {
        let (name, value) = split_name(line);
        let allowed = value.is_empty() || yes(value).ok_or(Problem::Value)?;
        if is_all(name) {
            self.table.network = allowed.then(|| source.clone());
        } else if matches!(name.to_lowercase().as_str(), "なし" | "none") {
            self.table.network = None;
        } else {
            for port in name.split([',', '、']) {
                let port = port.trim().parse().ok().filter(|port| *port > 0).ok_or(Problem::Line)?;
                if allowed {
                    self.table.ports.push((port, source.clone()));
                }
            }
        }
        Ok(())
    }
}

/// A name and what is said about it: `name: words`, `name (words)`, `name（words）`.
fn split_name(line: &str) -> (&str, &str) {
    let cut = line.char_indices().find(|(at, c)| match c {
        '：' | '（' => true,
        ':' => line.get(at + 1..).is_none_or(|rest| rest.is_empty() || rest.starts_with(' ')),
        '(' => line.get(..*at).is_some_and(|before| before.ends_with(' ')),
        _ => false,
    });
    let (name, rest) = match cut {
        Some((at, c)) => (line.get(..at).unwrap_or_default(), line.get(at + c.len_utf8()..).unwrap_or_default()),
        None => (line, ""),
    };
    (name.trim().trim_matches('`').trim(), rest.trim().trim_end_matches([')', '）']).trim())
}

/// What a description of a file line grants. Without a word for writing it is reading.
fn said(description: &str) -> Access {
    let words = description.to_lowercase();
    let any = |list: &[&str]| list.iter().any(|word| words.contains(word));
    if any(&[
        "読み取りのみ",
        "読み取り専用",
        "書き込み不可",
        "書き込み禁止",
        "read only",
        "read-only",
        "readonly",
        "no write",
    ]) {
        Access::ReadOnly
    } else if any(&["禁止", "不可", "denied", "forbidden", "no access"]) {
        Access::Denied
    } else if any(&[
        "読み書き",
        "書き込み可",
        "書き込みも",
        "全権限",
        "read and write",
        "read/write",
        "read-write",
        "writable",
    ]) {
        Access::ReadWrite
    } else {
        Access::ReadOnly
    }
}

fn is_all(name: &str) -> bool {
    matches!(name.to_lowercase().as_str(), "すべて" | "全て" | "all" | "*")
}

fn yes(value: &str) -> Option<bool> {
    let word = value.split([' ', '　', '(', '（', ',', '、']).next().unwrap_or_default().to_lowercase();
    match word.as_str() {
        "ok" | "yes" | "enabled" | "true" | "全権限" | "許可" | "可" | "はい" | "○" => Some(true),
        "no" | "deny" | "denied" | "disabled" | "false" | "禁止" | "不可" | "いいえ" | "×" | "✕" => {
            Some(false)
        }
        _ if word.starts_with("読み取り") => Some(true),
        _ => None,
    }
}

fn command_list(names: &str) -> Result<Vec<Vec<String>>, Problem> {
    names
        .split([',', '、'])
        .map(|name| {
            let words: Vec<String> = name.trim().trim_matches('`').split_whitespace().map(str::to_owned).collect();
            let plain = |word: &String| {
                word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '/' | '-' | '=' | '@'))
            };
            let starts = words.first().is_some_and(|word| !word.starts_with('-'));
            if starts && words.iter().all(plain) { Ok(words) } else { Err(Problem::Command) }
        })
        .collect()
}

/// The Python version's file. What it leaves out is not granted, unlike there.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct JsonTable {
    #[serde(rename = "version")]
    _version: u32,
    file_roots: Vec<PathBuf>,
    file_roots_readonly: Vec<PathBuf>,
    file_roots_denied: Vec<PathBuf>,
    commands: JsonList,
    external_tools: JsonList,
    tool_creation: JsonCreation,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct JsonList {
    allow_all: bool,
    allow: Vec<String>,
    deny: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct JsonCreation {
    personal: bool,
    shared: bool,
}

/// Reads `permissions.json`.
///
/// # Errors
///
/// [`PermissionError`] with the line.
pub fn parse_json(text: &str) -> Result<EffectiveTable, PermissionError> {
    let fail = |line: usize, text: String, problem| PermissionError { file: JSON, line, text, problem };
    let json: JsonTable =
        serde_json::from_str(text).map_err(|error| fail(error.line(), error.to_string(), Problem::Line))?;
    let source = || Source::Line { file: JSON, line: 0 };
    let mut table = EffectiveTable::default();
    let roots = [
        (json.file_roots_denied, Access::Denied),
        (json.file_roots_readonly, Access::ReadOnly),
        (json.file_roots, Access::ReadWrite),
    ];
    for (paths, access) in roots {
        for path in paths {
            if !path.is_absolute() {
                return Err(fail(0, path.display().to_string(), Problem::Path));
            }
            table.files.push(FileRule { path, access, source: source() });
        }
    }
    let commands = |names: Vec<String>| -> Result<Vec<CommandRule>, PermissionError> {
        let mut rules = Vec::new();
        for name in names {
            let lists = command_list(&name).map_err(|problem| fail(0, name.clone(), problem))?;
            rules.extend(lists.into_iter().map(|words| CommandRule { words, source: source() }));
        }
        Ok(rules)
    };
    table.all_commands = json.commands.allow_all.then(source);
    table.commands = commands(json.commands.allow)?;
    table.denied_commands = commands(json.commands.deny)?;
    let names = |names: Vec<String>| -> Vec<NameRule> {
        names.into_iter().map(|name| NameRule { name: name.replace('-', "_"), source: source() }).collect()
    };
    table.all_external = json.external_tools.allow_all.then(source);
    table.external = names(json.external_tools.allow);
    table.denied_external = names(json.external_tools.deny);
    table.personal_tools = json.tool_creation.personal.then(source);
    table.shared_tools = json.tool_creation.shared.then(source);
    Ok(table)
}

#[cfg(test)]
mod tests;
