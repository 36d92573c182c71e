//! LongMemEval's own files, for whoever has them: which session holds the answer.

use std::path::Path;

use animaworks_core::fs::read_json;
use chrono::NaiveDateTime;
use serde::Deserialize;

use super::{
    BenchError,
    data::{DataSet, Question, Record, Store, one_line},
    data_error,
    gold::{Gold, Key},
};

#[derive(Deserialize)]
struct Entry {
    question_id: String,
    #[serde(default)]
    question_type: String,
    question: String,
    #[serde(default)]
    question_date: String,
    haystack_sessions: Vec<Vec<Turn>>,
    haystack_session_ids: Vec<String>,
    #[serde(default)]
    haystack_dates: Vec<String>,
    #[serde(default)]
    answer_session_ids: Vec<String>,
}

#[derive(Deserialize)]
struct Turn {
    role: String,
    content: String,
    #[serde(default)]
    has_answer: bool,
}

/// Reads a file: one store per question, its turns the records. Evidence is the turns that are marked as holding the
/// answer, or where none is, those of the sessions that do; questions that ask for refusal have none.
///
/// # Errors
///
/// When the file cannot be read or is something else.
pub fn read(path: &Path) -> Result<DataSet, BenchError> {
    let entries: Vec<Entry> = read_json(path)?;
    let mut set = DataSet {
        name: "longmemeval".to_owned(),
        path: path.to_owned(),
        sha256: String::new(),
        stores: Vec::new(),
        gold: Vec::new(),
    };
    for entry in entries {
        if entry.haystack_sessions.len() != entry.haystack_session_ids.len() {
            return Err(data_error(path, format!("{}: sessions and their names differ", entry.question_id)));
        }
        let (store, gold) = entry.into_store();
        set.stores.push(store);
        set.gold.push(gold);
    }
    if set.stores.is_empty() {
        return Err(data_error(path, "no question in it"));
    }
    Ok(set)
}

impl Entry {
    fn into_store(self) -> (Store, Gold) {
        let refuses = self.question_id.ends_with("_abs");
        let mut records = Vec::new();
        let mut marked = Vec::new();
        let mut held = Vec::new();
        for (number, (turns, session)) in self.haystack_sessions.into_iter().zip(self.haystack_session_ids).enumerate()
        {
            let at = self.haystack_dates.get(number).and_then(|date| moment(date));
            let holds = self.answer_session_ids.contains(&session);
            for (turn, said) in turns.into_iter().enumerate() {
                let id = format!("{number}:{turn}");
                if said.has_answer {
                    marked.push(id.clone());
                }
                if holds {
                    held.push(id.clone());
                }
                records.push(Record {
                    id,
                    session: session.clone(),
                    at,
                    speaker: said.role,
                    text: one_line(&said.content),
                });
            }
        }
        let evidence = match (refuses, marked.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => held,
            (false, false) => marked,
        };
        let key = Key { category: self.question_type, original: evidence.clone(), evidence, stale: Vec::new() };
        let store = Store {
            dataset: "longmemeval".to_owned(),
            language: "en".to_owned(),
            group: self.question_id.clone(),
            now: moment(&self.question_date),
            records,
            questions: vec![Question { id: self.question_id.clone(), text: self.question }],
        };
        (store, Gold { keys: [(self.question_id, key)].into() })
    }
}

/// `2023/05/20 (Sat) 02:21`.
fn moment(text: &str) -> Option<NaiveDateTime> {
    let (day, rest) = text.split_once(' ')?;
    let time = rest.rsplit(' ').next()?;
    NaiveDateTime::parse_from_str(&format!("{day} {time}"), "%Y/%m/%d %H:%M").ok()
}
