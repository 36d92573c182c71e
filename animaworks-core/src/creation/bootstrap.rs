//! The first run of a new Anima, in which it becomes somebody (exec spec §10.5, appendix I).

use serde::{Deserialize, Serialize};

use crate::{
    fs::{self, FileError},
    layout::AnimaDir,
};

/// What a new Anima still has to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bootstrap {
    /// It is somebody.
    Done,
    /// It can make itself out of its character sheet, without asking anybody.
    FromSheet,
    /// It has to ask the first person who speaks to it.
    Interactive,
    /// It knows who it is but not what it does, or the other way round, and has no instructions left.
    NeedsRepair,
}

impl Bootstrap {
    /// Looks at the files of an Anima.
    ///
    /// # Errors
    ///
    /// [`FileError`] when one of them cannot be read.
    pub fn of(anima: &AnimaDir) -> Result<Self, FileError> {
        let read = |name: &str| Ok::<_, FileError>(fs::read_text_if_exists(&anima.file(name))?.unwrap_or_default());
        let defined = is_defined(&read("identity.md")?) && is_defined(&read("injection.md")?);
        let instructed = anima.file("bootstrap.md").exists();
        let failed = ["bootstrap.md.failed", "bootstrap.md.auto_resolved"].iter().any(|name| anima.file(name).exists());
        Ok(match (instructed, defined) {
            _ if failed => Self::NeedsRepair,
            (false, true) => Self::Done,
            (false, false) => Self::NeedsRepair,
            // a sheet is taken in even where its sections already stand in the files
            (true, _) if anima.file("character_sheet.md").exists() => Self::FromSheet,
            (true, _) => Self::Interactive,
        })
    }
}

/// Whether a text says something. A line that only reads `undefined` or `未定義` marks what is still to be written;
/// the words inside a sentence do not.
pub fn is_defined(text: &str) -> bool {
    let marks = |line: &str| {
        let word =
            line.trim().trim_matches(['(', ')', '（', '）', '*', '_', '-', '「', '」', '。', '.', ' ']).to_lowercase();
        matches!(word.as_str(), "undefined" | "未定義")
    };
    let has_body = text.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#'));
    has_body && !text.lines().any(marks)
}

/// Puts the instructions of the first run away once identity and injection are written (RULINGS 15); whether it did.
///
/// # Errors
///
/// [`FileError`] when they cannot be moved; they then stay where they are.
pub fn finish_bootstrap(anima: &AnimaDir) -> Result<bool, FileError> {
    let instructions = anima.file("bootstrap.md");
    let read = |name: &str| Ok::<_, FileError>(fs::read_text_if_exists(&anima.file(name))?.unwrap_or_default());
    if !instructions.exists() || !is_defined(&read("identity.md")?) || !is_defined(&read("injection.md")?) {
        return Ok(false);
    }
    let mut place = anima.archive().join("bootstrap.md");
    let mut n = 1;
    while place.exists() {
        place = anima.archive().join(format!("bootstrap.{n}.md"));
        n += 1;
    }
    fs::move_file(&instructions, &place)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::AnimaName, layout::DataDir};

    #[test]
    fn a_mark_on_its_own_line_counts_and_a_word_in_a_sentence_does_not() {
        for (text, defined) in [
            ("", false),
            ("# Identity\n\n## 名前\n", false),
            ("# Identity\n\n（未定義）\n", false),
            ("# Identity\n\n*undefined*\n", false),
            ("# Identity\n\nFond of undefined behaviour and 未定義動作.\n", true),
            ("# sakura\n\n落ち着いた人。\n", true),
        ] {
            assert_eq!(is_defined(text), defined, "{text}");
        }
    }

    #[test]
    fn the_instructions_are_put_away_when_both_files_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let anima = DataDir::new(dir.path()).anima(&AnimaName::new("sakura").unwrap());
        let write =
            |name: &str, text: &str| fs::write_atomic(&anima.file(name), text.as_bytes(), fs::Privacy::Normal).unwrap();
        write("bootstrap.md", "first");
        write("identity.md", "未定義");
        assert_eq!(Bootstrap::of(&anima).unwrap(), Bootstrap::Interactive);
        write("identity.md", "somebody");
        assert!(!finish_bootstrap(&anima).unwrap());
        write("injection.md", "does something");
        write("character_sheet.md", "# x");
        assert_eq!(Bootstrap::of(&anima).unwrap(), Bootstrap::FromSheet);
        assert!(finish_bootstrap(&anima).unwrap());
        assert_eq!(Bootstrap::of(&anima).unwrap(), Bootstrap::Done);
        assert_eq!(fs::read_text(&anima.archive().join("bootstrap.md")).unwrap(), "first");
        write("bootstrap.md", "again");
        assert!(finish_bootstrap(&anima).unwrap());
        assert!(anima.archive().join("bootstrap.1.md").exists());
        write("identity.md", "");
        assert_eq!(Bootstrap::of(&anima).unwrap(), Bootstrap::NeedsRepair);
    }
}
