//! Reads what a prompt is made of: the Anima's own files, its shelves and the errand of the turn.

use std::path::Path;

use crate::{
    error::ResultExt,
    fs::{FileError, read_text_if_exists},
    home::AnimaHome,
    i18n::Locale,
    message::Message,
    prompt::{Ask, OwnFiles, Shelves, TaskBrief, Texts, brief},
    t,
    task::Task,
    trigger::{Night, Trigger},
};

/// Files that say who the Anima is. Blocks.
///
/// # Errors
///
/// [`FileError`] names the file that cannot be read; missing ones are empty.
pub(super) fn own_files(home: &AnimaHome) -> Result<OwnFiles, FileError> {
    let dir = home.dir();
    let read = |path: &Path| Ok::<_, FileError>(read_text_if_exists(path)?.unwrap_or_default());
    Ok(OwnFiles {
        identity: read(&dir.file("identity.md"))?,
        injection: read(&dir.file("injection.md"))?,
        specialty: read(&dir.file("specialty_prompt.md"))?,
        // the gate says what is wrong with it and stops tools; talk goes on
        permissions: read(&dir.file("permissions.md")).log_err("show the permissions").unwrap_or_default(),
        bootstrap: read(&dir.file("bootstrap.md"))?,
        vision: read(&dir.data().vision())?,
        current_state: home.current_state()?,
        pending: home.backlog()?,
    })
}

/// What the organisation has solved lately, newest first. Blocks.
pub(super) fn resolutions(home: &AnimaHome) -> Vec<String> {
    let found = home.resolutions().log_err("read what was solved lately").unwrap_or_default();
    found.iter().rev().map(|solved| solved.line().trim_start_matches("- ").to_owned()).collect()
}

/// What there is to look up. Blocks; a shelf that cannot be listed counts as empty.
pub(super) fn shelves(home: &AnimaHome) -> Shelves {
    let dir = home.dir();
    let data = dir.data();
    Shelves {
        knowledge: titles(&dir.file("knowledge")),
        procedures: titles(&dir.file("procedures")),
        users: names(&data.users()),
        skills: home.skill_catalogue(),
        common_knowledge: !names(&data.common_knowledge()).is_empty(),
    }
}

/// The names in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = match fs_err::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!(%error, "a shelf cannot be listed");
            return Vec::new();
        }
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.log_err("list a shelf"))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

fn titles(directory: &Path) -> Vec<String> {
    names(directory).into_iter().filter_map(|name| name.strip_suffix(".md").map(str::to_owned)).collect()
}

/// What a turn is about, owned.
#[derive(Debug)]
pub(super) enum Errand {
    Chat(Box<Message>),
    Greet { user: String, status: String },
    Bootstrap,
    Inbox(Vec<Message>),
    Heartbeat { checklist: String, notes: Vec<String> },
    Cron { job: String, description: String },
    Task(Box<Task>),
    Consolidation(Night),
}

impl Errand {
    /// The last message of the prompt.
    pub(super) fn ask(&self, home: &AnimaHome, texts: &Texts) -> String {
        let task;
        let ask = match self {
            Self::Chat(message) => Ask::Chat(message),
            Self::Greet { user, status } => Ask::Greet { user, status },
            Self::Bootstrap => Ask::Bootstrap,
            Self::Inbox(letters) => Ask::Inbox(letters),
            Self::Heartbeat { checklist, notes } => Ask::Heartbeat { checklist, notes },
            Self::Cron { job, description } => Ask::Cron { job, description },
            Self::Task(found) => {
                task = details(found);
                Ask::Task(TaskBrief {
                    id: found.task_id.as_str(),
                    title: &found.summary,
                    from: found.relay_chain.last().map_or("-", String::as_str),
                    description: &found.original_instruction,
                    details: &task,
                })
            }
            Self::Consolidation(night) => Ask::Consolidation(*night),
        };
        brief(home.locale(), texts, &ask)
    }
}

