//! What a provider's refusal means.

use std::time::Duration;

use animaworks_core::{ExecError, clock::Clock, config::Secret};
use chrono::DateTime;
use http::{HeaderMap, StatusCode, header};
use serde_json::Value;

use super::Endpoint;
use crate::wire::{WireFault, openai::provider_fault};

/// The longest part of a provider's own words that an error repeats, in characters.
const MAX_DETAIL_CHARS: usize = 300;

/// Texts by which providers say that the prompt is too long.
const OVERFLOW: &[&str] = &[
    "context length",
    "context_length",
    "context window",
    "maximum context",
    "prompt is too long",
    "prompt too long",
    "too many tokens",
    "input is too long",
    "input token count",
    "exceeds the maximum number of tokens",
    "exceed context limit",
    "exceeds the available context size",
    "reduce the length of the messages",
];

/// Texts by which providers say that the account is empty.
const QUOTA: &[&str] = &[
    "insufficient_quota",
    "insufficient balance",
    "insufficient credit",
    "exceeded your current quota",
    "credit balance is too low",
    "billing",
    "quota exceeded",
    "payment required",
];

/// An answer with an error status, as an error. `body` is what came with it.
pub fn classify(
    endpoint: &Endpoint,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    clock: &dyn Clock,
) -> ExecError {
    let said = match serde_json::from_slice::<Value>(body) {
        // some providers wrap the object in a list
        Ok(Value::Array(items)) => said(items.first().unwrap_or(&Value::Null)),
        Ok(value) => said(&value),
        Err(_) => (String::new(), String::from_utf8_lossy(body).into_owned()),
    };
    decide(endpoint, status.as_u16(), &said.0, &said.1, retry_after(headers, clock))
}

/// An error inside a stream, as an error.
pub(crate) fn from_wire(endpoint: &Endpoint, fault: WireFault) -> ExecError {
    let engine = endpoint.provider.name.to_owned();
    match fault {
        WireFault::Truncated => ExecError::Interrupted { engine, detail: fault.to_string() },
        WireFault::Malformed(detail) => ExecError::Malformed { engine, detail: shorten(&endpoint.redact(&detail)) },
        WireFault::Provider { kind, message } => {
            let status = match kind.as_str() {
                "overloaded_error" | "overloaded" | "529" => 529,
                "rate_limit_error" | "rate_limit_exceeded" | "429" => 429,
                "authentication_error" | "permission_error" | "invalid_api_key" | "401" | "403" => 401,
                "invalid_request_error" | "400" => 400,
                "not_found_error" | "404" => 404,
                "request_too_large" | "413" => 413,
                "insufficient_quota" | "billing_error" | "402" => 402,
                _ => 500,
            };
            decide(endpoint, status, &kind, &message, None)
        }
    }
}

fn said(body: &Value) -> (String, String) {
    let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
    match provider_fault(error) {
        WireFault::Provider { kind, message } => (kind, message),
        other => (String::new(), other.to_string()),
    }
}

fn decide(endpoint: &Endpoint, status: u16, kind: &str, message: &str, retry_after: Option<Duration>) -> ExecError {
    let engine = endpoint.provider.name.to_owned();
    let detail = shorten(&endpoint.redact(message));
    let words = format!("{kind} {message}").to_lowercase();
    let says = |list: &[&str]| list.iter().any(|text| words.contains(text));
    match status {
        400 | 413 | 422 | 500 if says(OVERFLOW) => ExecError::ContextOverflow { engine, detail },
        413 => ExecError::ContextOverflow { engine, detail },
        402 => ExecError::Quota { engine, detail },
        400 | 403 | 429 if says(QUOTA) => ExecError::Quota { engine, detail },
        401 | 403 => ExecError::Auth { engine, detail },
        404 if says(&["model", "deployment"]) => ExecError::UnknownModel { engine, model: endpoint.model.clone() },
        408 | 409 | 425 | 429 | 503 | 529 => ExecError::Busy { engine, detail, retry_after },
        400 if says(&["model_not_found", "unknown model", "invalid model", "does not exist"]) => {
            ExecError::UnknownModel { engine, model: endpoint.model.clone() }
        }
        _ => ExecError::Rejected { engine, status, detail },
    }
}

