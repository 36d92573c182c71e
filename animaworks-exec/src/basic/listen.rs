//! Listens to a model while it writes: prose goes on at once, what may be a tool call is held until it is known.

use super::parse::{Call, Read, call_of, looks_like_call, read};

/// A piece that may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Part of the answer.
    Text(String),
    /// Part of its thinking.
    Thinking(String),
}

/// What a message turned out to be.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) enum Heard {
    /// Prose, so far or in the end.
    #[default]
    Prose,
    /// A tool call. The rest of the message does not count: a model that goes on invents the result.
    Call(Call),
    /// Something meant as a call that cannot be read.
    Broken,
}

const FENCE: &str = "```";
const CALL_TAG: &str = "<tool_call>";
const THINK: &str = "<think>";
const THINK_END: &str = "</think>";

/// More than this is never held back.
const MAX_HELD: usize = 64 * 1024;

/// The listener of one message.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    held: String,
    mode: Mode,
    begun: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Mode {
    #[default]
    Free,
    /// In a fenced sample that cannot be a call.
    Sample,
    Thinking,
}

/// What the beginning of the held text is.
enum Kind {
    More,
    /// So many bytes of prose.
    Prose(usize),
    /// So many bytes to drop, such as a tag.
    Drop(usize),
    /// So many bytes of prose that open a sample.
    Sample(usize),
    Call(Call),
    Broken,
}

impl Listener {
    /// Takes the next piece of the model's text.
    pub(crate) fn push(&mut self, text: &str, out: &mut Vec<Piece>) -> Heard {
        self.held.push_str(text);
        self.advance(false, out)
    }

    /// The message is over.
    pub(crate) fn finish(&mut self, out: &mut Vec<Piece>) -> Heard {
        self.advance(true, out)
    }

    fn advance(&mut self, over: bool, out: &mut Vec<Piece>) -> Heard {
        loop {
            match self.mode {
                Mode::Thinking => {
                    let Some(at) = self.held.find(THINK_END) else {
                        let keep = if over { 0 } else { partial(&self.held, &[THINK_END]) };
                        self.let_go(self.held.len() - keep, out);
                        return Heard::Prose;
                    };
                    self.let_go(at, out);
                    self.drop_front(THINK_END.len());
                    self.mode = Mode::Free;
                    self.begun = false;
                }
                Mode::Sample => {
                    let Some(at) = self.held.find(FENCE) else {
                        let keep = if over { 0 } else { partial(&self.held, &[FENCE]) };
                        self.let_go(self.held.len() - keep, out);
                        return Heard::Prose;
                    };
                    self.let_go(at + FENCE.len(), out);
                    self.mode = Mode::Free;
                }
                Mode::Free => {
                    let openers = [FENCE, CALL_TAG, THINK, "{"];
                    let Some(at) = openers.iter().filter_map(|opener| self.held.find(opener)).min() else {
                        let keep = if over { 0 } else { partial(&self.held, &openers) };
                        self.let_go(self.held.len() - keep, out);
                        return Heard::Prose;
                    };
                    self.let_go(at, out);
                    match kind(&self.held, over || self.held.len() > MAX_HELD) {
                        Kind::More => return Heard::Prose,
                        Kind::Prose(bytes) => self.let_go(bytes, out),
                        Kind::Sample(bytes) => {
                            self.let_go(bytes, out);
                            self.mode = Mode::Sample;
                        }
                        Kind::Drop(bytes) => {
                            self.drop_front(bytes);
                            self.mode = Mode::Thinking;
                        }
                        Kind::Call(call) => return Heard::Call(call),
                        Kind::Broken => return Heard::Broken,
                    }
                }
            }
        }
    }

    fn drop_front(&mut self, bytes: usize) {
        self.held.drain(..bytes.min(self.held.len()));
    }

    /// Lets the first `bytes` of the held text go on.
    fn let_go(&mut self, bytes: usize, out: &mut Vec<Piece>) {
        let text: String = self.held.drain(..bytes.min(self.held.len())).collect();
        if self.mode == Mode::Thinking {
            if !text.is_empty() {
                out.push(Piece::Thinking(text));
            }
            return;
        }
        // an answer does not begin with empty lines
        let text = if self.begun { text.as_str() } else { text.trim_start() };
        if !text.is_empty() {
            self.begun = true;
            out.push(Piece::Text(text.to_owned()));
        }
    }
}

/// What a held text is that begins with an opener.
fn kind(held: &str, over: bool) -> Kind {
    if held.starts_with(THINK) {
        return Kind::Drop(THINK.len());
    }
    let (fenced, inside) = match held.strip_prefix(CALL_TAG) {
        Some(_) => (true, CALL_TAG.len()),
        None if held.starts_with(FENCE) => match held.find('\n') {
            Some(line) => (true, line + 1),
            // a fence on one line: ```{"tool": …}```
            None => match held.find('{') {
                Some(brace) => (true, brace),
                None if over => return Kind::Prose(held.len()),
                None => return Kind::More,
            },
        },
        None => (false, 0),
    };
    let body = held.get(inside..).unwrap_or_default();
    let start = inside + (body.len() - body.trim_start().len());
    let body = body.trim_start();
    match body.chars().next() {
        None if over => return Kind::Prose(held.len()),
        None => return Kind::More,
        Some('{' | '[') => {}
        Some(_) if held.starts_with(FENCE) => return Kind::Sample(inside),
        Some(_) => return Kind::Prose(1),
    }
    let first = held.chars().next().map_or(1, char::len_utf8);
    match read(body) {
        Read::Whole(value, end) => match call_of(&value) {
            Some(call) => Kind::Call(call),
            // of a fence everything up to its end is shown as it is
            None if fenced && held.starts_with(FENCE) => Kind::Sample(start + end),
            None => Kind::Prose(start + end),
        },
        Read::Open(value) if over => match call_of(&value) {
            Some(call) => Kind::Call(call),
            None if looks_like_call(body) => Kind::Broken,
            None => Kind::Prose(held.len()),
        },
        Read::Open(_) => Kind::More,
        Read::Not if looks_like_call(body) => Kind::Broken,
        Read::Not if held.starts_with(FENCE) => Kind::Sample(inside),
        Read::Not => Kind::Prose(first),
    }
}

