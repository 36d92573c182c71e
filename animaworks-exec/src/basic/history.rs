//! A conversation as text, for models that read one message at a time (exec spec §1.15).

use animaworks_core::{Locale, PromptMessage, t};

/// How much of the earlier conversation is shown, in characters.
const MAX_CHARS: usize = 2000;

/// The last message, with the end of what was said before it above it.
pub(crate) fn render(locale: Locale, messages: &[PromptMessage]) -> String {
    let last = messages.iter().rposition(|message| matches!(message, PromptMessage::User { .. }));
    let (before, rest) = messages.split_at(last.unwrap_or(messages.len()));
    let now = rest.iter().filter_map(words).collect::<Vec<_>>().join("\n\n");
    let lines: Vec<String> = before
        .iter()
        .filter_map(|message| {
            let text = words(message)?;
            Some(match message {
                PromptMessage::Assistant { .. } => t!(locale, "exec.basic.you_said", text = text),
                _ => t!(locale, "exec.basic.they_said", text = text),
            })
        })
        .collect();
    if lines.is_empty() {
        return now;
    }
    let history = tail(&lines.join("\n"));
    t!(locale, "exec.basic.with_history", history = history, message = now)
}

/// What was said with a message; what tools answered earlier is not shown again.
fn words(message: &PromptMessage) -> Option<&str> {
    match message {
        PromptMessage::User { text, .. } | PromptMessage::Assistant { text, .. } => {
            Some(text.trim()).filter(|text| !text.is_empty())
        }
        PromptMessage::ToolResult { .. } => None,
    }
}

/// The last [`MAX_CHARS`] characters, from the beginning of a line where that costs little.
fn tail(text: &str) -> String {
    let count = text.chars().count();
    if count <= MAX_CHARS {
        return text.to_owned();
    }
    let kept = text.char_indices().nth(count - MAX_CHARS).and_then(|(at, _)| text.get(at..)).unwrap_or(text);
    match kept.split_once('\n') {
        Some((cut, whole)) if cut.chars().count() < MAX_CHARS / 4 => format!("…\n{whole}"),
        _ => format!("…{kept}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> PromptMessage {
        PromptMessage::User { text: text.to_owned(), images: Vec::new() }
    }

    fn anima(text: &str) -> PromptMessage {
        PromptMessage::Assistant { text: text.to_owned(), calls: Vec::new() }
    }

    #[test]
    fn shows_what_was_said_before() {
        assert_eq!(render(Locale::En, &[user("hello")]), "hello");
        let said = render(Locale::En, &[user("hello"), anima("hi"), user("where is it?")]);
        assert!(said.contains("hello") && said.contains("hi") && said.ends_with("where is it?"), "{said}");
    }

    #[test]
    fn a_long_past_keeps_its_end() {
        let past: Vec<PromptMessage> =
            (0..200).map(|n| user(&format!("言葉その{n}です。"))).chain([user("今")]).collect();
        let said = render(Locale::Ja, &past);
        assert!(said.chars().count() < MAX_CHARS + 100);
        assert!(said.contains("その199") && !said.contains("その1で"), "{said}");
    }
}
