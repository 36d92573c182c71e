//! Task lists in Markdown, as people and agents keep them: one file for each task, or lines with boxes.

use std::path::{Path, PathBuf};

use animaworks_core::{ResultExt, frontmatter::Document, fs};
use serde::Serialize;
use serde_json::Value;

use super::walk;
use crate::chunk::markdown::Fence;

/// A task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BoardTask {
    /// Its number or name; empty for a line with a box.
    pub id: String,
    /// What is to be done.
    pub title: String,
    /// `pending`, `in_progress`, `completed` or `blocked`.
    pub status: &'static str,
    /// `high`, `medium` or `low`.
    pub priority: &'static str,
    /// Who does it.
    pub assigned_to: String,
    /// When it was made.
    pub created: String,
    /// When it was last changed.
    pub updated: String,
    /// What comes out of it.
    pub deliverable: String,
    /// What it waits for.
    pub blocked_by: Vec<String>,
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
}

/// The tasks of some files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Board {
    /// The tasks, those that are being worked on first.
    pub tasks: Vec<BoardTask>,
    /// Files that hold no task.
    pub without: Vec<PathBuf>,
}

/// Reads task files, and the task files of directories. What cannot be read is passed over.
pub fn board(places: &[PathBuf]) -> Board {
    let mut board = Board::default();
    for place in places {
        if place.is_dir() {
            for found in walk::files(place) {
                read(&found.path, &mut board);
            }
        } else if place.is_file() {
            read(place, &mut board);
        }
    }
    board.tasks.sort_by_key(|task| {
        let rank = |words: &[&str], word| words.iter().position(|known| *known == word);
        let status = rank(&["in_progress", "blocked", "pending", "completed"], task.status);
        (status, rank(&["high", "medium", "low"], task.priority))
    });
    board
}

fn read(path: &Path, board: &mut Board) {
    let Some(text) = fs::read_text(path).log_err("read a task file") else { return };
    let page = Document::parse(&text);
    let before = board.tasks.len();
    if page.field("title").is_some() || page.field("status").is_some() {
        board.tasks.push(one(path, &page));
    }
    let head = text.lines().count().saturating_sub(page.body.lines().count());
    let mut fence = Fence::default();
    for (at, line) in page.body.lines().enumerate() {
        if fence.inside(line) {
            continue;
        }
        let item = line.trim_start().strip_prefix(['-', '*']).map(str::trim_start).unwrap_or_default();
        let boxes = [("[ ]", "pending"), ("[x]", "completed"), ("[X]", "completed"), ("[~]", "in_progress")];
        let Some((status, title)) = boxes.iter().find_map(|(mark, status)| Some((*status, item.strip_prefix(mark)?)))
        else {
            continue;
        };
        let title = title.trim().to_owned();
        let file = path.to_owned();
        board.tasks.push(BoardTask {
            title,
            status,
            priority: "low",
            file,
            line: head + at + 1,
            ..BoardTask::default()
        });
    }
    if board.tasks.len() == before {
        board.without.push(path.to_owned());
    }
}

/// A file that is one task. A status nobody knows is pending, a priority nobody knows is low.
fn one(path: &Path, page: &Document) -> BoardTask {
    let known = |key: &str, words: &[&'static str], otherwise| {
        let said = page.text(key);
        words.iter().copied().find(|word| *word == said).unwrap_or(otherwise)
    };
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let or = |text: String, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text };
    let blocked_by = match page.field("blocked_by") {
        Some(Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map_or(item.to_string(), str::to_owned)).collect()
        }
        Some(Value::String(text)) if !text.is_empty() => text.split(',').map(|part| part.trim().to_owned()).collect(),
        _ => Vec::new(),
    };
    BoardTask {
        id: or(page.text("id"), &stem),
        title: or(page.text("title"), &stem),
        status: known("status", &["pending", "in_progress", "completed", "blocked"], "pending"),
        priority: known("priority", &["high", "medium", "low"], "low"),
        assigned_to: page.text("assigned_to"),
        created: page.text("created"),
        updated: page.text("updated"),
        deliverable: page.text("deliverable"),
        blocked_by,
        file: path.to_owned(),
        line: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_boxes_are_tasks_and_what_is_unknown_is_harmless() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs_err::write(dir.path().join(name), text).unwrap();
        put(
            "task_001_lamp.md",
            "---\nid: 1\ntitle: Mend the lamp\nstatus: in_progress\npriority: high\nassigned_to: yuki\nblocked_by: [2, 3]\n---\ntext\n",
        );
        put("task_002_key.md", "---\ntitle: Find the key\nstatus: whenever\npriority: soon\n---\n");
        put("list.md", "# List\n\n- [ ] buy oil\n- [x] sweep\n```\n- [ ] not one\n```\n");
        put("prose.md", "nothing to do\n");
        let found = board(&[dir.path().to_owned(), dir.path().join("missing.md")]);
        let shown: Vec<_> = found.tasks.iter().map(|task| (task.title.as_str(), task.status, task.priority)).collect();
        assert_eq!(
            shown,
            [
                ("Mend the lamp", "in_progress", "high"),
                ("buy oil", "pending", "low"),
                ("Find the key", "pending", "low"),
                ("sweep", "completed", "low"),
            ]
        );
        assert_eq!((found.tasks[0].id.as_str(), found.tasks[0].blocked_by.len(), found.tasks[1].line), ("1", 2, 3));
        assert_eq!(found.without, [dir.path().join("prose.md")]);
    }
}
