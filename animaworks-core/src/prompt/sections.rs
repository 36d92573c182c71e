//! The sections of a system prompt: one table of what, from where, for whom and from which window on.

use super::{Group, Member, PromptInput, Tier, priming_section};
use crate::{i18n::Locale, mode::ExecutionMode, t, trigger::TriggerKind, trust::neutralise_fences, units::Tokens};

/// How a trigger uses a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// All of it.
    Full,
    /// Its beginning, or a shorter form.
    Short,
    /// Not at all.
    Off,
}

use Use::{Full as F, Off as O, Short as S};

/// One row: a section and where it belongs.
#[derive(Debug)]
pub struct Row {
    /// Its id.
    pub id: &'static str,
    /// Its group.
    pub group: Group,
    /// What is left out last: 1 before 4.
    pub priority: u8,
    /// Whether it may be cut to fit; others are there as a whole or not at all.
    pub elastic: bool,
    /// The smallest tier that has it.
    pub from: Tier,
    /// Chat, inbox, heartbeat, cron, task, consolidation.
    pub uses: [Use; 6],
    /// Where its text comes from.
    pub source: &'static str,
    /// Its text.
    pub(super) text: fn(&PromptInput, Use) -> String,
}

impl Row {
    /// How a trigger uses it.
    pub fn used_by(&self, trigger: TriggerKind) -> Use {
        let [chat, inbox, heartbeat, cron, task, consolidation] = self.uses;
        match trigger {
            TriggerKind::Chat => chat,
            TriggerKind::Inbox => inbox,
            TriggerKind::Heartbeat => heartbeat,
            TriggerKind::Cron => cron,
            TriggerKind::Task => task,
            TriggerKind::Consolidation => consolidation,
        }
    }
}

macro_rules! table {
    ($($id:literal $group:ident $priority:literal $kind:ident $tier:ident [$($use:ident),*] $source:literal $text:expr;)*) => {
        /// Every section, in the order of the prompt (exec spec §3.3).
        pub static TABLE: &[Row] = &[$(Row {
            id: $id,
            group: Group::$group,
            priority: $priority,
            elastic: table!(@$kind),
            from: Tier::$tier,
            uses: [$($use),*],
            source: $source,
            text: $text,
        }),*];
    };
    (@elastic) => { true };
    (@rigid) => { false };
}

