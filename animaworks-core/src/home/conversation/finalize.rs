//! The end of a conversation: what was said becomes an episode (memory spec §5.4).
//!
//! Asking a model for the summary is the life's business; here is when to ask, how its answer is read, and how it
//! is kept exactly once.

use chrono::Duration;

use super::{Conversation, Turn};
use crate::{
    fs::{self, FileError},
    home::{
        AnimaHome,
        text::{head, one_line},
    },
    i18n::Locale,
    ids::ThreadId,
    trust::Origin,
};

/// A conversation has ended when nobody has said anything for so long.
const IDLE: Duration = Duration::minutes(10);
/// Fewer turns are not worth an episode.
const MIN_TURNS: usize = 3;
/// The longest title, in characters.
const MAX_TITLE: usize = 50;

/// A summary of a conversation, as a model wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionSummary {
    /// One line.
    pub title: String,
    /// The episode.
    pub body: String,
    /// What was solved.
    pub resolved: Vec<String>,
    /// What came up. Nothing is made of it by itself.
    pub new_tasks: Vec<String>,
    /// What the Anima is in the middle of now.
    pub current_state: String,
}

impl SessionSummary {
    /// Reads a summary; headings in either language count. Without them the whole text is the episode.
    pub fn parse(text: &str) -> Self {
        let mut summary = Self::default();
        let mut part = Part::Before;
        let mut episode = String::new();
        let mut state = Vec::new();
        for line in text.lines() {
            if let Some(next) = Part::of(line) {
                part = next;
                continue;
            }
            match part {
                Part::Before | Part::Changes => {}
                Part::Episode => {
                    episode.push_str(line);
                    episode.push('\n');
                }
                Part::Resolved => summary.resolved.extend(item(line)),
                Part::NewTasks => summary.new_tasks.extend(item(line)),
                Part::State => state.extend(item(line)),
            }
        }
        summary.current_state = state.join("\n");
        let episode = if episode.trim().is_empty() { text.trim() } else { episode.trim() };
        let (first, rest) = episode.split_once('\n').unwrap_or((episode, ""));
        let first = first.trim_start_matches('#').trim();
        head(&one_line(first), MAX_TITLE).clone_into(&mut summary.title);
        // a title that was cut is not all that was said
        let whole = summary.title.chars().count() < one_line(first).chars().count() || rest.trim().is_empty();
        summary.body = if whole { episode.to_owned() } else { rest.trim().to_owned() };
        summary
    }
}

/// A part of a summary.
#[derive(Debug, Clone, Copy)]
enum Part {
    Before,
    Episode,
    Changes,
    Resolved,
    NewTasks,
    State,
}

impl Part {
    /// The part that a heading opens.
    fn of(line: &str) -> Option<Self> {
        let heading = line.trim_start().strip_prefix("##")?.trim_start_matches('#').trim();
        let is = |key: &str| Locale::ALL.iter().any(|locale| locale.text(key, &[]).eq_ignore_ascii_case(heading));
        [
            ("memory.summary.episode", Self::Episode),
            ("memory.summary.changes", Self::Changes),
            ("memory.summary.resolved", Self::Resolved),
            ("memory.summary.new_tasks", Self::NewTasks),
            ("memory.summary.state", Self::State),
        ]
        .into_iter()
        .find_map(|(key, part)| is(key).then_some(part))
    }
}

/// What a line of a list says; nothing when it says that there is nothing.
fn item(line: &str) -> Option<String> {
    let text = line.trim().trim_start_matches(['-', '*']).trim();
    let bare = text.trim_matches(['(', ')', '（', '）']);
    let none = Locale::ALL.iter().any(|locale| locale.text("memory.summary.none", &[]).eq_ignore_ascii_case(bare));
    (!text.is_empty() && !none).then(|| text.to_owned())
}

impl AnimaHome {
    /// The turns that are to become an episode now: nobody has said anything for ten minutes, and there are at least
    /// three of them.
    pub fn to_finalize(&self, conversation: &Conversation) -> Option<Vec<Turn>> {
        let idle = self.now().fixed_offset() - self.last_said(conversation)? >= IDLE;
        let turns = conversation.unfinalized();
        (idle && turns.len() >= MIN_TURNS).then(|| turns.to_vec())
    }

    /// Keeps the episode of some turns and notes that they have one. `false`, and nothing is kept, when they have one
    /// already or have changed.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`]; the turns are then still to be finalized.
    pub fn finalize(
        &self,
        thread: &ThreadId,
        taken: &[Turn],
        summary: &SessionSummary,
        origin: &Origin,
    ) -> Result<bool, FileError> {
        self.update_conversation(thread, |conversation| {
            let left = conversation.unfinalized();
            let start = conversation.turns.len() - left.len();
            if taken.is_empty() || left.get(..taken.len()) != Some(taken) {
                return Ok(false);
            }
            // a crash may have come between the episode and the note that it is there
            let page = fs::read_text_if_exists(&self.dir().episode(self.today()))?.unwrap_or_default();
            if !page.contains(&format!("— {}\n\n{}\n", summary.title, summary.body)) {
                self.append_episode(&summary.title, &summary.body, origin)?;
            }
            conversation.last_finalized_turn_index = (start + taken.len()) as u64;
            Ok(true)
        })?
    }
}
