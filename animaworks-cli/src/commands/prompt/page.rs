//! The page of a prompt: one block a section, as wide as it is large.

use animaworks_core::{Tokens, i18n::fill, prompt::Group, t};

use super::{Picture, spoken};

/// The frame; `{…}` are filled in.
const PAGE: &str = include_str!("page.html");

impl Picture<'_> {
    /// The whole page; nothing in it is fetched from elsewhere.
    pub(super) fn page(&self, anima: &str) -> String {
        let locale = self.locale;
        let rows = self.rows();
        let largest = rows.iter().map(|(.., tokens)| tokens.0).max().unwrap_or(1).max(1);
        let mut body = String::new();
        for (section, row, tokens) in rows {
            let head = format!("{} · {}", section.id, section.source);
            let condition = self.condition(row);
            body.push_str(&block(class(section.group), &head, &condition, tokens, largest, &section.text));
        }
        for message in &self.sketch.messages {
            let text = spoken(message);
            let tokens = Tokens::estimate(&text);
            body.push_str(&block("message", &t!(locale, "cli.prompt.message"), "", tokens, largest, &text));
        }
        let names: Vec<&str> = self.sketch.tools.iter().map(|spec| spec.name.as_str()).collect();
        let tools = Tokens(self.beside().1);
        body.push_str(&block("tools", &t!(locale, "cli.prompt.tools"), "", tools, largest, &names.join("\n")));
        let missing: Vec<String> =
            self.sketch.system.omitted.iter().map(|one| format!("{}: {}", one.id, self.why(one.why))).collect();
        let head = t!(locale, "cli.prompt.missing");
        body.push_str(&block("missing", &head, "", Tokens(0), largest, &missing.join("\n")));
        let (title, total) = (format!("{anima} · prompt"), self.total());
        fill(PAGE, &[("title", escaped(&title)), ("total", escaped(&total)), ("body", body)])
    }
}

fn block(class: &str, head: &str, condition: &str, tokens: Tokens, largest: u32, text: &str) -> String {
    let percent = u64::from(tokens.0.min(largest)) * 100 / u64::from(largest);
    let (head, condition, text) = (escaped(head), escaped(condition), escaped(text.trim()));
    let bar = format!("<span class=\"bar\" style=\"width:{percent}%\"></span>");
    let summary = format!("<summary><b>{head}</b> <i>{condition}</i> <span>{}</span>{bar}</summary>", tokens.0);
    format!("<details class=\"{class}\" open>{summary}<pre>{text}</pre></details>\n")
}

fn class(group: Group) -> &'static str {
    match group {
        Group::Environment => "environment",
        Group::Yourself => "yourself",
        Group::Situation => "situation",
        Group::Abilities => "abilities",
        Group::Organisation => "organisation",
        Group::Meta => "meta",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
