//! The memory pack measured over very many notes: how long indexes, changes and questions take.
//!
//! The notes are drawn from a seed, half of them Japanese and half English, with words as
//! frequent as words are: a few everywhere, very many hardly ever.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use animaworks_core::{
    Clock,
    fs::{FileError, Privacy, write_atomic},
};
use chrono::{Days, NaiveDate, Offset, Utc};
use serde::{Deserialize, Serialize};

use super::{BenchError, data_error, random::Random};
use crate::pack::{OWN_DIR, Pack, Settings};

/// Times a sweep over nothing new and over one change is measured.
const SWEEPS: usize = 9;
/// Questions that are asked.
const QUESTIONS: usize = 400;
/// Notes in one directory.
const PER_DIRECTORY: usize = 100;
/// About the bytes of one block.
const BLOCK_BYTES: usize = 900;
/// What a note is like as far as its language goes.
const SHIPPED_WORDS: &str = include_str!("pack/words.json");
/// Notes have to be this old before they are measured: a file that was written just now may change
/// again within the same tick of the clock, so a sweep reads it twice.
pub const SETTLED: Duration = Duration::from_millis(2_100);

/// Notes to make.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Files.
    pub files: usize,
    /// Bytes of all of them together; about.
    pub bytes: usize,
    /// The seed.
    pub seed: u64,
}

/// Notes that were made.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    /// Files.
    pub files: usize,
    /// Bytes.
    pub bytes: u64,
    /// Questions whose words stand in them, and a few that find nothing.
    pub questions: Vec<String>,
    one: PathBuf,
}

/// What was measured. Times in milliseconds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figures {
    /// Files that were indexed.
    pub files: usize,
    /// Bytes that were indexed.
    pub bytes: u64,
    /// Bytes of the shadow.
    pub shadow_bytes: u64,
    /// Pieces in it.
    pub pieces: usize,
    /// The first index.
    pub first_index_ms: f64,
    /// Each sweep over nothing new.
    pub unchanged_ms: Vec<f64>,
    /// Each sweep over one changed file.
    pub one_change_ms: Vec<f64>,
    /// Each question.
    pub search_ms: Vec<f64>,
    /// Questions that found something.
    pub answered: usize,
}

#[derive(Debug, Deserialize)]
struct Words {
    ja: Japanese,
    en: English,
}

