//! A request to a model, before it is put into a dialect.

use std::sync::Arc;

use animaworks_core::{message::Image, tool::ToolSpec};
use serde_json::{Map, Value};

use super::WireCall;

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct WireRequest<'a> {
    /// The model, without the provider's prefix.
    pub model: &'a str,
    /// The system prompt.
    pub system: &'a str,
    /// The conversation; [`crate::autonomous::history`] has made it lawful.
    pub messages: &'a [WireMessage],
    /// The tools.
    pub tools: &'a [Arc<ToolSpec>],
    /// Whether they may be called now. Definitions stay in the request either way, because
    /// providers refuse a history of calls without them.
    pub may_call: bool,
    /// The longest answer.
    pub max_output: u32,
    /// How hard to think.
    pub thinking: Option<&'a str>,
    /// Whether to stream.
    pub stream: bool,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum WireMessage {
    /// The other side.
    User {
        /// What is said.
        text: String,
        /// Pictures.
        images: Vec<Image>,
    },
    /// The model.
    Assistant {
        /// What it said.
        text: String,
        /// What it called.
        calls: Vec<WireCall>,
        /// What the provider wants back unchanged.
        opaque: Vec<Value>,
    },
    /// A tool's answer.
    Tool {
        /// The call.
        id: String,
        /// The answer, fenced.
        text: String,
        /// Whether it failed.
        is_error: bool,
    },
}

/// The arguments of a call as an object, which every provider insists on when it reads them back.
pub(crate) fn object(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ => Value::Object(Map::new()),
    }
}

/// An id made of ASCII letters and digits only, exactly `length` long, when it is not lawful as it stands.
/// The same id always becomes the same one.
pub(crate) fn lawful_id(id: &str, length: Option<usize>) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || (length.is_none() && matches!(byte, b'_' | b'-'));
    if !id.is_empty() && id.bytes().all(plain) && length.is_none_or(|length| id.len() == length) {
        return id.to_owned();
    }
    // FNV-1a: spread well enough for a few hundred ids in one request
    let mut hash = id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut text = String::new();
    for _ in 0..length.unwrap_or(12) {
        text.push(char::from_digit((hash % 36) as u32, 36).unwrap_or('0'));
        hash /= 36;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_mapped_the_same_way_every_time() {
        let strange = "functions.read:0/あ";
        assert_eq!(lawful_id("call_1", None), "call_1");
        assert_eq!(lawful_id("Ab3dEf7hI", Some(9)), "Ab3dEf7hI");
        let mapped = lawful_id(strange, Some(9));
        assert_eq!((mapped.len(), &mapped), (9, &lawful_id(strange, Some(9))));
        assert!(mapped.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_ne!(mapped, lawful_id("functions.read:1/あ", Some(9)));
    }
}
