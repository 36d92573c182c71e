//! What a person or an agent could tidy: a list, and nothing else.

use std::path::PathBuf;

use animaworks_core::{MemoryError, ResultExt, fs};
use chrono::{Days, NaiveDate};
use serde::Serialize;

use super::{Pack, block::Note, similar, walk};

/// Blocks at least this alike are worth a look.
const ALIKE: f64 = 0.7;
/// A block shorter than this is like too many others, in characters.
const SHORTEST: usize = 20;

/// A block and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The line of its heading, from 1.
    pub line: usize,
    /// Its heading.
    pub heading: String,
    /// The day in its heading.
    pub date: Option<NaiveDate>,
}

/// Two blocks that say nearly the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Duplicate {
    /// The one.
    pub first: Place,
    /// The other.
    pub second: Place,
    /// How alike they are, to 1.
    pub likeness: f64,
}

/// A file that is nearly full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Oversized {
    /// The file.
    pub file: PathBuf,
    /// Its characters.
    pub chars: usize,
    /// Its headings.
    pub headings: Vec<String>,
}

/// Candidates for tidying.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// Files there are.
    pub files: usize,
    /// Blocks there are.
    pub blocks_total: usize,
    /// Blocks that are older than the limit.
    pub stale: Vec<Place>,
    /// Pairs of blocks that are alike.
    pub duplicates: Vec<Duplicate>,
    /// Files over four fifths of the limit.
    pub oversized: Vec<Oversized>,
}

impl Pack {
    /// Looks through everything and changes nothing.
    ///
    /// # Errors
    ///
    /// [`MemoryError::File`] when a directory cannot be read; a file that cannot be read is passed over.
    pub fn report(&self, stale_days: u32) -> Result<Report, MemoryError> {
        let mut report = Report::default();
        let mut places = Vec::new();
        let mut shapes = Vec::new();
        let oldest = self.today().checked_sub_days(Days::new(u64::from(stale_days)));
        for dir in self.existing() {
            for found in walk::files(dir) {
                // what is archived is meant to be old and long
                if found.source.starts_with("archive/") {
                    continue;
                }
                let Some(text) = fs::read_text(&found.path).log_err("read a memory") else { continue };
                report.files += 1;
                let note = Note::parse(&text);
                let chars = text.chars().count();
                if chars * 5 > self.settings.file_max_chars * 4 {
                    report.oversized.push(Oversized { file: found.path.clone(), chars, headings: note.headings() });
                }
                for block in note.blocks {
                    report.blocks_total += 1;
                    let (date, line) = (block.date(), block.line);
                    let place = Place { file: found.path.clone(), line, heading: block.heading.clone(), date };
                    if date.is_some_and(|date| oldest.is_some_and(|oldest| date < oldest)) {
                        report.stale.push(place.clone());
                    }
                    if block.body().trim().chars().count() >= SHORTEST {
                        shapes.push(similar::Shape::of(block.body()));
                        places.push(place);
                    }
                }
            }
        }
        for (a, b, likeness) in similar::pairs(&shapes, ALIKE) {
            if let (Some(first), Some(second)) = (places.get(a), places.get(b)) {
                report.duplicates.push(Duplicate { first: first.clone(), second: second.clone(), likeness });
            }
        }
        report.stale.sort_by_key(|place| place.date);
        report.duplicates.sort_by(|a, b| b.likeness.total_cmp(&a.likeness));
        Ok(report)
    }
}
