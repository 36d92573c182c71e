//! What a session begins with: how to use the memory, the newest block, and which files there are.

use animaworks_core::{Locale, MemoryError, ResultExt, fs, t, templates};

use super::{Pack, block::Note, walk};

/// The part of everything that is kept for the list of files, whatever else there is: one of so many.
const FILES: usize = 4;

impl Pack {
    /// The text that a session begins with; never longer than the limit. `brief` is only how to use the memory.
    ///
    /// # Errors
    ///
    /// [`MemoryError::File`] when a directory cannot be read.
    pub fn context(&self, brief: bool, locale: Locale) -> Result<String, MemoryError> {
        let all = self.settings.inject_max_chars;
        let before_files = all - all / FILES;
        let mut text = templates::find(locale, "pack/context.md").unwrap_or_default().trim_end().to_owned();
        text.push('\n');
        if brief {
            return Ok(cut(&text, all));
        }
        text = cut(&text, before_files);
        let room = before_files.saturating_sub(text.chars().count());
        text.push_str(&self.newest(room, locale));
        let room = all.saturating_sub(text.chars().count());
        text.push_str(&self.table(room, locale));
        Ok(text)
    }

    /// The newest blocks of the work at hand, cut at the ends of lines.
    fn newest(&self, room: usize, locale: Locale) -> String {
        let mut blocks = String::new();
        for file in self.context_files() {
            let Some(text) = fs::read_text(&file).log_err("read the work at hand") else { continue };
            for block in Note::parse(&text).blocks.iter().take(self.settings.inject_blocks) {
                blocks.push_str(block.text.trim_end());
                blocks.push_str("\n\n");
            }
        }
        if blocks.is_empty() {
            return String::new();
        }
        let title = format!("\n# {}\n\n", t!(locale, "pack.context.now"));
        let more = format!("{}\n", t!(locale, "pack.context.omitted"));
        let whole = format!("{title}{blocks}");
        if whole.chars().count() <= room {
            return whole;
        }
        let mut text = title;
        let mut left = room.saturating_sub(text.chars().count() + more.chars().count());
        for line in blocks.split_inclusive('\n') {
            let length = line.chars().count();
            if length > left {
                text.push_str(&line.chars().take(left.saturating_sub(1)).collect::<String>());
                text.push('\n');
                break;
            }
            left -= length;
            text.push_str(line);
        }
        text.push_str(&more);
        cut(&text, room)
    }

    /// The names of the files, as many as fit.
    fn table(&self, room: usize, locale: Locale) -> String {
        let mut text = format!("\n# {}\n", t!(locale, "pack.context.files"));
        let mut left = room.saturating_sub(text.chars().count());
        if left < 40 {
            return String::new();
        }
        for dir in self.existing() {
            let names: Vec<String> = walk::files(dir).into_iter().map(|file| file.source).collect();
            let title = format!("{}:\n", dir.display());
            if names.is_empty() || title.chars().count() + 32 > left {
                continue;
            }
            left -= title.chars().count();
            text.push_str(&title);
            for (at, name) in names.iter().enumerate() {
                let line = format!("  - {}\n", name.replace(['\n', '\r'], " "));
                let more = format!("  {}\n", t!(locale, "pack.context.more", count = names.len() - at));
                let needed = line.chars().count() + if at + 1 < names.len() { more.chars().count() } else { 0 };
                if needed > left {
                    if more.chars().count() <= left {
                        left -= more.chars().count();
                        text.push_str(&more);
                    }
                    break;
                }
                left -= line.chars().count();
                text.push_str(&line);
            }
        }
        text
    }
}

fn cut(text: &str, room: usize) -> String {
    text.chars().take(room).collect()
}