#[derive(Debug, Deserialize)]
struct Japanese {
    kanji: String,
    particles: Vec<String>,
    endings: Vec<String>,
    loanwords: Vec<String>,
    headings: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct English {
    words: Vec<String>,
    headings: Vec<String>,
}

/// Writes notes below a directory: the same for the same wish.
///
/// # Errors
///
/// [`BenchError::File`] when one cannot be written.
pub fn generate(dir: &Path, wanted: Wanted, done: impl Fn(usize)) -> Result<Notes, BenchError> {
    let mut writer = Writer::new(wanted.seed)?;
    let each = (wanted.bytes / wanted.files.max(1)).max(BLOCK_BYTES / 2);
    let mut notes = Notes { files: wanted.files, ..Notes::default() };
    let ask_every = (wanted.files * 2 / QUESTIONS).max(1);
    for at in 0..wanted.files {
        let japanese = at % 2 == 0;
        let path = dir.join(format!("project-{:03}/note-{at:05}.md", at / PER_DIRECTORY));
        let text = writer.note(at, each, japanese);
        write_atomic(&path, text.as_bytes(), Privacy::Normal)?;
        notes.bytes += text.len() as u64;
        if at % ask_every < 2 {
            let question = writer.question(&text, japanese);
            notes.questions.push(question);
        }
        if at == wanted.files / 2 {
            notes.one = path;
        }
        done(at);
    }
    Ok(notes)
}

/// Indexes notes that are [`SETTLED`], sweeps over them, changes one and asks. Whatever index was there is removed first.
///
/// # Errors
///
/// [`BenchError::Memory`] and [`BenchError::File`].
///
/// # Cancel safety
///
/// Safe.
pub async fn run(dir: &Path, notes: &Notes, clock: &dyn Clock) -> Result<Figures, BenchError> {
    let own = dir.join(OWN_DIR);
    if own.is_dir() {
        fs_err::remove_dir_all(&own).map_err(|error| FileError::io("remove", &own, error))?;
    }
    let pack = || {
        let now = clock.now().with_timezone(&Utc.fix());
        Pack::over(vec![dir.to_owned()], Settings::default(), now)
    };
    let mut figures = Figures { files: notes.files, bytes: notes.bytes, ..Figures::default() };
    let (time, done) = timed(clock, pack().reindex(false)).await;
    figures.first_index_ms = time;
    figures.pieces = done?.added;
    for _ in 0..SWEEPS {
        let (time, done) = timed(clock, pack().reindex(false)).await;
        figures.unchanged_ms.push(time);
        expect(done?.changed_files == 0, dir, "a sweep over nothing new read a file again")?;
    }
    let text = animaworks_core::fs::read_text(&notes.one)?;
    for at in 0..SWEEPS {
        let text = format!("{text}\n## 2026-06-12 added {at}\nOne more sentence, number {at}.\n");
        write_atomic(&notes.one, text.as_bytes(), Privacy::Normal)?;
        let (time, done) = timed(clock, pack().reindex(false)).await;
        figures.one_change_ms.push(time);
        expect(done?.changed_files == 1, dir, "a sweep over one change read another number of files")?;
    }
    write_atomic(&notes.one, text.as_bytes(), Privacy::Normal)?;
    pack().reindex(false).await?;
    for question in &notes.questions {
        let asked = pack();
        let (time, hits) = timed(clock, asked.search(question, 10)).await;
        figures.search_ms.push(time);
        figures.answered += usize::from(!hits?.is_empty());
    }
    let shadow = own.join("memory_index.db");
    figures.shadow_bytes = fs_err::metadata(&shadow).map_err(|error| FileError::io("look at", &shadow, error))?.len();
    Ok(figures)
}

/// The value that so many of a hundred do not exceed.
pub fn percentile(values: &[f64], of_hundred: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() * of_hundred).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

async fn timed<T>(clock: &dyn Clock, work: impl Future<Output = T>) -> (f64, T) {
    let begun = clock.elapsed();
    let result = work.await;
    (clock.elapsed().saturating_sub(begun).as_secs_f64() * 1000.0, result)
}

fn expect(holds: bool, dir: &Path, problem: &str) -> Result<(), BenchError> {
    if holds { Ok(()) } else { Err(data_error(dir, problem)) }
}

#[derive(Debug)]
struct Writer {
    random: Random,
    words: Words,
    kanji: Vec<char>,
    first_day: NaiveDate,
}

impl Writer {
    fn new(seed: u64) -> Result<Self, BenchError> {
        let words: Words =
            serde_json::from_str(SHIPPED_WORDS).map_err(|error| data_error(Path::new("words.json"), error))?;
        let kanji = words.ja.kanji.chars().collect();
        Ok(Self { random: Random::new(seed), words, kanji, first_day: NaiveDate::default() })
    }

    fn note(&mut self, at: usize, bytes: usize, japanese: bool) -> String {
        let mut text = format!("# {}\n\n", self.name());
        while text.len() < bytes {
            let day = self.first_day + Days::new(19_000 + self.random.below(1_600) as u64);
            let headings = if japanese { &self.words.ja.headings } else { &self.words.en.headings };
            let kind = headings.get((at + text.len()) % headings.len().max(1)).cloned().unwrap_or_default();
            text.push_str(&format!("## {day} {kind}: "));
            self.sentence(&mut text, japanese);
            text.push_str("\n\n");
            let until = (text.len() + BLOCK_BYTES).min(bytes.max(text.len() + 40));
            while text.len() < until {
                self.sentence(&mut text, japanese);
                text.push(if self.random.below(4) == 0 { '\n' } else { ' ' });
            }
            text.push_str("\n\n");
        }
        text
    }