/// Whatever else belongs to a task, one line each.
fn details(task: &Task) -> String {
    let mut lines: Vec<String> = task
        .meta
        .iter()
        .map(|(key, value)| match value {
            serde_json::Value::String(text) => format!("- {key}: {text}"),
            other => format!("- {key}: {other}"),
        })
        .collect();
    lines.sort();
    if let Some(deadline) = &task.deadline {
        lines.push(format!("- deadline: {deadline}"));
    }
    lines.join("\n")
}

/// The errand of a trigger that is all in the Anima's own files. Blocks.
///
/// # Errors
///
/// [`FileError`] names the file.
pub(super) fn from_files(home: &AnimaHome, trigger: &Trigger) -> Result<Option<Errand>, FileError> {
    let dir = home.dir();
    Ok(Some(match trigger {
        Trigger::Chat(message) => Errand::Chat(message.clone()),
        Trigger::Greet { user } => {
            let status = read_text_if_exists(&dir.state("current_state.md"))?.unwrap_or_default();
            let status = status.trim().lines().next().unwrap_or("idle").to_owned();
            Errand::Greet { user: user.clone(), status }
        }
        Trigger::Bootstrap => Errand::Bootstrap,
        Trigger::Heartbeat => {
            let text = read_text_if_exists(&dir.file("heartbeat.md"))?.unwrap_or_default();
            let note = home.recovery_note()?;
            Errand::Heartbeat { checklist: checklist(&text), notes: note.into_iter().collect() }
        }
        Trigger::Cron { job } => {
            let text = read_text_if_exists(&dir.file("cron.md"))?.unwrap_or_default();
            Errand::Cron { job: job.clone(), description: appointment(&text, job) }
        }
        Trigger::Consolidation(night) => Errand::Consolidation(*night),
        Trigger::Inbox { .. } | Trigger::Task(_) => return Ok(None),
    }))
}

/// The section `## Checklist` of `heartbeat.md`, in either language; all of it when there is none.
fn checklist(text: &str) -> String {
    let titles = Locale::ALL.map(|locale| t!(locale, "core.life.checklist"));
    section(text, |title| titles.iter().any(|known| known.eq_ignore_ascii_case(title)))
        .unwrap_or_else(|| text.trim().to_owned())
}

/// What `cron.md` says about a job, without its keys.
fn appointment(text: &str, job: &str) -> String {
    const KEYS: [&str; 10] = [
        "schedule",
        "type",
        "command",
        "tool",
        "args",
        "trigger_heartbeat",
        "skip_pattern",
        "enabled",
        "timeout",
        "skills",
    ];
    let body = section(text, |title| title == job).unwrap_or_default();
    let lines = body.lines().filter(|line| {
        let line = line.trim_start_matches(['-', ' ']).replace('：', ":");
        let key = line.split(':').next().unwrap_or_default().trim().trim_matches('`').to_owned();
        !(line.contains(':') && KEYS.contains(&key.as_str()))
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The text below the first heading whose title fits, up to the next heading of its level or above.
fn section(text: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
    let mut lines = text.lines();
    let level = lines.by_ref().find_map(|line| {
        let (level, title) = heading(line)?;
        fits(title).then_some(level)
    })?;
    let body: Vec<&str> = lines.take_while(|line| heading(line).is_none_or(|(next, _)| next > level)).collect();
    Some(body.join("\n").trim().to_owned())
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|c| *c == '#').count();
    let title = line.get(level..)?.strip_prefix(' ')?;
    (level > 0).then(|| (level, title.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checklist_is_its_section_or_all_of_it() {
        assert_eq!(
            checklist("## 活動時間\n9-18\n\n## チェックリスト\n- 受信箱\n### 細目\n- a\n## 他\nx"),
            "- 受信箱\n### 細目\n- a"
        );
        assert_eq!(checklist("- 受信箱\n"), "- 受信箱");
    }

    #[test]
    fn an_appointment_is_told_without_its_keys() {
        let cron = "## 日報\nschedule: 0 18 * * *\n- type： llm\n一日をまとめる。\n時刻: 18時\n\n## 他\nx";
        assert_eq!(appointment(cron, "日報"), "一日をまとめる。\n時刻: 18時");
        assert_eq!(appointment(cron, "無い"), "");
    }
}
