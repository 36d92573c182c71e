//! The emotion tag: taken out of the stream before anybody sees it (RULINGS 14).
//!
//! An answer ends with `<!-- emotion: {"emotion": "smile"} -->`. The tag arrives in pieces of any
//! size; what might still become one is held back until it is clear, so no part of it leaks
//! into the stream, the journal or the history.

use crate::prompt::EMOTIONS;

/// What opens a tag, without the spaces that may stand between the parts.
const OPENING: [&str; 3] = ["<!--", "emotion", ":"];
/// What closes it.
const CLOSING: &str = "-->";
/// A comment longer than this, in bytes, is not a tag.
const LONGEST: usize = 200;

/// Takes tags out of a text that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct EmotionFilter {
    held: String,
    emotion: Option<&'static str>,
}

/// What the text from a `<` on is.
enum Look {
    Text,
    Undecided,
    Tag { bytes: usize, emotion: &'static str },
}

impl EmotionFilter {
    /// Takes the next piece; what is certainly text is appended to `out`.
    pub(super) fn push(&mut self, piece: &str, out: &mut String) {
        if self.held.is_empty() && !piece.contains('<') {
            out.push_str(piece);
            return;
        }
        self.held.push_str(piece);
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_str();
        while let Some(at) = rest.find('<') {
            let (text, from) = rest.split_at(at);
            out.push_str(text);
            match look(from) {
                Look::Text => {
                    out.push('<');
                    rest = from.strip_prefix('<').unwrap_or_default();
                }
                Look::Undecided => {
                    from.clone_into(&mut self.held);
                    return;
                }
                Look::Tag { bytes, emotion } => {
                    self.emotion = Some(emotion);
                    rest = from.get(bytes..).unwrap_or_default();
                }
            }
        }
        out.push_str(rest);
    }

    /// The text has ended: what was held back is text after all, unless it is the beginning of a tag that was cut off.
    pub(super) fn finish(&mut self, out: &mut String) -> Option<&'static str> {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() && opened(&held).is_none() {
            out.push_str(&held);
        }
        self.emotion.take()
    }
}

/// What `text`, which begins with `<`, is.
fn look(text: &str) -> Look {
    let mut rest = text;
    for part in OPENING {
        rest = rest.trim_start_matches([' ', '\t']);
        match rest.strip_prefix(part) {
            Some(after) => rest = after,
            // everything seen so far fits, and nothing is left to look at
            None if part.starts_with(rest) && text.len() <= LONGEST => return Look::Undecided,
            None => return Look::Text,
        }
    }
    match rest.find(CLOSING) {
        Some(at) => {
            let bytes = text.len() - rest.len() + at + CLOSING.len();
            Look::Tag { bytes, emotion: named(rest.get(..at).unwrap_or_default()) }
        }
        None if text.len() > LONGEST => Look::Text,
        None => Look::Undecided,
    }
}

/// What follows the whole opening, when the text has it.
fn opened(text: &str) -> Option<&str> {
    let mut rest = text;
    for part in OPENING {
        rest = rest.trim_start_matches([' ', '\t']).strip_prefix(part)?;
    }
    Some(rest)
}

/// The emotion a tag names; the neutral one when it names none that we know.
fn named(body: &str) -> &'static str {
    let value = serde_json::from_str::<serde_json::Value>(body.trim()).ok();
    let word = match &value {
        Some(serde_json::Value::Object(map)) => map.get("emotion").and_then(serde_json::Value::as_str),
        _ => Some(body.trim().trim_matches('"')),
    };
    EMOTIONS.into_iter().find(|known| Some(*known) == word).unwrap_or(EMOTIONS[0])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, Option<&'static str>) {
        let (mut filter, mut out) = (EmotionFilter::default(), String::new());
        for piece in pieces {
            filter.push(piece, &mut out);
        }
        let emotion = filter.finish(&mut out);
        (out, emotion)
    }

    #[test]
    fn a_tag_split_anywhere_never_shows() {
        let whole = "はい、<b>送ります</b>。\n<!-- emotion: {\"emotion\": \"smile\"} -->";
        for (at, _) in whole.char_indices() {
            let (head, tail) = whole.split_at(at);
            assert_eq!(run([head, tail]), ("はい、<b>送ります</b>。\n".to_owned(), Some("smile")), "split at {at}");
        }
        let letters: Vec<String> = whole.chars().map(String::from).collect();
        assert_eq!(run(letters.iter().map(String::as_str)).0, "はい、<b>送ります</b>。\n");
    }

    #[test]
    fn other_comments_are_text_and_odd_tags_are_neutral() {
        assert_eq!(run(["a <!-- note --> b"]), ("a <!-- note --> b".to_owned(), None));
        assert_eq!(run(["a<!--emotion:laugh-->b"]), ("ab".to_owned(), Some("laugh")));
        assert_eq!(run(["<!-- emotion: {\"emotion\":\"furious\"} -->"]), (String::new(), Some("neutral")));
        assert_eq!(run(["x < y, x <"]), ("x < y, x <".to_owned(), None));
        assert_eq!(run(["done <!-- emotion: {\"emo"]), ("done ".to_owned(), None), "a cut tag does not leak");
        let long = format!("<!-- emotion: {}", "x".repeat(300));
        assert_eq!(run([long.as_str(), " end"]).0, format!("{long} end"));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "[a-z<!\\-: あ\"{}]{0,60}", cuts in proptest::collection::vec(0_usize..60, 0..6),
                                before in any::<bool>()) {
            let tag = "<!-- emotion: {\"emotion\": \"thinking\"} -->";
            let whole = if before { format!("{tag}{text}") } else { format!("{text}{tag}") };
            let chars: Vec<char> = whole.chars().collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(chars.len())).collect();
            cuts.extend([0, chars.len()]);
            cuts.sort_unstable();
            let pieces: Vec<String> = cuts.windows(2).map(|w| chars[w[0]..w[1]].iter().collect()).collect();
            prop_assert_eq!(run(pieces.iter().map(String::as_str)), run([whole.as_str()]));
        }
    }
}