    fn sentence(&mut self, text: &mut String, japanese: bool) {
        let length = 4 + self.random.below(8);
        if !japanese {
            for at in 0..length {
                if at > 0 {
                    text.push(' ');
                }
                text.push_str(&self.english());
            }
            text.push('.');
            return;
        }
        for _ in 0..=length / 2 {
            match self.random.below(8) {
                0 => text.push_str(&pick(&mut self.random, &self.words.ja.loanwords)),
                // a name between Japanese words, as notes have them
                1 => text.push_str(&self.name()),
                _ => text.push_str(&self.compound()),
            }
            text.push_str(&pick(&mut self.random, &self.words.ja.particles));
        }
        let verb = self.compound();
        text.push_str(&verb);
        text.push_str(&pick(&mut self.random, &self.words.ja.endings));
    }

    /// Two or three kanji, the first of them from the frequent ones.
    fn compound(&mut self) -> String {
        let n = 2 + usize::from(self.random.below(4) == 0);
        (0..n).filter_map(|_| self.kanji.get(frequent(&mut self.random, self.kanji.len())).copied()).collect()
    }

    fn english(&mut self) -> String {
        if self.random.below(12) == 0 {
            return self.name();
        }
        let at = frequent(&mut self.random, self.words.en.words.len());
        self.words.en.words.get(at).cloned().unwrap_or_default()
    }

    /// One of some fifty thousand names, most of them rare.
    fn name(&mut self) -> String {
        const SOUNDS: [&str; 20] = [
            "ka", "ro", "mi", "ten", "sol", "ver", "lu", "da", "pin", "or", "es", "qua", "ber", "tis", "no", "gal",
            "wy", "fen", "hal", "mar",
        ];
        let mut at = frequent(&mut self.random, 50_000);
        let mut name = String::new();
        for _ in 0..4 {
            name.push_str(SOUNDS.get(at % SOUNDS.len()).copied().unwrap_or_default());
            at /= SOUNDS.len();
        }
        name
    }

    /// Words of a note as somebody would ask for them.
    fn question(&mut self, text: &str, japanese: bool) -> String {
        if self.random.below(20) == 0 {
            return format!("zz{}zz", self.name());
        }
        let letters: Vec<char> = text.chars().filter(|c| !c.is_control()).collect();
        let start = self.random.below(letters.len().saturating_sub(40)) + 20;
        let rest = letters.get(start..).unwrap_or_default();
        if japanese {
            let from = rest.iter().position(|c| self.kanji.contains(c)).unwrap_or_default();
            let first: String = rest.iter().skip(from).take(1 + self.random.below(5)).collect();
            return match self.random.below(3) {
                0 => format!("{first} {}", self.compound()),
                _ => first,
            };
        }
        let line: String = rest.iter().take(200).collect();
        let words: Vec<&str> = line.split(' ').skip(1).take(1 + self.random.below(3)).collect();
        words.join(" ")
    }
}

/// A place below `end`, the earlier ones far more often.
fn frequent(random: &mut Random, end: usize) -> usize {
    let share = random.below(1 << 20) as f64 / f64::from(1 << 20);
    ((end as f64).powf(share) - 1.0) as usize
}

fn pick(random: &mut Random, from: &[String]) -> String {
    from.get(random.below(from.len())).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use animaworks_core::test_support::ManualClock;

    use super::*;

    #[tokio::test]
    async fn the_same_seed_makes_the_same_notes_and_they_are_found() {
        let wanted = Wanted { files: 20, bytes: 60_000, seed: 7 };
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let notes = generate(a.path(), wanted, |_| {}).unwrap();
        generate(b.path(), wanted, |_| {}).unwrap();
        for name in ["project-000/note-00000.md", "project-000/note-00019.md"] {
            let text = fs_err::read_to_string(a.path().join(name)).unwrap();
            assert_eq!(text, fs_err::read_to_string(b.path().join(name)).unwrap());
            assert!(text.len() > 2_500 && text.contains("\n## 20"), "{text}");
        }
        let figures = run(a.path(), &notes, &ManualClock::at("2040-06-12T10:00:00Z")).await.unwrap();
        assert_eq!(figures.search_ms.len(), notes.questions.len());
        assert!(figures.answered * 10 > notes.questions.len() * 8, "{figures:?} {:?}", notes.questions);
        assert!((percentile(&[1.0, 9.0, 2.0, 3.0], 50) - 2.0).abs() < 1e-9);
        assert!((percentile(&[1.0, 9.0, 2.0, 3.0], 95) - 9.0).abs() < 1e-9);
    }
}
