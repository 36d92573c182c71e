//! Bytes of a provider in, meaning out.
//!
//! A [`WireReader`] takes a response body in pieces of any size and gives
//! [`WireEvent`]s; it knows when an answer is complete, and says so when it never is.

pub mod anthropic;
pub mod openai;
pub mod request;
pub mod sse;

use animaworks_core::units::Usage;
use serde::Serialize;
use serde_json::Value;

use self::{
    anthropic::AnthropicDecoder,
    openai::OpenAiDecoder,
    sse::{SseDecoder, SseError, SseEvent},
};

/// A language that providers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Chat completions, as most providers have them.
    OpenAi,
    /// Anthropic Messages.
    Anthropic,
}

/// What an answer says, piece by piece.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WireEvent {
    /// A piece of text.
    Text(String),
    /// A piece of thinking.
    Thinking(String),
    /// A tool call, whole.
    Call(WireCall),
    /// What the provider wants back unchanged with this message, such as signed thinking.
    Opaque(Value),
    /// What was consumed.
    Usage(Usage),
    /// The end; nothing comes after it.
    End(Finish),
}

/// A tool call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WireCall {
    /// The provider's number for it, possibly empty.
    pub id: String,
    /// The name, as written.
    pub name: String,
    /// The arguments, as written; supposed to be a JSON object.
    pub arguments: String,
    /// What the provider wants back with the call, such as a signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was finished.
    Stop,
    /// It wants its tools run.
    Tools,
    /// It hit the output limit.
    Length,
    /// The provider's filter stepped in.
    Filtered,
}

/// Why an answer could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireFault {
    /// It stopped before its end.
    #[error("the answer stopped before its end")]
    Truncated,
    /// It is not what the dialect allows.
    #[error("{0}")]
    Malformed(String),
    /// The provider reports an error inside a stream that began well.
    #[error("{kind}: {message}")]
    Provider {
        /// The provider's word for it.
        kind: String,
        /// Its message.
        message: String,
    },
}

impl From<SseError> for WireFault {
    fn from(error: SseError) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// Reads one answer, streamed or whole.
#[derive(Debug)]
pub struct WireReader {
    decoder: Decoder,
    form: Form,
    ended: bool,
}

/// How the answer arrives: told by its bytes, not by its content type, which proxies drop.
#[derive(Debug)]
enum Form {
    Unknown(Vec<u8>),
    Stream(SseDecoder),
    Whole(Vec<u8>),
}

#[derive(Debug)]
enum Decoder {
    OpenAi(OpenAiDecoder),
    Anthropic(AnthropicDecoder),
}

impl Decoder {
    fn event(&mut self, event: &SseEvent, out: &mut Vec<WireEvent>) -> Result<(), WireFault> {
        match self {
            Self::OpenAi(decoder) => decoder.event(event, out),
            Self::Anthropic(decoder) => decoder.event(event, out),
        }
    }

    fn whole(&mut self, body: &[u8], out: &mut Vec<WireEvent>) -> Result<(), WireFault> {
        let value: Value = parse(body)?;
        match self {
            Self::OpenAi(decoder) => decoder.whole(&value, out),
            Self::Anthropic(decoder) => decoder.whole(&value, out),
        }
    }

    fn closed(&mut self, out: &mut Vec<WireEvent>) {
        match self {
            Self::OpenAi(decoder) => decoder.closed(out),
            Self::Anthropic(_) => {}
        }
    }
}

impl WireReader {
    /// A reader at the beginning of an answer.
    pub fn new(dialect: Dialect) -> Self {
        let decoder = match dialect {
            Dialect::OpenAi => Decoder::OpenAi(OpenAiDecoder::default()),
            Dialect::Anthropic => Decoder::Anthropic(AnthropicDecoder::default()),
        };
        Self { decoder, form: Form::Unknown(Vec::new()), ended: false }
    }

    /// Whether the end was seen; what follows is not read.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Whether the answer is whole, though a closing word (usage, `[DONE]`) may still come.
    pub fn is_complete(&self) -> bool {
        self.ended || matches!(&self.decoder, Decoder::OpenAi(decoder) if decoder.is_complete())
    }

