//! Thoughts that a model writes into its answer between `<think>` and `</think>`.
//!
//! A tag counts where a model would set one: at the beginning, at the start of a
//! line, or once the answer has had a block. In code and in JSON it is text.

const OPEN: [&str; 2] = ["<think>", "<thinking>"];
const CLOSE: [&str; 2] = ["</think>", "</thinking>"];

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// For everybody.
    Text(String),
    /// For nobody but the curious.
    Thought(String),
}

/// Takes an answer in pieces and tells thoughts from text.
#[derive(Debug, Default)]
pub(super) struct ThinkFilter {
    /// Not yet decided: may be the beginning of a tag.
    tail: String,
    /// Held until it is known whether it is thought.
    held: Option<String>,
    inside: bool,
    had_block: bool,
    orphan: bool,
    code: Code,
    /// The first visible character, which tells JSON.
    first: Option<char>,
    last: Option<char>,
}

impl ThinkFilter {
    /// A filter at the beginning of an answer. A `patient` one holds everything back until it knows
    /// that no closing tag comes whose opening one was lost.
    pub(super) fn new(patient: bool) -> Self {
        Self { held: patient.then(String::new), ..Self::default() }
    }

    /// Whether a closing tag came without its opening one, after text was already given.
    pub(super) fn saw_orphan(&self) -> bool {
        self.orphan
    }

    /// Takes the next piece.
    pub(super) fn push(&mut self, text: &str) -> Vec<Piece> {
        let mut out = Vec::new();
        let mut rest = std::mem::take(&mut self.tail);
        rest.push_str(text);
        while let Some(at) = rest.find('<') {
            let from = rest.split_off(at);
            self.give(&rest, &mut out);
            rest = match tag(&from) {
                Tag::Maybe => {
                    self.tail = from;
                    return out;
                }
                Tag::None => {
                    self.give("<", &mut out);
                    from.chars().skip(1).collect()
                }
                Tag::Mark { length, closes } => {
                    let (mark, behind) = from.split_at(length);
                    self.mark(mark, closes, &mut out);
                    behind.to_owned()
                }
            };
        }
        self.give(&rest, &mut out);
        out
    }

    /// The answer is over.
    pub(super) fn finish(&mut self) -> Vec<Piece> {
        let mut out = Vec::new();
        let tail = std::mem::take(&mut self.tail);
        self.give(&tail, &mut out);
        if let Some(held) = self.held.take() {
            push(&mut out, Piece::Text(held));
        }
        out
    }

    fn mark(&mut self, mark: &str, closes: bool, out: &mut Vec<Piece>) {
        if self.inside {
            if closes {
                self.inside = false;
                self.had_block = true;
            } else {
                push(out, Piece::Thought(mark.to_owned()));
            }
            return;
        }
        let literal = self.code.open() || matches!(self.first, Some('{' | '['));
        let placed = self.first.is_none() || self.had_block || self.last == Some('\n');
        if literal || (!closes && !placed) {
            self.give(mark, out);
        } else if !closes {
            self.inside = true;
            if let Some(held) = self.held.take() {
                push(out, Piece::Text(held));
            }
        } else if let Some(thought) = self.held.take() {
            push(out, Piece::Thought(thought));
            (self.had_block, self.first, self.last, self.code) = (true, None, None, Code::default());
        } else if !self.had_block {
            self.orphan = true;
            self.had_block = true;
        }
    }

    fn give(&mut self, text: &str, out: &mut Vec<Piece>) {
        if self.inside {
            push(out, Piece::Thought(text.to_owned()));
            return;
        }
        // white space between the thoughts and the answer belongs to neither
        let text = if self.first.is_none() && self.had_block { text.trim_start() } else { text };
        for c in text.chars() {
            self.code.take(c);
            if !c.is_whitespace() {
                self.first = self.first.or(Some(c));
            }
            self.last = Some(c);
        }
        match &mut self.held {
            Some(held) => held.push_str(text),
            None => push(out, Piece::Text(text.to_owned())),
        }
    }
}

fn push(out: &mut Vec<Piece>, piece: Piece) {
    match (out.last_mut(), piece) {
        (_, Piece::Text(text) | Piece::Thought(text)) if text.is_empty() => {}
        (Some(Piece::Text(text)), Piece::Text(more)) | (Some(Piece::Thought(text)), Piece::Thought(more)) => {
            text.push_str(&more);
        }
        (_, piece) => out.push(piece),
    }
}

