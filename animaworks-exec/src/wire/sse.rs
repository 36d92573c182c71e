//! Server-sent events, byte by byte.
//!
//! Bytes are cut into lines before anything is decoded, so a character that is
//! split between two packets stays whole. CRLF, LF and a lone CR end a line; a
//! byte order mark, comments, `id:` and `retry:` are skipped; several `data:`
//! lines are joined by a newline.

/// The longest event, in bytes; a provider that sends more is broken.
pub const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// Its `event:` name, empty when it has none.
    pub name: String,
    /// Its `data:` lines.
    pub data: String,
}

/// Why a stream of events could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event is too long.
    #[error("an event of more than {MAX_EVENT_BYTES} bytes")]
    TooLong,
    /// A line is not UTF-8.
    #[error("an event that is not UTF-8")]
    NotUtf8,
}

/// Takes bytes, gives events. An event without its closing blank line is never given.
#[derive(Debug, Default)]
pub struct SseDecoder {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    after_cr: bool,
    begun: bool,
}

impl SseDecoder {
    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// [`SseError`]; the stream cannot be read further.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(rest);
                break;
            };
            let (line, behind) = rest.split_at(end);
            self.line.extend_from_slice(line);
            self.after_cr = behind.first() == Some(&b'\r');
            rest = behind.get(1..).unwrap_or_default();
            let line = std::mem::take(&mut self.line);
            self.line_done(&line, &mut events)?;
        }
        if self.line.len() + self.event.data.len() > MAX_EVENT_BYTES {
            return Err(SseError::TooLong);
        }
        Ok(events)
    }

    fn line_done(&mut self, line: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let line = if std::mem::replace(&mut self.begun, true) {
            line
        } else {
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        };
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                events.push(event);
            }
            return Ok(());
        }
        let line = std::str::from_utf8(line).map_err(|_invalid| SseError::NotUtf8)?;
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                if self.event.data.len() > MAX_EVENT_BYTES {
                    return Err(SseError::TooLong);
                }
            }
            "event" => value.clone_into(&mut self.event.name),
            // `id`, `retry`, comments (an empty field name) and whatever comes one day
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = SseDecoder::default();
        pieces.iter().flat_map(|piece| decoder.push(piece).unwrap()).map(|event| event.data).collect()
    }

    #[test]
    fn every_encoding_of_the_grammar_reads_the_same() {
        let expected = vec!["{\"t\":\n\"釣り🎣大会\"}".to_owned(), "[DONE]".to_owned()];
        for text in [
            "data: {\"t\":\ndata: \"釣り🎣大会\"}\n\ndata: [DONE]\n\n",
            "data: {\"t\":\r\ndata: \"釣り🎣大会\"}\r\n\r\ndata: [DONE]\r\n\r\n",
            "data: {\"t\":\rdata: \"釣り🎣大会\"}\r\rdata: [DONE]\r\r",
            "data:{\"t\":\ndata:\"釣り🎣大会\"}\n\ndata:[DONE]\n\n",
            ": ping\n\n:\ndata: {\"t\":\n: between\ndata: \"釣り🎣大会\"}\n\n: ping\ndata: [DONE]\n\n",
            "\u{feff}data: {\"t\":\ndata: \"釣り🎣大会\"}\n\ndata: [DONE]\n\n",
            "event: x\nid: 7\nretry: 10\ndata: {\"t\":\ndata: \"釣り🎣大会\"}\n\nid: 8\ndata: [DONE]\n\n",
        ] {
            let bytes = text.as_bytes();
            assert_eq!(decode(&[bytes]), expected, "{text:?}");
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(decode(&single), expected, "bytewise {text:?}");
            for at in 0..bytes.len() {
                let (head, tail) = bytes.split_at(at);
                assert_eq!(decode(&[head, tail]), expected, "cut at {at}: {text:?}");
            }
        }
    }

    #[test]
    fn an_event_without_its_blank_line_is_not_given() {
        assert_eq!(decode(&[b"data: a\n\ndata: b\n"]), vec!["a"]);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut decoder = SseDecoder::default();
        let piece = vec![b'x'; MAX_EVENT_BYTES / 2 + 1];
        assert_eq!(decoder.push(&piece), Ok(Vec::new()));
        assert_eq!(decoder.push(&piece), Err(SseError::TooLong));
    }

    proptest! {
        #[test]
        fn never_panics_and_cuts_do_not_matter(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
        ) {
            let whole = SseDecoder::default().push(&bytes);
            let (head, tail) = bytes.split_at(at.index(bytes.len() + 1));
            let mut decoder = SseDecoder::default();
            let cut = decoder.push(head).and_then(|mut events| {
                events.extend(decoder.push(tail)?);
                Ok(events)
            });
            prop_assert_eq!(whole, cut);
        }
    }
}
