//! Boards: a log for each, and beside it who may use it (memory spec §10.2).

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::FilePostOffice;
use crate::{
    clock::timestamp,
    fs::{self, FileError, Privacy},
    home::{
        claims::file_name,
        list, parse_in,
        text::{lenient, take},
    },
    ids::{AnimaName, BoardName},
    message::SenderKind,
    seams::{BoardPost, PostError},
};

/// Who may use a board. A board without one is open.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BoardMeta {
    /// Who may read and write; empty means every Anima.
    #[serde(default)]
    pub members: Vec<String>,
    /// Who made it.
    #[serde(default, deserialize_with = "lenient")]
    pub created_by: String,
    /// When.
    #[serde(default, deserialize_with = "lenient")]
    pub created_at: String,
    /// What it is for.
    #[serde(default, deserialize_with = "lenient")]
    pub description: String,
    /// Whether it is closed to every Anima.
    #[serde(default)]
    pub closed: bool,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl FilePostOffice {
    /// Makes a board, or leaves one that is there as it is; whether it was made.
    ///
    /// # Errors
    ///
    /// [`PostError::File`].
    pub fn create_board(&self, board: &BoardName, meta: Option<&BoardMeta>) -> Result<bool, PostError> {
        if self.exists(board) {
            return Ok(false);
        }
        if let Some(meta) = meta {
            fs::write_json(&self.data.board_meta(board), meta, Privacy::Normal)?;
        }
        fs::write_atomic(&self.data.board(board), b"", Privacy::Normal)?;
        Ok(true)
    }

    /// Who may use a board; `None` when nothing says so.
    ///
    /// # Errors
    ///
    /// [`PostError::File`], also when the file cannot be understood.
    pub fn board_meta(&self, board: &BoardName) -> Result<Option<BoardMeta>, PostError> {
        match fs::read_json(&self.data.board_meta(board)) {
            Ok(meta) => Ok(Some(meta)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn exists(&self, board: &BoardName) -> bool {
        self.data.board(board).is_file() || self.data.board_meta(board).is_file()
    }

    /// Whether an Anima may use a board. What cannot be read is a no.
    fn admits(&self, board: &BoardName, who: &str) -> Result<bool, PostError> {
        match self.board_meta(board) {
            Ok(None) => Ok(true),
            Ok(Some(meta)) => {
                Ok(!meta.closed && (meta.members.is_empty() || meta.members.iter().any(|name| name == who)))
            }
            Err(PostError::File(error @ FileError::Syntax { .. })) => {
                tracing::error!(%error, "closed a board, because nobody can tell who may use it");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn publish_blocking(&self, board: &BoardName, post: &BoardPost) -> Result<(), PostError> {
        if !self.exists(board) {
            return Err(PostError::UnknownBoard { board: board.clone() });
        }
        if post.source != SenderKind::Human && !self.admits(board, &post.from)? {
            return Err(PostError::NotAMember { board: board.clone(), who: post.from.clone() });
        }
        let mut line = Map::new();
        line.insert("ts".to_owned(), Value::String(timestamp(&post.ts)));
        line.insert("from".to_owned(), Value::String(post.from.clone()));
        line.insert("text".to_owned(), Value::String(post.text.clone()));
        let source = match post.source {
            SenderKind::Human => "human",
            SenderKind::Anima => "anima",
            SenderKind::System => "system",
        };
        line.insert("source".to_owned(), Value::String(source.to_owned()));
        for (key, value) in &post.extra {
            line.entry(key).or_insert_with(|| value.clone());
        }
        Ok(fs::append_line(&self.data.board(board), &Value::Object(line).to_string())?)
    }

    pub(super) fn board_blocking(
        &self,
        board: &BoardName,
        reader: &AnimaName,
        before: Option<DateTime<FixedOffset>>,
        limit: usize,
    ) -> Result<Vec<BoardPost>, PostError> {
        if !self.exists(board) {
            return Err(PostError::UnknownBoard { board: board.clone() });
        }
        if !self.admits(board, reader.as_str())? {
            return Err(PostError::NotAMember { board: board.clone(), who: reader.to_string() });
        }
        let (lines, unreadable) = fs::read_lines(&self.data.board(board))?;
        if unreadable > 0 {
            tracing::warn!(%board, unreadable, "passed over lines of a board");
        }
        let mut posts: Vec<_> = lines.into_iter().filter_map(|line| self.read_post(line.value)).collect();
        posts.retain(|post| before.is_none_or(|before| post.ts < before));
        posts.sort_by_key(|post| post.ts);
        posts.drain(..posts.len().saturating_sub(limit));
        Ok(posts)
    }

    /// A line of any version; one without a time is passed over.
    fn read_post(&self, value: Value) -> Option<BoardPost> {
        let Value::Object(mut map) = value else { return None };
        let ts = parse_in(self.zone, &take(&mut map, "ts"))?;
        let (from, text) = (take(&mut map, "from"), take(&mut map, "text"));
        let word = take(&mut map, "source");
        let source = match word.as_str() {
            "anima" => SenderKind::Anima,
            "system" => SenderKind::System,
            "human" | "" => SenderKind::Human,
            platform => {
                // a platform brings people, and whoever reads must know which
                map.insert("platform".to_owned(), Value::String(platform.to_owned()));
                SenderKind::Human
            }
        };
        Some(BoardPost { ts, from, text, source, extra: map })
    }

    pub(super) fn boards_blocking(&self, reader: &AnimaName) -> Result<Vec<BoardName>, PostError> {
        let mut boards = std::collections::BTreeSet::new();
        for path in list(&self.data.shared().join("channels"))? {
            let name = file_name(&path);
            let stem = name.strip_suffix(".meta.json").or_else(|| name.strip_suffix(".jsonl"));
            if let Some(board) = stem.and_then(|stem| stem.parse::<BoardName>().ok()) {
                boards.insert(board);
            }
        }
        let mut open = Vec::new();
        for board in boards {
            if self.admits(&board, reader.as_str())? {
                open.push(board);
            }
        }
        Ok(open)
    }
}
