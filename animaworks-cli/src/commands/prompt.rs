//! `prompt show ANIMA`: what a model would read, section by section, without running a turn.

mod page;

use std::path::Path;

use animaworks_core::{
    ErrorKind, Locale, Message, Night, PromptMessage, TaskId, Tokens, Trigger,
    fs::{Privacy, write_atomic},
    i18n::fill,
    life::Sketch,
    prompt::{Row, Section, TABLE, Use, Why},
    t,
};
use serde_json::{Value, json};

use crate::{
    args::{Prompt, PromptShow},
    context::{Cx, block_on},
    error::{CliError, CliResult},
    ui,
};

pub(super) fn run(cx: &Cx, command: Prompt) -> CliResult {
    let Prompt::Show(args) = command;
    let PromptShow { anima, message, trigger, html } = args;
    let name = cx.anima(&anima)?;
    let trigger = parse(cx, &trigger, message.as_deref().unwrap_or_default())?;
    block_on(async {
        let host = cx.host()?;
        let sketch = host.sketch(&name, trigger).await?;
        let picture = Picture { locale: host.locale(), sketch: &sketch };
        if let Some(file) = html {
            let file = cx.env.absolute(Path::new(&fill(&file, &[("anima", name.as_str())])));
            write_atomic(&file, picture.page(name.as_str()).as_bytes(), Privacy::Secret)?;
            ui::note(t!(cx.locale, "cli.prompt.written", path = file.display()));
            return if cx.json { ui::json(&picture.data(name.as_str())) } else { Ok(()) };
        }
        if cx.json { ui::json(&picture.data(name.as_str())) } else { picture.print() }
    })
}

/// A trigger as it is typed: `heartbeat`, `cron:NAME`, `task:ID`.
fn parse(cx: &Cx, typed: &str, message: &str) -> CliResult<Trigger> {
    let (kind, which) = typed.split_once(':').unwrap_or((typed, ""));
    Ok(match (kind, which) {
        ("chat", "") => Trigger::Chat(Box::new(Message::human("human", message))),
        ("inbox", "") => Trigger::Inbox { from: Vec::new() },
        ("heartbeat", "") => Trigger::Heartbeat,
        ("bootstrap", "") => Trigger::Bootstrap,
        ("consolidation", "") => Trigger::Consolidation(Night::Daily),
        ("cron", job) if !job.is_empty() => Trigger::Cron { job: job.to_owned() },
        ("task", id) if !id.is_empty() => Trigger::Task(TaskId::new(id)?),
        _ => {
            let said = t!(cx.locale, "cli.prompt.unknown_trigger", trigger = typed);
            return Err(CliError::said(ErrorKind::InvalidRequest, said));
        }
    })
}

/// A prompt to be looked at.
struct Picture<'a> {
    locale: Locale,
    sketch: &'a Sketch,
}