// columns: chat, inbox, heartbeat, cron, task, consolidation
table! {
    "environment" Environment 1 rigid Minimal [F, S, F, F, S, F] "prompts/environment.md" environment;
    "current_time" Environment 1 rigid Minimal [F, F, F, F, F, F] "clock" current_time;
    "behavior_rules" Environment 2 rigid Minimal [F, F, F, F, F, F] "prompts/behavior_rules.md" |i, _| i.texts.plain("behavior_rules");
    "tool_data_interpretation" Environment 2 rigid Minimal [F, F, F, F, F, F] "prompts/tool_data_interpretation.md" |i, _| i.texts.plain("tool_data_interpretation");
    "bootstrap" Yourself 2 rigid Standard [F, O, O, O, O, O] "bootstrap.md" |i, _| titled(i, "prompt.title.bootstrap", &i.own.bootstrap);
    "vision" Yourself 4 elastic Standard [F, O, S, S, O, O] "company/vision.md" |i, how| titled(i, "prompt.title.vision", &short(&i.own.vision, how, 150));
    "identity" Yourself 1 elastic Minimal [F, F, F, F, S, F] "identity.md" identity;
    "injection" Yourself 2 elastic Minimal [F, F, F, F, O, F] "injection.md" |i, _| titled(i, "prompt.title.injection", &i.own.injection);
    "specialty" Yourself 3 elastic Standard [F, F, O, O, O, O] "specialty_prompt.md" |i, _| titled(i, "prompt.title.specialty", &i.own.specialty);
    "permissions" Yourself 3 elastic Light [F, F, F, F, S, O] "permissions.md" |i, how| titled(i, "prompt.title.permissions", &short(&i.own.permissions, how, 200));
    "current_state" Situation 2 rigid Minimal [F, F, F, F, O, F] "state/current_state.md" current_state;
    "continuation" Situation 1 elastic Minimal [F, F, F, F, F, F] "shortterm" |i, _| continuation(i);
    "resolutions" Situation 4 elastic Light [F, O, F, F, O, F] "shared/resolutions.jsonl" |i, _| listed(i, "prompt.title.resolutions", &i.resolutions, 10);
    "priming" Situation 1 rigid Minimal [F, F, F, F, O, F] "memory" |i, _| priming_section(i.locale, i.trigger, &i.priming).text;
    "recent_results" Situation 3 elastic Light [F, O, O, O, O, O] "conversation" recent_results;
    "notifications" Situation 2 elastic Minimal [O, O, F, F, O, O] "state/background_notifications" |i, _| listed(i, "prompt.title.notifications", &i.notifications, 20);
    "memory_guide" Abilities 3 rigid Standard [F, S, F, F, O, F] "prompts/memory_guide.md" memory_guide;
    "common_knowledge" Abilities 4 rigid Minimal [F, S, F, F, S, F] "common_knowledge" common_knowledge;
    "tool_guides" Abilities 3 elastic Minimal [F, S, F, F, F, F] "prompts/tool_guides" tool_guides;
    "skills" Abilities 4 elastic Light [F, F, S, F, F, O] "skills" skills;
    "hiring" Organisation 4 rigid Light [F, O, O, O, O, O] "prompts/builder/hiring_context.md" hiring;
    "org" Organisation 3 rigid Light [F, F, F, F, O, O] "organisation" org;
    "messaging" Organisation 3 elastic Light [F, F, S, S, O, O] "prompts/messaging.md" messaging;
    "human_notification" Organisation 4 rigid Light [F, F, F, F, O, O] "prompts/human_notification.md" |i, _| if i.around.calls_people { i.texts.plain("human_notification") } else { String::new() };
    "emotion" Meta 4 rigid Light [F, F, O, O, O, O] "prompts/emotion_instruction.md" |i, _| i.texts.text("emotion_instruction", &[("emotion_list", EMOTIONS.join(", "))]);
    "a_reflection" Meta 4 rigid Light [F, F, O, O, O, O] "prompts/a_reflection.md" |i, _| if i.mode == ExecutionMode::Autonomous { i.texts.plain("a_reflection") } else { String::new() };
}

/// The emotions an answer may carry; anything else is read as the first one.
pub const EMOTIONS: [&str; 7] = ["neutral", "smile", "laugh", "troubled", "surprised", "thinking", "embarrassed"];

fn environment(input: &PromptInput, how: Use) -> String {
    let fields = [
        ("anima_name", input.anima.as_str()),
        ("data_dir", input.data_dir.as_str()),
        ("anima_dir", input.anima_dir.as_str()),
    ];
    let text = input.texts.text("environment", &fields);
    match how {
        // where it is, without the rules of the house
        Use::Short => text.split("\n\n").take(2).collect::<Vec<_>>().join("\n\n"),
        _ => text,
    }
}

fn current_time(input: &PromptInput, _: Use) -> String {
    use chrono::Datelike;
    let weekday = match input.now.weekday() {
        chrono::Weekday::Mon => "prompt.weekday.mon",
        chrono::Weekday::Tue => "prompt.weekday.tue",
        chrono::Weekday::Wed => "prompt.weekday.wed",
        chrono::Weekday::Thu => "prompt.weekday.thu",
        chrono::Weekday::Fri => "prompt.weekday.fri",
        chrono::Weekday::Sat => "prompt.weekday.sat",
        chrono::Weekday::Sun => "prompt.weekday.sun",
    };
    let weekday = input.locale.text(weekday, &[]);
    let now = format!("{} ({weekday}) {}", input.now.format("%Y-%m-%d"), input.now.format("%H:%M %Z"));
    t!(input.locale, "prompt.now", now = now)
}

fn identity(input: &PromptInput, how: Use) -> String {
    let text = match how {
        Use::Short => {
            input.own.identity.lines().filter(|line| !line.trim().is_empty()).take(3).collect::<Vec<_>>().join("\n")
        }
        _ => input.own.identity.clone(),
    };
    titled(input, "prompt.title.identity", &text)
}