    /// Takes the next bytes, cut anywhere.
    ///
    /// # Errors
    ///
    /// [`WireFault`]; the answer is then lost.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<WireEvent>) -> Result<(), WireFault> {
        if self.ended {
            return Ok(());
        }
        match &mut self.form {
            Form::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            Form::Stream(decoder) => {
                let events = decoder.push(bytes)?;
                self.take(events, out)
            }
            Form::Unknown(held) => {
                held.extend_from_slice(bytes);
                let Some(first) = first_letter(held) else { return Ok(()) };
                let held = std::mem::take(held);
                if first == b'{' {
                    self.form = Form::Whole(held);
                    return Ok(());
                }
                let mut decoder = SseDecoder::default();
                let events = decoder.push(&held)?;
                self.form = Form::Stream(decoder);
                self.take(events, out)
            }
        }
    }

    /// The body is over.
    ///
    /// # Errors
    ///
    /// [`WireFault::Truncated`] when the end of the answer was not among it.
    pub fn close(&mut self, out: &mut Vec<WireEvent>) -> Result<(), WireFault> {
        if self.ended {
            return Ok(());
        }
        let before = out.len();
        match &self.form {
            Form::Whole(body) => {
                // an object that stops in the middle is a broken connection, not a broken provider
                if serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err_and(|error| error.is_eof()) {
                    return Err(WireFault::Truncated);
                }
                self.decoder.whole(body, out)?;
            }
            Form::Stream(_) | Form::Unknown(_) => self.decoder.closed(out),
        }
        self.ended = out.iter().skip(before).any(|event| matches!(event, WireEvent::End(_)));
        if self.ended { Ok(()) } else { Err(WireFault::Truncated) }
    }

    fn take(&mut self, events: Vec<SseEvent>, out: &mut Vec<WireEvent>) -> Result<(), WireFault> {
        for event in events {
            let before = out.len();
            self.decoder.event(&event, out)?;
            if out.iter().skip(before).any(|event| matches!(event, WireEvent::End(_))) {
                self.ended = true;
                break;
            }
        }
        Ok(())
    }
}

/// The first byte that is neither a byte order mark nor white space, once there is one.
fn first_letter(bytes: &[u8]) -> Option<u8> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0xEF | 0xBB | 0xBF))
}

/// Parses JSON from a provider; an error shows the beginning of what was there.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, WireFault> {
    let parsed = serde_json::from_slice(bytes);
    // half an emoji, escaped: no reason to lose the answer
    let parsed = match parsed {
        Err(_) if bytes.windows(2).any(|pair| pair == b"\\u") => {
            serde_json::from_slice(&without_lone_surrogates(bytes))
        }
        parsed => parsed,
    };
    parsed.map_err(|error| {
        let shown: String = String::from_utf8_lossy(bytes).chars().take(200).collect();
        WireFault::Malformed(format!("{error}: {shown}"))
    })
}

/// JSON in which every escaped half of a surrogate pair that stands alone became U+FFFD.
fn without_lone_surrogates(bytes: &[u8]) -> Vec<u8> {
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let step = match (unit(at), unit(at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => 0,
            (Some(_), _) => 6,
            (None, _) if *byte == b'\\' => 2,
            (None, _) => 1,
        };
        if step == 0 {
            out.extend_from_slice(b"\\ufffd");
            at += 6;
        } else {
            out.extend_from_slice(bytes.get(at..(at + step).min(bytes.len())).unwrap_or_default());
            at += step;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_emoji_becomes_a_replacement_character() {
        for (json, text) in [
            (r#"{"t":"\ud83c"}"#, "\u{fffd}"),
            (r#"{"t":"\udfa3x"}"#, "\u{fffd}x"),
            (r#"{"t":"\ud83c\udfa3 \ud83c"}"#, "🎣 \u{fffd}"),
            (r#"{"t":"\\ud83c \ud83c"}"#, "\\ud83c \u{fffd}"),
        ] {
            let value: Value = parse(json.as_bytes()).unwrap();
            assert_eq!(value.get("t").and_then(Value::as_str), Some(text), "{json}");
        }
    }

    #[test]
    fn a_stream_is_known_by_its_bytes() {
        let mut out = Vec::new();
        let mut reader = WireReader::new(Dialect::OpenAi);
        for byte in b"\r\n {\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}" {
            reader.push(&[*byte], &mut out).unwrap();
        }
        reader.close(&mut out).unwrap();
        assert_eq!(out, [WireEvent::Text("a".to_owned()), WireEvent::End(Finish::Stop)]);
    }
}