/// `Retry-After`, in seconds or as a date.
fn retry_after(headers: &HeaderMap, clock: &dyn Clock) -> Option<Duration> {
    if let Some(millis) = headers.get("retry-after-ms").and_then(|value| value.to_str().ok()?.trim().parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = DateTime::parse_from_rfc2822(text).ok()?;
    Some((at.to_utc() - clock.now()).to_std().unwrap_or_default())
}

/// A text without a key. Some providers repeat it in their errors, whole or with its middle masked.
pub fn redact(text: &str, key: &Secret) -> String {
    let mut clean = if key.is_empty() { text.to_owned() } else { text.replace(key.expose(), "***") };
    for mark in ["sk-", "Bearer "] {
        clean = mask_after(&clean, mark);
    }
    clean
}

/// Masks what follows `mark` up to the end of the word.
fn mask_after(text: &str, mark: &str) -> String {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let word = part.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*' | '.')).count();
        out.push_str(mark);
        if word >= 8 {
            out.push_str("***");
            out.extend(part.chars().skip(word));
        } else {
            out.push_str(part);
        }
    }
    out
}

fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_DETAIL_CHARS {
        return line;
    }
    line.chars().take(MAX_DETAIL_CHARS).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use animaworks_core::{Fault, error::ErrorKind, test_support::ManualClock};

    use super::*;
    use crate::provider::tests::credential;

    const KEY: &str = "sk-planted-0123456789abcdef";

    fn endpoint() -> Endpoint {
        Endpoint::open("openai/gpt-4.1", &credential(KEY, None)).unwrap()
    }

    fn judge(status: u16, headers: &HeaderMap, body: &str) -> ExecError {
        let clock = ManualClock::at("2026-04-01T09:00:00Z");
        classify(&endpoint(), StatusCode::from_u16(status).unwrap(), headers, body.as_bytes(), &clock)
    }

    #[test]
    fn every_refusal_has_its_kind() {
        for (status, body, kind) in [
            (401, r#"{"error":{"message":"bad key"}}"#, ErrorKind::Auth),
            (403, r#"{"error":{"message":"not for you"}}"#, ErrorKind::Auth),
            (402, "", ErrorKind::Quota),
            (429, r#"{"error":{"code":"insufficient_quota","message":"x"}}"#, ErrorKind::Quota),
            (429, r#"{"error":{"message":"slow down"}}"#, ErrorKind::RateLimited),
            (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#, ErrorKind::RateLimited),
            (503, "<html>busy</html>", ErrorKind::RateLimited),
            (500, "{}", ErrorKind::InvalidRequest),
            (404, r#"{"error":{"message":"The model `x` does not exist"}}"#, ErrorKind::NotFound),
            (404, "nothing here", ErrorKind::InvalidRequest),
            (413, "", ErrorKind::ContextOverflow),
            (400, r#"{"error":{"message":"prompt is too long: 9 > 8"}}"#, ErrorKind::ContextOverflow),
            (400, r#"[{"error":{"code":400,"message":"The input token count exceeds"}}]"#, ErrorKind::ContextOverflow),
            (400, r#"{"error":{"message":"tool schema"}}"#, ErrorKind::InvalidRequest),
            (400, r#"{"error":{"message":"Your credit balance is too low"}}"#, ErrorKind::Quota),
        ] {
            let error = judge(status, &HeaderMap::new(), body);
            assert_eq!(error.kind(), kind, "{status} {body}: {error}");
        }
    }

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date() {
        for (text, seconds) in [("7", 7), ("Wed, 01 Apr 2026 09:00:30 GMT", 30), ("Wed, 01 Apr 2026 08:00:00 GMT", 0)] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, text.parse().unwrap());
            let error = judge(429, &headers, "{}");
            let expected = animaworks_core::Retry::After(Duration::from_secs(seconds));
            assert_eq!(error.retry(), expected, "{text}");
        }
    }

    #[test]
    fn a_key_in_an_error_is_masked() {
        let body =
            format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}. Also sk-other9876543210."}}}}"#);
        let error = judge(401, &HeaderMap::new(), &body);
        let shown = format!("{error} {error:?} {:?}", endpoint());
        assert!(!shown.contains("planted") && !shown.contains("9876543210"), "{shown}");
    }
}
