//! The sample organisation: three Animas and three days of history, of our own invention.
//!
//! The story is shipped as files with offsets instead of dates (`{@-2}`, `{zone}`), so
//! that it always ends on the day it is told.

use std::path::{Path, PathBuf};

use animaworks_core::{
    AnimaName, DataDir, Locale, ModelId,
    config::Env,
    creation::{self, CreateError, Named, NewAnima, Origin, Sheet, Shipped},
    fs::{FileError, Privacy, create_private_dir, read_text_if_exists, write_atomic},
    i18n::fill,
    templates,
};
use chrono::{DateTime, Days, NaiveDate, Timelike};
use chrono_tz::Tz;

/// Days that the story speaks of, before and after the day it is told.
const DAYS: std::ops::RangeInclusive<i64> = -3..=14;
/// The hour at which the last thing of the story has happened.
const STORY_ENDS: u32 = 9;

/// The file that says a data directory is the sample's own, and may be made anew.
const MARK: &str = ".demo";

/// Whether a directory holds the sample organisation.
pub fn is_demo(data: &DataDir) -> bool {
    data.root().join(MARK).is_file()
}

/// Whether the sample organisation was made to its end; one that broke off is made anew, never used.
///
/// # Errors
///
/// When the mark cannot be read.
pub fn is_whole(data: &DataDir) -> Result<bool, FileError> {
    Ok(read_text_if_exists(&data.root().join(MARK))?.is_some_and(|locale| !locale.is_empty()))
}

/// The leader of the sample organisation: the one without a supervisor.
///
/// # Errors
///
/// When a character sheet that was shipped is not one; a test reads them.
pub fn leader(locale: Locale) -> Result<AnimaName, CreateError> {
    let mut sheets = sheets(locale)?;
    Ok(sheets.remove(0).0)
}

/// Makes the sample organisation in an empty or new directory; everybody uses `model`.
///
/// # Errors
///
/// When a file cannot be written.
pub fn build(data: &DataDir, locale: Locale, now: DateTime<Tz>, model: &str) -> Result<AnimaName, CreateError> {
    let shipped = Shipped::new(locale);
    // whatever happens from here on, the directory is known to be the sample's own
    create_private_dir(data.root())?;
    write(&data.root().join(MARK), "")?;
    creation::init(data, &shipped, false)?;
    let model = ModelId::new(model)?;
    let sheets = sheets(locale)?;
    for (name, sheet) in &sheets {
        creation::create(data, &shipped, &NewAnima::new(Origin::Sheet(sheet.clone())))?;
        creation::set_model(data, name, &model, None)?;
        creation::set_background_model(data, name, None, None)?;
        // they are somebody already; there is nothing to ask a person about
        creation::finish_bootstrap(&data.anima(name))?;
    }
    tell(data, locale, now)?;
    write(&data.root().join(MARK), locale.as_str())?;
    match sheets.into_iter().next() {
        Some((leader, _)) => Ok(leader),
        None => Err(FileError::io("read", Path::new("demo"), std::io::ErrorKind::NotFound.into()).into()),
    }
}

/// The shipped character sheets, the leader's first.
fn sheets(locale: Locale) -> Result<Vec<(AnimaName, String)>, CreateError> {
    let mut sheets = Vec::new();
    for (path, text) in templates::own(locale, "demo/characters") {
        let name = AnimaName::new(path.trim_end_matches(".md"))?;
        sheets.push((name, text.to_owned()));
    }
    sheets.sort_by_key(|(_, text)| !leads(text));
    Ok(sheets)
}

/// Whether a sheet names no supervisor.
fn leads(sheet: &str) -> bool {
    Sheet::parse(sheet).is_ok_and(|sheet| !matches!(sheet.supervisor, Named::Is(_)))
}