/// How many bytes at the end may be the beginning of an opener.
fn partial(held: &str, openers: &[&str]) -> usize {
    let longest = openers
        .iter()
        .flat_map(|opener| (1..opener.len()).filter(|len| opener.get(..*len).is_some_and(|head| held.ends_with(head))));
    longest.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The text that went on, and what the message was.
    fn hear(pieces: &[&str]) -> (String, Heard) {
        let mut listener = Listener::default();
        let mut out = Vec::new();
        let mut heard = Heard::Prose;
        for piece in pieces {
            heard = listener.push(piece, &mut out);
            if heard != Heard::Prose {
                break;
            }
        }
        if heard == Heard::Prose {
            heard = listener.finish(&mut out);
        }
        let text =
            out.iter().filter_map(|piece| if let Piece::Text(text) = piece { Some(text.as_str()) } else { None });
        (text.collect(), heard)
    }

    fn search(query: &str) -> Heard {
        Heard::Call(Call { tool: "search_memory".into(), args: json!({ "query": query }) })
    }

    /// The vectors of exec spec appendix A7.
    #[test]
    fn finds_the_call_however_it_is_wrapped() {
        for (text, shown, heard) in [
            ("```json\n{\"tool\": \"search_memory\", \"arguments\": {\"query\": \"鍵\"}}\n```", "", search("鍵")),
            ("```\n{\"tool\": \"search_memory\", \"arguments\": {\"query\": \"鍵\"}}\n```", "", search("鍵")),
            ("探します。{\"tool\": \"search_memory\", \"arguments\": {\"query\": \"鍵\"}}", "探します。", search("鍵")),
            (
                "{\"tool\": \"search_memory\", \"arguments\": {\"query\": \"a } b\", \"more\": {\"x\": {}}}} and then",
                "",
                Heard::Call(Call { tool: "search_memory".into(), args: json!({"query": "a } b", "more": {"x": {}}}) }),
            ),
            ("```json\n{\"tool\": \"search_memory\", \"arguments\": {\"query\": \"鍵\",},}\n```", "", search("鍵")),
            ("{'tool': 'search_memory', 'arguments': {'query': '鍵'}}", "", search("鍵")),
            (
                "```json\n{\"tool\": \"t\", \"arguments\": {\"deep\": True}}\n```",
                "",
                Heard::Call(Call { tool: "t".into(), args: json!({"deep": true}) }),
            ),
            (
                "```python\ncall = {\"tool\": \"x\"}\n```\n```json\n{\"tool\": \"search_memory\", \"arguments\": {\"query\": \"鍵\"}}\n```",
                "```python\ncall = {\"tool\": \"x\"}\n```\n",
                search("鍵"),
            ),
            ("鍵は品川駅です。", "鍵は品川駅です。", Heard::Prose),
            (
                "<tool_call>\n{\"name\": \"search_memory\", \"arguments\": {\"query\": \"鍵\"}}\n</tool_call>",
                "",
                search("鍵"),
            ),
            ("```json\n{\"tool\": \"search_memory\", \"arguments\": {\"query\": \"鍵", "", search("鍵")),
            (
                "```json\n{\"a\": 1}\n```\nThat was a sample.",
                "```json\n{\"a\": 1}\n```\nThat was a sample.",
                Heard::Prose,
            ),
            ("fn main() { println!(); }", "fn main() { println!(); }", Heard::Prose),
            ("{\"tool\": \"search_memory\" \"arguments\"}", "", Heard::Broken),
            ("\n\nHello", "Hello", Heard::Prose),
            ("<think>hm {\"tool\": \"x\"}</think>\nHello", "Hello", Heard::Prose),
        ] {
            assert_eq!(hear(&[text]), (shown.to_owned(), heard.clone()), "{text}");
            let chars: Vec<String> = text.chars().map(String::from).collect();
            let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
            assert_eq!(hear(&chars), (shown.to_owned(), heard), "one character at a time: {text}");
        }
    }

    proptest! {
        #[test]
        fn prose_arrives_whole_and_a_cut_changes_nothing(
            text in "[a-z`{}<\"':鍵\n ]{0,80}", cut in 0_usize..80,
        ) {
            let at = text.char_indices().nth(cut).map_or(text.len(), |(at, _)| at);
            let (head, tail) = text.split_at(at);
            let whole = hear(&[&text]);
            prop_assert_eq!(&whole, &hear(&[head, tail]));
            if whole.1 == Heard::Prose && !text.contains("<think>") {
                prop_assert_eq!(whole.0, text.trim_start());
            }
        }
    }
}
