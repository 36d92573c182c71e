//! The words around a conversation, as each family was taught them.
//!
//! A prompt is a list of parts, so that what somebody says can never become a control token.

use super::decoder::Family;
use crate::basic::TextMessage;

/// One part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// A control token by its text.
    Control(&'static str),
    /// Plain text.
    Text(String),
}

/// The prompt of a conversation, up to where the model goes on.
pub(crate) fn render(family: Family, system: &str, messages: &[TextMessage], thinking: bool) -> Vec<Part> {
    let mut parts = Vec::new();
    match family {
        Family::Gemma3 => {
            // gemma knows no system role: the first words of the other side begin with it
            let mut system = Some(system.trim()).filter(|system| !system.is_empty());
            for message in messages {
                let words = message.text.trim();
                let text = match system.take_if(|_| !message.by_model) {
                    Some(system) => format!("{system}\n\n{words}"),
                    None => words.to_owned(),
                };
                gemma_turn(&mut parts, if message.by_model { "model" } else { "user" }, text);
            }
            if let Some(system) = system {
                parts.splice(0..0, {
                    let mut first = Vec::new();
                    gemma_turn(&mut first, "user", system.to_owned());
                    first
                });
            }
            parts.push(Part::Control("<start_of_turn>"));
            parts.push(Part::Text("model\n".to_owned()));
        }
        Family::Qwen3 => {
            if !system.trim().is_empty() {
                qwen_turn(&mut parts, "system", system.trim());
            }
            for message in messages {
                if message.by_model {
                    qwen_turn(&mut parts, "assistant", without_thinking(&message.text));
                } else {
                    qwen_turn(&mut parts, "user", message.text.trim());
                }
            }
            parts.push(Part::Control("<|im_start|>"));
            parts.push(Part::Text("assistant\n".to_owned()));
            if !thinking {
                // an empty thought, so that it begins with the answer
                parts.push(Part::Control("<think>"));
                parts.push(Part::Text("\n\n".to_owned()));
                parts.push(Part::Control("</think>"));
                parts.push(Part::Text("\n\n".to_owned()));
            }
        }
    }
    merged(parts)
}

fn gemma_turn(parts: &mut Vec<Part>, role: &str, text: String) {
    parts.push(Part::Control("<start_of_turn>"));
    parts.push(Part::Text(format!("{role}\n{text}")));
    parts.push(Part::Control("<end_of_turn>"));
    parts.push(Part::Text("\n".to_owned()));
}

fn qwen_turn(parts: &mut Vec<Part>, role: &str, text: &str) {
    parts.push(Part::Control("<|im_start|>"));
    parts.push(Part::Text(format!("{role}\n{text}")));
    parts.push(Part::Control("<|im_end|>"));
    parts.push(Part::Text("\n".to_owned()));
}

/// What was said, without the thought before it: earlier thoughts are not shown again.
fn without_thinking(text: &str) -> &str {
    text.rsplit_once("</think>").map_or(text, |(_, said)| said).trim()
}

/// Neighbouring texts become one, as the tokenizer would see them.
fn merged(parts: Vec<Part>) -> Vec<Part> {
    let mut out: Vec<Part> = Vec::new();
    for part in parts {
        match (out.last_mut(), part) {
            (Some(Part::Text(open)), Part::Text(text)) => open.push_str(&text),
            (_, part) => out.push(part),
        }
    }
    out
}

/// The tokens that end an answer, by their text.
pub(crate) fn ends(family: Family) -> &'static [&'static str] {
    match family {
        Family::Gemma3 => &["<end_of_turn>", "<eos>", "<start_of_turn>"],
        Family::Qwen3 => &["<|im_end|>", "<|endoftext|>", "<|im_start|>"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation() -> Vec<TextMessage> {
        let said = |by_model, text: &str| TextMessage { by_model, text: text.to_owned() };
        vec![
            said(false, "Where is the key? <end_of_turn>"),
            said(true, "<think>\nHm.\n</think>\n\nAt the station."),
            said(false, "Which one?\n"),
        ]
    }

    /// The prompt as one text, control tokens in double brackets.
    fn golden(family: Family, system: &str, thinking: bool) -> String {
        let parts = render(family, system, &conversation(), thinking);
        parts
            .iter()
            .map(|part| match part {
                Part::Control(token) => format!("[[{token}]]"),
                Part::Text(text) => text.clone(),
            })
            .collect()
    }

    #[test]
    fn gemma3() {
        assert_eq!(
            golden(Family::Gemma3, "You are sakura.", false),
            "[[<start_of_turn>]]user\nYou are sakura.\n\nWhere is the key? <end_of_turn>[[<end_of_turn>]]\n\
             [[<start_of_turn>]]model\n<think>\nHm.\n</think>\n\nAt the station.[[<end_of_turn>]]\n\
             [[<start_of_turn>]]user\nWhich one?[[<end_of_turn>]]\n\
             [[<start_of_turn>]]model\n"
        );
    }

    #[test]
    fn qwen3() {
        assert_eq!(
            golden(Family::Qwen3, "You are sakura.", false),
            "[[<|im_start|>]]system\nYou are sakura.[[<|im_end|>]]\n\
             [[<|im_start|>]]user\nWhere is the key? <end_of_turn>[[<|im_end|>]]\n\
             [[<|im_start|>]]assistant\nAt the station.[[<|im_end|>]]\n\
             [[<|im_start|>]]user\nWhich one?[[<|im_end|>]]\n\
             [[<|im_start|>]]assistant\n[[<think>]]\n\n[[</think>]]\n\n"
        );
        assert!(golden(Family::Qwen3, "", true).starts_with("[[<|im_start|>]]user\n"));
        assert!(golden(Family::Qwen3, "", true).ends_with("[[<|im_start|>]]assistant\n"));
    }
}