enum Tag {
    Mark { length: usize, closes: bool },
    Maybe,
    None,
}

fn tag(text: &str) -> Tag {
    let whole = |tags: &[&str]| tags.iter().find(|tag| text.starts_with(**tag)).map(|tag| tag.len());
    match (whole(&OPEN), whole(&CLOSE)) {
        (Some(length), _) => Tag::Mark { length, closes: false },
        (_, Some(length)) => Tag::Mark { length, closes: true },
        _ if OPEN.iter().chain(&CLOSE).any(|tag| tag.starts_with(text)) => Tag::Maybe,
        _ => Tag::None,
    }
}

/// Whether we are inside Markdown code.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Code {
    ticks: usize,
    fence: bool,
    inline: bool,
}

impl Code {
    pub(super) fn take(&mut self, c: char) {
        if c == '`' {
            self.ticks += 1;
            return;
        }
        self.settle();
        if c == '\n' {
            self.inline = false;
        }
    }

    pub(super) fn open(&mut self) -> bool {
        self.settle();
        self.fence || self.inline
    }

    fn settle(&mut self) {
        match std::mem::take(&mut self.ticks) {
            0 => {}
            1 | 2 if self.fence => {}
            1 | 2 => self.inline = !self.inline,
            _ => self.fence = !self.fence,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(patient: bool, pieces: &[&str]) -> (String, String) {
        let mut filter = ThinkFilter::new(patient);
        let mut all: Vec<Piece> = pieces.iter().flat_map(|piece| filter.push(piece)).collect();
        all.extend(filter.finish());
        let (mut text, mut thought) = (String::new(), String::new());
        for piece in all {
            match piece {
                Piece::Text(piece) => text.push_str(&piece),
                Piece::Thought(piece) => thought.push_str(&piece),
            }
        }
        (text, thought)
    }

    fn letters(text: &str) -> Vec<String> {
        text.chars().map(String::from).collect()
    }

    #[test]
    fn thoughts_are_hidden_and_mentions_survive() {
        let fenced = "See:\n```\n<think>x</think>\n```\ndone";
        for (patient, answer, text, thought) in [
            (true, "reason</think>answer", "answer", "reason"),
            (true, "the user wants X.</think>Yes", "Yes", "the user wants X."),
            (true, "no tags at all", "no tags at all", ""),
            (false, "<think>a</think>b<think>c</think>d", "bd", "ac"),
            (false, "<think>\nstill thinking", "", "\nstill thinking"),
            (false, "<think>a</think>\n\nanswer", "answer", "a"),
            (false, "<thinking>a</thinking>b", "b", "a"),
            (false, r#"{"note":"the <think> tag"}"#, r#"{"note":"the <think> tag"}"#, ""),
            (false, fenced, fenced, ""),
            (false, "the `<think>` tag", "the `<think>` tag", ""),
            (false, "a < b and <b>", "a < b and <b>", ""),
            (false, "ends with <thi", "ends with <thi", ""),
            (false, "mentions <think> in prose", "mentions <think> in prose", ""),
        ] {
            let expected = (text.to_owned(), thought.to_owned());
            assert_eq!(split(patient, &[answer]), expected, "{answer}");
            let single = letters(answer);
            let single: Vec<&str> = single.iter().map(String::as_str).collect();
            assert_eq!(split(patient, &single), expected, "by character: {answer}");
        }
    }

    #[test]
    fn an_orphan_is_noticed() {
        let mut filter = ThinkFilter::new(false);
        filter.push("reason</think>answer");
        assert!(filter.saw_orphan());
    }

    proptest! {
        #[test]
        fn text_without_tags_is_untouched(text in "[a-j<>/ `\\n日本]{0,60}") {
            prop_assert_eq!(split(false, &[&text]), (text.clone(), String::new()));
        }

        #[test]
        fn cuts_do_not_matter(
            parts in proptest::collection::vec(
                prop::sample::select(vec!["<think>", "</think>", "a ", "\n", "`", "```", "{", "<", "日"]), 0..12),
            patient in any::<bool>(),
        ) {
            let text = parts.concat();
            let single = letters(&text);
            let single: Vec<&str> = single.iter().map(String::as_str).collect();
            prop_assert_eq!(split(patient, &[&text]), split(patient, &single));
        }
    }
}
