//! The records of claude-mem: its database, or the JSON its export makes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use animaworks_core::{
    MemoryError,
    fs::{self, FileError},
};
use chrono::{DateTime, NaiveDate};
use serde::Deserialize;
use serde_json::{Map, Value};
use sqlx::{
    AssertSqlSafe, Column, Connection, Row, SqliteConnection, TypeInfo, ValueRef, sqlite::SqliteConnectOptions,
};

use super::{Draft, Found, dated, file_name};
use crate::index::failed;

/// Fields of an observation that say something, in the order they are written.
const OBSERVED: &[&str] = &["subtitle", "narrative", "text"];
/// Fields of a summary.
const SUMMED_UP: &[&str] = &["investigated", "learned", "completed", "next_steps", "notes"];
/// Lists that are written behind either.
const LISTS: &[&str] = &["concepts", "files_read", "files_modified", "files_edited"];

/// What an export has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Export {
    observations: Vec<Map<String, Value>>,
    summaries: Vec<Map<String, Value>>,
    prompts: Vec<Value>,
    sessions: Vec<Value>,
}

/// Whether a file is a database or an export.
pub(super) fn is_one(source: &Path) -> bool {
    let extension = source.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    source.is_file() && matches!(extension, "db" | "sqlite" | "sqlite3" | "json")
}

pub(super) async fn read(source: &Path, found: &mut Found) -> Result<(), MemoryError> {
    let export = if source.extension().is_some_and(|extension| extension == "json") {
        fs::read_json(source)?
    } else {
        database(source, found).await?
    };
    for (kind, count) in [("prompts", export.prompts.len()), ("sessions", export.sessions.len())] {
        if count > 0 {
            found.leave(source, None, count.to_string(), kind);
        }
    }
    for (at, record) in export.observations.iter().enumerate() {
        let heading = text(record, "title");
        let mut body = paragraphs(record, OBSERVED, false);
        for fact in list(record, "facts") {
            body.push_str(&format!("- {fact}\n"));
        }
        let kind = text(record, "type");
        add(source, at, record, (&heading, &kind, body), found);
    }
    for (at, record) in export.summaries.iter().enumerate() {
        let heading = text(record, "request");
        let body = paragraphs(record, SUMMED_UP, true);
        add(source, at, record, (&heading, "summary", body), found);
    }
    Ok(())
}

fn add(source: &Path, at: usize, record: &Map<String, Value>, said: (&str, &str, String), found: &mut Found) {
    let (heading, kind, mut body) = said;
    let Some(day) = day(record) else {
        found.leave(source, Some(at + 1), heading, "no_date");
        return;
    };
    let heading = match (heading.trim(), kind) {
        ("", kind) => kind.to_owned(),
        (heading, "") => heading.to_owned(),
        (heading, kind) => format!("{kind}: {heading}"),
    };
    if body.trim().is_empty() {
        found.leave(source, Some(at + 1), heading, "empty");
        return;
    }
    for name in LISTS {
        let items = list(record, name);
        if !items.is_empty() {
            body.push_str(&format!("\n{name}: {}\n", items.join(", ")));
        }
    }
    // a line that looks like a heading would cut the block in two
    let body: String = body
        .lines()
        .map(|line| if line.starts_with("## ") { format!("#{line}\n") } else { format!("{line}\n") })
        .collect();
    let project = file_name(&text(record, "project"));
    let to = format!("claude-mem/{project}/{}", day.format("%Y-%m"));
    found.drafts.push(Draft { to, heading: dated(&heading, day), body, from: source.to_owned(), line: at + 1 });
}

/// The day of a record, from its time stamp or from its seconds or milliseconds.
fn day(record: &Map<String, Value>) -> Option<NaiveDate> {
    if let Some(day) = crate::pack::block::date_in(&text(record, "created_at")) {
        return Some(day);
    }
    let epoch = record.get("created_at_epoch")?.as_i64()?;
    let seconds = if epoch > 100_000_000_000 { epoch / 1000 } else { epoch };
    Some(DateTime::from_timestamp(seconds, 0)?.date_naive())
}

