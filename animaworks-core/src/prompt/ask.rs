//! What a turn is asked to do: the last message of the prompt, by trigger (exec spec §7, Appendix E).

use super::Texts;
use crate::{
    i18n::Locale,
    message::Message,
    t,
    trigger::Night,
    trust::{Trust, attribute, neutralise_fences},
};

/// What a turn is about, with the data its prompt needs.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask<'a> {
    /// Answer somebody.
    Chat(&'a Message),
    /// Greet somebody.
    Greet {
        /// Who.
        user: &'a str,
        /// What the Anima is at.
        status: &'a str,
    },
    /// Make yourself out of your character sheet.
    Bootstrap,
    /// Answer letters.
    Inbox(&'a [Message]),
    /// Look around.
    Heartbeat {
        /// What to look at; empty for the shipped list.
        checklist: &'a str,
        /// What to know before: a recovery note, for instance.
        notes: &'a [String],
    },
    /// Keep an appointment.
    Cron {
        /// Its name.
        job: &'a str,
        /// What to do.
        description: &'a str,
    },
    /// Carry out a task.
    Task(TaskBrief<'a>),
    /// Sleep.
    Consolidation(Night),
}

/// A task as its prompt needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskBrief<'a> {
    /// Its id.
    pub id: &'a str,
    /// One line.
    pub title: &'a str,
    /// Who gave it.
    pub from: &'a str,
    /// All of it.
    pub description: &'a str,
    /// Context, acceptance criteria, constraints, files.
    pub details: &'a str,
}

/// The last message of the prompt.
pub fn brief(locale: Locale, texts: &Texts, ask: &Ask<'_>) -> String {
    match ask {
        Ask::Chat(message) => said(texts, message),
        Ask::Greet { user, status } => texts.text("greet", &[("user", *user), ("status", *status)]),
        Ask::Bootstrap => texts.plain("bootstrap"),
        Ask::Inbox(letters) => {
            let letters: Vec<String> = letters.iter().map(|letter| letter_text(locale, texts, letter)).collect();
            texts.text("inbox_message", &[("messages", letters.join("\n\n"))])
        }
        Ask::Heartbeat { checklist, notes } => {
            let default = texts.plain("heartbeat_default_checklist");
            let checklist = if checklist.trim().is_empty() { default.as_str() } else { checklist.trim() };
            let mut text = texts.text("heartbeat", &[("checklist", checklist)]);
            for note in notes.iter().filter(|note| !note.trim().is_empty()) {
                text.push_str("\n\n");
                text.push_str(note.trim());
            }
            text
        }
        Ask::Cron { job, description } => {
            texts.text("cron_task", &[("task_name", *job), ("description", *description)])
        }
        Ask::Task(task) => texts.text(
            "task_exec",
            &[
                ("task_id", task.id),
                ("title", task.title),
                ("submitted_by", task.from),
                ("description", task.description),
                ("details", task.details),
            ],
        ),
        Ask::Consolidation(night) => {
            let night = match night {
                Night::Daily => t!(locale, "prompt.night.daily"),
                Night::Weekly => t!(locale, "prompt.night.weekly"),
                Night::Monthly => t!(locale, "prompt.night.monthly"),
            };
            texts.text("consolidation", &[("night", night)])
        }
    }
}

/// What somebody said, fenced when it comes from outside the organisation.
pub fn said(texts: &Texts, message: &Message) -> String {
    if message.origin.trust() > Trust::Untrusted {
        return neutralise_fences(&message.text);
    }
    let fields = [
        ("source", attribute(&message.origin.source)),
        ("trust", message.origin.trust().as_str().to_owned()),
        ("content", neutralise_fences(&message.text)),
    ];
    texts.text("external_message", &fields)
}

fn letter_text(locale: Locale, texts: &Texts, letter: &Message) -> String {
    let intent = letter.intent.map_or("-", crate::message::Intent::as_str);
    let head = t!(locale, "prompt.letter", from = letter.from, intent = intent, id = letter.id);
    format!("### {head}\n\n{}", said(texts, letter))
}

/// How a broken turn is asked to go on: the same request, what is done, and what has been written (exec spec §2.6).
pub fn retry(locale: Locale, texts: &Texts, original: &str, done: &[(String, String)], written: &str) -> String {
    let done = match done {
        [] => t!(locale, "prompt.nothing"),
        done => done.iter().map(|(tool, what)| format!("- {tool}: {what}")).collect::<Vec<_>>().join("\n"),
    };
    let from = written.char_indices().rev().nth(1999).map_or(0, |(at, _)| at);
    let written = match written.get(from..).unwrap_or_default().trim() {
        "" => t!(locale, "prompt.nothing"),
        tail => tail.to_owned(),
    };
    let fields =
        [("original_prompt", original.to_owned()), ("completed_tools", neutralise_fences(&done)), ("written", written)];
    texts.text("stream_retry", &fields)
}
