//! What sort of message it is, for how much should come to mind (memory spec §18.3).

use animaworks_core::{Cue, message::Intent, trigger::TriggerKind};

use crate::{
    retrieve::names,
    text::normalize::{Script, fold},
};

/// What sort of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageClass {
    /// Somebody says hello.
    Greeting,
    /// Somebody wants to know something.
    Question,
    /// Somebody wants something done.
    Request,
    /// Nobody said anything; it looks around.
    Heartbeat,
}

const GREETINGS: &[&str] =
    &["こんにちは", "おはよう", "こんばんは", "よろしく", "hello", "hi", "hey", "good morning", "good evening"];
const QUESTIONS: &[&str] =
    &["?", "教えて", "どう", "なぜ", "いつ", "どこ", "誰", "what", "why", "when", "where", "who", "how", "can you"];
/// A greeting is shorter than this, in characters.
const GREETING_CHARS: usize = 50;
/// A longer message without a question is a request.
const REQUEST_CHARS: usize = 100;
/// What is left of a greeting without the greeting, at most, in characters.
const GREETING_REST: usize = 12;

/// What sort of message a turn is about. Latin words count as words, never as parts of others.
pub fn classify(cue: &Cue) -> MessageClass {
    if cue.trigger == TriggerKind::Heartbeat {
        return MessageClass::Heartbeat;
    }
    match cue.intent {
        Some(Intent::Delegation) => return MessageClass::Request,
        Some(Intent::Report | Intent::Question) => return MessageClass::Question,
        None => {}
    }
    let text = fold(&cue.message);
    let asks = QUESTIONS.iter().any(|word| says(&text, word));
    if !asks && text.chars().count() < GREETING_CHARS && is_greeting(&text) {
        return MessageClass::Greeting;
    }
    if !asks && text.chars().count() > REQUEST_CHARS { MessageClass::Request } else { MessageClass::Question }
}

/// Whether a greeting is all there is, near enough: "please fix it, よろしく" asks for something.
fn is_greeting(text: &str) -> bool {
    GREETINGS.iter().filter(|word| says(text, word)).any(|word| {
        let rest = text.replacen(word, "", 1);
        rest.chars().filter(|c| c.is_alphanumeric()).count() <= GREETING_REST
    })
}

fn says(text: &str, word: &str) -> bool {
    let latin = word.chars().next().is_some_and(|c| Script::of(c) == Script::Word);
    if latin { names(text, word) } else { text.contains(word) }
}