fn paragraphs(record: &Map<String, Value>, names: &[&str], named: bool) -> String {
    let mut body = String::new();
    for name in names {
        let said = text(record, name);
        if said.trim().is_empty() {
            continue;
        }
        if named {
            body.push_str(&format!("**{}**: ", name.replace('_', " ")));
        }
        body.push_str(said.trim());
        body.push_str("\n\n");
    }
    body
}

fn text(record: &Map<String, Value>, name: &str) -> String {
    record.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A list, as such or as the JSON text that the database has.
fn list(record: &Map<String, Value>, name: &str) -> Vec<String> {
    let value = record.get(name).cloned().unwrap_or_default();
    let value = match &value {
        Value::String(text) => serde_json::from_str(text).unwrap_or(value),
        _ => value,
    };
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(text) if !text.trim().is_empty() => vec![text],
        _ => Vec::new(),
    }
}

/// Reads a copy: opening a database writes beside it, and the original is not ours.
async fn database(source: &Path, found: &mut Found) -> Result<Export, MemoryError> {
    let dir = tempfile::tempdir().map_err(|error| FileError::io("make a temporary directory for", source, error))?;
    let copy = dir.path().join("copy.db");
    for suffix in ["", "-wal"] {
        let from = PathBuf::from(format!("{}{suffix}", source.display()));
        if from.is_file() {
            let to = PathBuf::from(format!("{}{suffix}", copy.display()));
            fs_err::copy(&from, &to).map_err(|error| FileError::io("copy", &from, error))?;
        }
    }
    let options = SqliteConnectOptions::new().filename(&copy).busy_timeout(Duration::from_secs(5));
    let mut db = SqliteConnection::connect_with(&options).await.map_err(failed("open the source"))?;
    let read = tables(&mut db, source, found).await.map_err(failed("read the source"));
    db.close().await.map_err(failed("close the source"))?;
    read
}

async fn tables(db: &mut SqliteConnection, source: &Path, found: &mut Found) -> Result<Export, sqlx::Error> {
    let mut rows: BTreeMap<String, i64> = BTreeMap::new();
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    for row in sqlx::query(names).fetch_all(&mut *db).await? {
        let name: String = row.try_get(0)?;
        // the shadow tables of full-text search hold what the others hold
        if name.contains("_fts") {
            continue;
        }
        let count = format!("SELECT count(*) FROM \"{}\"", name.replace('"', "\"\""));
        let count: i64 = sqlx::query(AssertSqlSafe(count)).fetch_one(&mut *db).await?.try_get(0)?;
        rows.insert(name, count);
    }
    let mut export = Export::default();
    if rows.remove("observations").is_some() {
        export.observations = records(db, "observations").await?;
    }
    if rows.remove("session_summaries").is_some() {
        export.summaries = records(db, "session_summaries").await?;
    }
    for (name, count) in rows {
        match name.as_str() {
            _ if count == 0 => {}
            "user_prompts" => found.leave(source, None, count.to_string(), "prompts"),
            "sdk_sessions" => found.leave(source, None, count.to_string(), "sessions"),
            _ => found.leave(source, None, format!("{name}: {count}"), "other_table"),
        }
    }
    Ok(export)
}

/// The rows of a table by the names of their columns, oldest first: versions differ in what they have.
async fn records(db: &mut SqliteConnection, table: &str) -> Result<Vec<Map<String, Value>>, sqlx::Error> {
    let mut records = Vec::new();
    for row in sqlx::query(AssertSqlSafe(format!("SELECT * FROM {table} ORDER BY rowid"))).fetch_all(db).await? {
        let mut record = Map::new();
        for column in row.columns() {
            let value = row.try_get_raw(column.ordinal())?;
            let value = match value.type_info().name() {
                "TEXT" => Value::from(row.try_get::<String, _>(column.ordinal())?),
                "INTEGER" => Value::from(row.try_get::<i64, _>(column.ordinal())?),
                _ => continue,
            };
            record.insert(column.name().to_owned(), value);
        }
        records.push(record);
    }
    Ok(records)
}