fn current_state(input: &PromptInput, _: Use) -> String {
    let scale = (f64::from(input.window.0) / 128_000.0).min(1.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 3000")]
    let chars = ((3000.0 * scale) as usize).max(500);
    let mut text = tail(&input.own.current_state, chars);
    if !input.own.pending.trim().is_empty() {
        text.push_str(&format!("\n\n### {}\n\n", t!(input.locale, "prompt.title.pending")));
        text.push_str(&tail(&input.own.pending, chars));
    }
    titled(input, "prompt.title.current_state", &text)
}

/// The last `chars` characters, from the next line on when that is near (memory spec §4.5).
fn tail(text: &str, chars: usize) -> String {
    let text = text.trim();
    let Some((from, _)) = text.char_indices().rev().nth(chars.saturating_sub(1)).filter(|(at, _)| *at > 0) else {
        return text.to_owned();
    };
    let rest = text.get(from..).unwrap_or_default();
    match rest.find('\n') {
        Some(at) if at * 5 <= rest.len() => rest.get(at + 1..).unwrap_or_default().to_owned(),
        _ => rest.to_owned(),
    }
}

fn continuation(input: &PromptInput) -> String {
    match &input.continues {
        Some(notes) if !notes.trim().is_empty() => {
            input.texts.text("session_continuation", &[("state", neutralise_fences(notes.trim()))])
        }
        _ => String::new(),
    }
}

fn recent_results(input: &PromptInput, _: Use) -> String {
    if input.mode == ExecutionMode::Basic {
        let mut left = 2000_u32;
        let kept: Vec<String> = input
            .recent_results
            .iter()
            .take(15)
            .map(|result| {
                let cut: String = result.chars().take(500).collect();
                neutralise_fences(&cut)
            })
            .take_while(|result| {
                left = left.saturating_sub(Tokens::estimate(result).0);
                left > 0
            })
            .collect();
        return listed(input, "prompt.title.recent_results", &kept, 15);
    }
    String::new()
}

fn memory_guide(input: &PromptInput, how: Use) -> String {
    let names = |names: &[String]| named(input.locale, names, 30);
    let shelves = &input.shelves;
    let text = input.texts.text(
        "memory_guide",
        &[
            ("knowledge_count", shelves.knowledge.len().to_string()),
            ("procedure_count", shelves.procedures.len().to_string()),
            ("knowledge_list", names(&shelves.knowledge)),
            ("procedure_list", names(&shelves.procedures)),
            ("shared_users_list", names(&shelves.users)),
        ],
    );
    short(&text, how, 120)
}

fn common_knowledge(input: &PromptInput, _: Use) -> String {
    if input.shelves.common_knowledge { input.texts.plain("builder/common_knowledge_hint") } else { String::new() }
}

fn tool_guides(input: &PromptInput, how: Use) -> String {
    if input.tools.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = input
        .tools
        .iter()
        .map(|tool| match how {
            Use::Short => format!("`{}`", tool.name),
            _ => format!("- `{}`: {}", tool.name, first_sentence(&tool.description)),
        })
        .collect();
    let list = lines.join(if how == Use::Short { ", " } else { "\n" });
    let guide = if input.mode.is_child() { "tool_guides/s_mcp" } else { "tool_guides/non_s" };
    input.texts.text(guide, &[("tool_list", list)])
}

fn skills(input: &PromptInput, how: Use) -> String {
    let skills = &input.shelves.skills;
    if skills.is_empty() {
        return String::new();
    }
    if how == Use::Short {
        return t!(input.locale, "prompt.skills.hint", count = skills.len());
    }
    let lines: Vec<String> = skills
        .iter()
        .map(|skill| {
            let description: String = skill.description.chars().take(250).collect();
            format!("- {} (`{}`): {}", skill.name, skill.path, neutralise_fences(description.trim()))
        })
        .collect();
    let intro = t!(input.locale, "prompt.skills.intro");
    titled(
        input,
        "prompt.title.skills",
        &format!("{intro}\n\n<available_skills>\n{}\n</available_skills>", lines.join("\n")),
    )
}

fn hiring(input: &PromptInput, _: Use) -> String {
    if input.around.everybody.is_empty() { input.texts.plain("builder/hiring_context") } else { String::new() }
}

fn org(input: &PromptInput, _: Use) -> String {
    let (locale, around) = (input.locale, &input.around);
    if around.everybody.is_empty() {
        return titled(input, "prompt.title.org", &t!(locale, "prompt.org.alone"));
    }
    let supervisor = match &around.supervisor {
        Some(member) => line(locale, std::slice::from_ref(member)),
        None => t!(locale, "prompt.org.top"),
    };
    let mut below = line(locale, &around.subordinates);
    if around.further_below > 0 {
        below.push_str(&t!(locale, "prompt.org.further_below", count = around.further_below));
    }
    let speciality = if around.speciality.is_empty() { t!(locale, "prompt.none") } else { around.speciality.clone() };
    input.texts.text(
        "org_context",
        &[
            ("supervisor_line", supervisor),
            ("subordinates_line", below),
            ("peers_line", line(locale, &around.peers)),
            ("anima_speciality", speciality),
            ("communication_rules", input.texts.plain("communication_rules")),
        ],
    )
}

fn line(locale: Locale, members: &[Member]) -> String {
    let lines: Vec<String> = members
        .iter()
        .map(|member| match member.speciality.trim() {
            "" => member.name.to_string(),
            speciality => t!(locale, "prompt.org.member", name = member.name, speciality = speciality),
        })
        .collect();
    named(locale, &lines, usize::MAX)
}

fn messaging(input: &PromptInput, how: Use) -> String {
    if input.around.everybody.is_empty() {
        return String::new();
    }
    let names: Vec<String> = input.around.everybody.iter().map(ToString::to_string).collect();
    let text = input.texts.text("messaging", &[("animas_line", named(input.locale, &names, 60))]);
    short(&text, how, 150)
}

fn titled(input: &PromptInput, title: &str, body: &str) -> String {
    match body.trim() {
        "" => String::new(),
        body => format!("## {}\n\n{}", input.locale.text(title, &[]), demote(body)),
    }
}

fn listed(input: &PromptInput, title: &str, entries: &[String], max: usize) -> String {
    let lines: Vec<String> =
        entries.iter().take(max).map(|entry| format!("- {}", neutralise_fences(entry.trim()))).collect();
    titled(input, title, &lines.join("\n"))
}

fn named(locale: Locale, names: &[String], max: usize) -> String {
    match names {
        [] => t!(locale, "prompt.none"),
        names if names.len() > max => format!("{}, …", names.iter().take(max).cloned().collect::<Vec<_>>().join(", ")),
        names => names.join(", "),
    }
}

/// The beginning of a text for a shortened section, cut between lines.
fn short(text: &str, how: Use, tokens: u32) -> String {
    if how != Use::Short {
        return text.to_owned();
    }
    let head = Tokens(tokens).head(text);
    match head.rfind('\n') {
        Some(at) if head.len() < text.len() => head.get(..at).unwrap_or_default().to_owned(),
        _ => head.to_owned(),
    }
}

fn first_sentence(text: &str) -> &str {
    let line = text.trim().lines().next().unwrap_or_default();
    let end = line
        .char_indices()
        .find(|(at, c)| {
            *c == '。' || (*c == '.' && line.get(at + 1..).is_none_or(|rest| rest.is_empty() || rest.starts_with(' ')))
        })
        .map_or(line.len(), |(at, c)| at + c.len_utf8());
    line.get(..end).unwrap_or(line)
}

/// Moves the headings of an included file below the section's own, outside code fences.
fn demote(text: &str) -> String {
    let mut fenced = false;
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            }
            let level = line.chars().take_while(|c| *c == '#').count();
            let is_heading = (1..=5).contains(&level) && line.chars().nth(level) == Some(' ');
            if is_heading && !fenced && level < 3 {
                format!("{}{line}", "#".repeat(3 - level))
            } else {
                line.to_owned()
            }
        })
        .collect();
    lines.join("\n")
}
