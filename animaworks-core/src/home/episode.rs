//! Episodes: what happened, in the Anima's own words, a page a day (memory spec §6).

use std::path::PathBuf;

use super::{AnimaHome, text::one_line};
use crate::{
    frontmatter::Document,
    fs::{self, FileError, Lock, Privacy},
    t,
    trust::{Origin, Trust},
};

impl AnimaHome {
    /// Appends an entry `## HH:MM — {title}` to today's page and returns the page. What came from outside marks the
    /// page as such, so that it can never be recalled as trusted.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the page.
    pub fn append_episode(&self, title: &str, body: &str, origin: &Origin) -> Result<PathBuf, FileError> {
        let title = one_line(title);
        let heading = format!("## {}", self.now().format("%H:%M"));
        let heading = if title.is_empty() { heading } else { format!("{heading} — {title}") };
        self.append_to_episode(&format!("{heading}\n\n{}", body.trim_end()), origin)
    }

    /// Appends Markdown to today's page as it is.
    ///
    /// # Errors
    ///
    /// As [`AnimaHome::append_episode`].
    pub fn append_to_episode(&self, entry: &str, origin: &Origin) -> Result<PathBuf, FileError> {
        let date = self.today();
        let path = self.dir().episode(date);
        let _held = Lock::wait(&self.dir().run().join("episodes.lock"))?;
        let page = fs::read_text_if_exists(&path)?;
        let mut lines = vec![String::new()];
        lines.extend(entry.trim_end().lines().map(str::to_owned));
        let tainted = origin.trust() == Trust::Untrusted;
        let marked = |page: &Document| {
            let source = page.text("origin");
            !source.is_empty() && Origin::of(&source).trust() == Trust::Untrusted
        };
        match page {
            // an empty page is one whose first write never happened
            None => self.begin_episode(&path, &lines, tainted.then_some(origin))?,
            Some(text) if text.trim().is_empty() => self.begin_episode(&path, &lines, tainted.then_some(origin))?,
            Some(text) => {
                let mut page = Document::parse(&text);
                if tainted && !marked(&page) {
                    self.keep_if_not_text(&path)?;
                    mark(&mut page, origin);
                    fs::write_atomic(&path, page.to_string().as_bytes(), Privacy::Normal)?;
                }
                fs::append_lines(&path, lines.iter().map(String::as_str))?;
            }
        }
        Ok(path)
    }

    fn begin_episode(
        &self,
        path: &std::path::Path,
        lines: &[String],
        origin: Option<&Origin>,
    ) -> Result<(), FileError> {
        let title = t!(self.locale(), "memory.episode.title", date = self.today());
        let mut page = Document::new(format!("# {title}\n{}\n", lines.join("\n")));
        if let Some(origin) = origin {
            mark(&mut page, origin);
        }
        fs::write_atomic(path, page.to_string().as_bytes(), Privacy::Normal)
    }
}

fn mark(page: &mut Document, origin: &Origin) {
    // a chain can be untrusted behind a source that is not
    let source = if Origin::of(&origin.source).trust() == Trust::Untrusted {
        origin.source.as_str()
    } else {
        origin.chain.iter().find(|link| Origin::of(link).trust() == Trust::Untrusted).map_or("unknown", String::as_str)
    };
    page.set("origin", if source.is_empty() { "unknown" } else { source });
    if !origin.chain.is_empty() {
        page.set("origin_chain", origin.chain.clone());
    }
}