impl Picture<'_> {
    fn rows(&self) -> Vec<(&Section, Option<&'static Row>, Tokens)> {
        let row = |section: &Section| TABLE.iter().find(|row| row.id == section.id);
        let sections = self.sketch.system.sections.iter();
        sections.map(|section| (section, row(section), Tokens::estimate(&section.text))).collect()
    }

    /// When a section is there.
    fn condition(&self, row: Option<&Row>) -> String {
        let Some(row) = row else { return String::new() };
        let locale = self.locale;
        let how = match row.used_by(self.sketch.trigger) {
            Use::Full => t!(locale, "cli.prompt.full"),
            Use::Short => t!(locale, "cli.prompt.short"),
            Use::Off => t!(locale, "cli.prompt.off"),
        };
        let cut = if row.elastic { t!(locale, "cli.prompt.elastic") } else { t!(locale, "cli.prompt.rigid") };
        t!(locale, "cli.prompt.condition", how = how, tier = word(&row.from), priority = row.priority, cut = cut)
    }

    fn why(&self, why: Why) -> String {
        match why {
            Why::Trigger => t!(self.locale, "cli.prompt.why.trigger"),
            Why::Tier => t!(self.locale, "cli.prompt.why.tier"),
            Why::Empty => t!(self.locale, "cli.prompt.why.empty"),
            Why::Budget => t!(self.locale, "cli.prompt.why.budget"),
        }
    }

    /// Tokens of the messages, and of the tools.
    fn beside(&self) -> (u32, u32) {
        let messages = self.sketch.messages.iter().map(|message| Tokens::estimate(&spoken(message)).0).sum();
        let tool = |text: &str| Tokens::estimate(text).0;
        let tools = self.sketch.tools.iter().map(|spec| tool(&spec.description) + tool(&spec.schema.to_string())).sum();
        (messages, tools)
    }

    fn total(&self) -> String {
        let (messages, tools) = self.beside();
        let system = &self.sketch.system;
        t!(
            self.locale,
            "cli.prompt.total",
            model = self.sketch.model.id,
            mode = self.sketch.model.mode,
            trigger = word(&self.sketch.trigger),
            system = system.tokens.0,
            messages = messages,
            tools = tools,
            window = self.sketch.model.window.0,
            tier = word(&system.tier)
        )
    }

    fn print(&self) -> CliResult {
        let (paint, locale) = (ui::style::Paint::stdout(), self.locale);
        for (section, row, tokens) in self.rows() {
            let size = t!(locale, "cli.prompt.size", tokens = tokens.0);
            ui::line(format!("{}  {}  {size}", paint.bold(section.id), paint.cyan(&section.source)))?;
            ui::line(paint.dim(&self.condition(row)))?;
            ui::line(format!("{}\n", section.text.trim()))?;
        }
        for message in &self.sketch.messages {
            ui::line(paint.bold(&t!(locale, "cli.prompt.message")))?;
            ui::line(format!("{}\n", spoken(message)))?;
        }
        let names: Vec<&str> = self.sketch.tools.iter().map(|spec| spec.name.as_str()).collect();
        ui::line(format!("{} {}\n", paint.bold(&t!(locale, "cli.prompt.tools")), names.join(", ")))?;
        ui::line(paint.bold(&t!(locale, "cli.prompt.missing")))?;
        for omitted in &self.sketch.system.omitted {
            ui::line(format!("  {}  {}", omitted.id, paint.dim(&self.why(omitted.why))))?;
        }
        for part in &self.sketch.degraded {
            ui::note(t!(locale, "cli.chat.degraded", part = part.part, why = part.why));
        }
        ui::line(format!("\n{}", self.total()))
    }

    fn data(&self, anima: &str) -> Value {
        let sections: Vec<Value> = self
            .rows()
            .into_iter()
            .map(|(section, row, tokens)| {
                json!({
                    "id": section.id, "group": section.group, "source": section.source, "tokens": tokens.0,
                    "condition": self.condition(row), "from_tier": row.map(|row| row.from),
                    "priority": row.map(|row| row.priority), "elastic": row.map(|row| row.elastic),
                    "text": section.text,
                })
            })
            .collect();
        let (messages, tools) = self.beside();
        json!({
            "anima": anima, "model": self.sketch.model.id, "mode": self.sketch.model.mode,
            "trigger": self.sketch.trigger, "window": self.sketch.model.window, "tier": self.sketch.system.tier,
            "tokens": {"system": self.sketch.system.tokens, "messages": messages, "tools": tools},
            "sections": sections, "omitted": self.sketch.system.omitted,
            "messages": self.sketch.messages.iter().map(spoken).collect::<Vec<_>>(),
            "tools": self.sketch.tools.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(),
            "degraded": self.sketch.degraded,
        })
    }
}

/// What was said, as text.
fn spoken(message: &PromptMessage) -> String {
    match message {
        PromptMessage::User { text, .. }
        | PromptMessage::Assistant { text, .. }
        | PromptMessage::ToolResult { text, .. } => text.clone(),
    }
}

/// A value by the word it has in files.
fn word<T: serde::Serialize>(value: &T) -> String {
    json!(value).as_str().unwrap_or_default().to_owned()
}