/// Writes the history, with dates that end today.
fn tell(data: &DataDir, locale: Locale, now: DateTime<Tz>) -> Result<(), FileError> {
    let days = Calendar::ending(now);
    if let Some(vision) = templates::own(locale, "demo").get("vision.md") {
        write(&data.vision(), vision)?;
    }
    for (path, text) in templates::own(locale, "demo/history") {
        let place: PathBuf = path.split('/').map(|part| days.name(part)).collect();
        write(&data.root().join(place), &fill(text, &days.words))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), FileError> {
    write_atomic(path, text.as_bytes(), Privacy::Normal)
}

/// The words of the story that stand for dates.
struct Calendar {
    words: Vec<(String, String)>,
}

impl Calendar {
    /// A calendar whose day 0 is today, or yesterday while the story's morning is still to come.
    fn ending(now: DateTime<Tz>) -> Self {
        let today = now.date_naive();
        let last = if now.hour() < STORY_ENDS { shift(today, -1) } else { today };
        let mut words: Vec<(String, String)> = DAYS.map(|day| (mark(day), shift(last, day).to_string())).collect();
        words.push(("zone".to_owned(), now.format("%:z").to_string()));
        Self { words }
    }

    /// A part of a path: `@-2.md` becomes `2026-11-28.md`.
    fn name(&self, part: &str) -> String {
        let (stem, extension) = part.split_once('.').unwrap_or((part, ""));
        match self.words.iter().find(|(mark, _)| mark == stem) {
            Some((_, date)) => format!("{date}.{extension}"),
            None => part.to_owned(),
        }
    }
}

fn mark(day: i64) -> String {
    if day > 0 { format!("@+{day}") } else { format!("@{day}") }
}

fn shift(date: NaiveDate, days: i64) -> NaiveDate {
    let span = Days::new(days.unsigned_abs());
    let moved = if days < 0 { date.checked_sub_days(span) } else { date.checked_add_days(span) };
    moved.unwrap_or(date)
}

/// Where the sample lives when nobody says otherwise.
pub fn default_dir(env: &Env) -> DataDir {
    DataDir::new(env.home().join(".animaworks-demo"))
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    #[test]
    fn the_story_ends_on_the_day_it_is_told() {
        let now = chrono_tz::Asia::Tokyo.with_ymd_and_hms(2026, 11, 30, 20, 0, 0).unwrap();
        for locale in Locale::ALL {
            let dir = tempfile::tempdir().unwrap();
            let data = DataDir::new(dir.path().join("demo"));
            let leader = build(&data, locale, now, "local/recall").unwrap();
            let home = data.anima(&leader);
            let today = NaiveDate::from_ymd_opt(2026, 11, 30).unwrap();
            let episode = animaworks_core::fs::read_text(&home.episode(today)).unwrap();
            assert!(episode.starts_with("# 2026-11-30 "), "{episode}");
            assert!(!episode.contains("{@"), "{episode}");
            let log = animaworks_core::fs::read_lines(&home.activity_log(today)).unwrap();
            assert!(log.1 == 0 && !log.0.is_empty());
            assert!(log.0.iter().all(|line| line.value["ts"].as_str().unwrap().ends_with("+09:00")));
            assert_eq!(creation::Bootstrap::of(&home).unwrap(), creation::Bootstrap::Done);
            assert!(is_demo(&data) && is_whole(&data).unwrap());
        }
    }

    #[test]
    fn what_broke_off_is_known_as_the_sample_and_as_unfinished() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::new(dir.path().join("demo"));
        let now = chrono_tz::Asia::Tokyo.with_ymd_and_hms(2026, 11, 30, 20, 0, 0).unwrap();
        assert!(!is_demo(&data) && !is_whole(&data).unwrap());
        // a model that cannot be named ends the making half-way
        build(&data, Locale::En, now, "").unwrap_err();
        assert!(is_demo(&data) && !is_whole(&data).unwrap());
    }

    #[test]
    fn before_the_morning_the_story_ended_yesterday() {
        let night = chrono_tz::Asia::Tokyo.with_ymd_and_hms(2026, 11, 30, 3, 0, 0).unwrap();
        assert_eq!(Calendar::ending(night).name("@0.md"), "2026-11-29.md");
        assert_eq!(Calendar::ending(night).name("general.jsonl"), "general.jsonl");
    }
}
