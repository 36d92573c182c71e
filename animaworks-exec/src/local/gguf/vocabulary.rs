//! Words to numbers and back, rebuilt from what a GGUF file says about its tokenizer.
//!
//! Two sorts exist: scored pieces (`llama`, as gemma has them) are joined here by score;
//! byte-level pairs (`gpt2`, as qwen has them) by the `tokenizers` crate. A text can never
//! turn into a control token: those come from the chat template alone.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, HashMap},
};

use candle_core::quantized::gguf_file::{Content, Value};
use tokenizers::{
    Tokenizer,
    models::bpe::{BPE, Vocab},
    normalizers::NFC,
    pre_tokenizers::{
        PreTokenizerWrapper,
        byte_level::ByteLevel,
        sequence::Sequence,
        split::{Split, SplitPattern},
    },
    tokenizer::SplitDelimiterBehavior,
};

/// How qwen cuts text before pairs are joined.
const QWEN_CUT: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The words of a model.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pieces: Vec<Piece>,
    numbers: HashMap<String, u32>,
    joiner: Joiner,
    /// The token a text begins with, if the model wants one.
    pub(crate) begin: Option<u32>,
    /// The token that ends everything.
    pub(crate) end: Option<u32>,
}

#[derive(Debug)]
struct Piece {
    text: String,
    kind: Kind,
    score: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Unknown,
    Control,
    /// Taken whole wherever it stands in a text.
    Given,
    Byte,
}

#[derive(Debug)]
enum Joiner {
    /// By score; the longest given pieces first.
    Score { given: HashMap<char, Vec<u32>>, prefix_space: bool },
    /// By pairs of bytes.
    Pairs(Box<Tokenizer>),
}

impl Vocabulary {
    /// Rebuilds the words of a file.
    ///
    /// # Errors
    ///
    /// Says in English what the file lacks.
    pub(crate) fn of(content: &Content) -> Result<Self, String> {
        let field = |key: &str| content.metadata.get(&format!("tokenizer.ggml.{key}"));
        let list = |key: &str| field(key).and_then(|value| value.to_vec().ok());
        let number = |key: &str| field(key).and_then(|value| value.to_u32().ok());
        let flag = |key: &str| field(key).and_then(|value| value.to_bool().ok());
        let texts = list("tokens").ok_or("the file has no tokenizer.ggml.tokens")?;
        let scores = list("scores");
        let kinds = list("token_type");
        let mut pieces = Vec::with_capacity(texts.len());
        let mut numbers = HashMap::with_capacity(texts.len());
        for (at, text) in texts.iter().enumerate() {
            let text = text.to_string().map_err(|error| format!("token {at}: {error}"))?.clone();
            let score = scores.and_then(|scores| scores.get(at)?.to_f32().ok()).unwrap_or_default();
            let kind = kinds.and_then(|kinds| whole(kinds.get(at)?)).unwrap_or(1);
            let kind = match kind {
                2 => Kind::Unknown,
                3 | 5 => Kind::Control,
                4 => Kind::Given,
                6 => Kind::Byte,
                _ => Kind::Normal,
            };
            numbers.insert(text.clone(), u32::try_from(at).map_err(|error| error.to_string())?);
            pieces.push(Piece { text, kind, score });
        }
        let model = field("model").and_then(|value| value.to_string().ok()).map_or("llama", String::as_str);
        let joiner = match model {
            "gpt2" => {
                let merges = list("merges").ok_or("the file has no tokenizer.ggml.merges")?;
                Joiner::Pairs(Box::new(pairs(&pieces, merges)?))
            }
            "llama" => Joiner::Score { given: given(&pieces), prefix_space: flag("add_space_prefix").unwrap_or(true) },
            other => return Err(format!("tokenizers of the sort {other} are not known")),
        };
        let begin = number("bos_token_id").filter(|_| flag("add_bos_token").unwrap_or(model == "llama"));
        Ok(Self { pieces, numbers, joiner, begin, end: number("eos_token_id") })
    }

    /// The number of a token by its text, control tokens too.
    pub(crate) fn number(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// A text in numbers. `first` says that nothing stands before it.
    pub(crate) fn numbers(&self, text: &str, first: bool) -> Result<Vec<u32>, String> {
        match &self.joiner {
            Joiner::Pairs(tokenizer) => {
                let encoding = tokenizer.encode_fast(text, false).map_err(|error| format!("tokenizer: {error}"))?;
                Ok(encoding.get_ids().to_vec())
            }
            Joiner::Score { given, prefix_space } => {
                let mut out = Vec::new();
                let mut plain = String::new();
                if first && *prefix_space {
                    plain.push(' ');
                }
                let mut rest = text;
                while let Some(c) = rest.chars().next() {
                    let candidates = given.get(&c).into_iter().flatten();
                    let whole = candidates.copied().find(|at| rest.starts_with(self.text(*at)));
                    let taken = match whole {
                        Some(at) => {
                            self.join(&plain, &mut out);
                            plain.clear();
                            out.push(at);
                            self.text(at).len()
                        }
                        None => {
                            plain.push(c);
                            c.len_utf8()
                        }
                    };
                    rest = rest.get(taken..).unwrap_or_default();
                }
                self.join(&plain, &mut out);
                Ok(out)
            }
        }
    }

    fn text(&self, at: u32) -> &str {
        self.pieces.get(at as usize).map_or("", |piece| piece.text.as_str())
    }

    /// Joins neighbouring pieces, the best score first, until nothing joins any more.
    fn join(&self, plain: &str, out: &mut Vec<u32>) {
        let text = plain.replace(' ', "▁");
        // a chain of pieces: where each begins, ends, and which stand beside it
        let mut links: Vec<Link> = Vec::new();
        for (at, c) in text.char_indices() {
            let n = links.len();
            links.push(Link { start: at, end: at + c.len_utf8(), before: n.checked_sub(1), behind: Some(n + 1) });
        }
        if let Some(last) = links.last_mut() {
            last.behind = None;
        }
        let mut heap = BinaryHeap::new();
        for at in 1..links.len() {
            self.offer(&text, &links, at - 1, at, &mut heap);
        }
        while let Some(pair) = heap.pop() {
            let (Some(left), Some(right)) = (links.get(pair.left).copied(), links.get(pair.right).copied()) else {
                continue;
            };
            // one of the two has been joined with somebody else in the meantime
            if left.start == left.end || right.start == right.end || right.end - left.start != pair.bytes {
                continue;
            }
            if let Some(link) = links.get_mut(pair.right) {
                link.start = link.end;
            }
            if let Some(link) = links.get_mut(pair.left) {
                link.end = right.end;
                link.behind = right.behind;
            }
            if let Some(link) = right.behind.and_then(|behind| links.get_mut(behind)) {
                link.before = Some(pair.left);
            }
            if let Some(before) = left.before {
                self.offer(&text, &links, before, pair.left, &mut heap);
            }
            if let Some(behind) = right.behind {
                self.offer(&text, &links, pair.left, behind, &mut heap);
            }
        }
        for link in links.iter().filter(|link| link.start < link.end) {
            let piece = text.get(link.start..link.end).unwrap_or_default();
            match self.plain_number(piece) {
                Some(number) => out.push(number),
                None => out.extend(piece.bytes().filter_map(|byte| self.number(&format!("<0x{byte:02X}>")))),
            }
        }
    }

    /// The number of a piece that a text may turn into.
    fn plain_number(&self, piece: &str) -> Option<u32> {
        let number = self.number(piece)?;
        let kind = self.pieces.get(number as usize)?.kind;
        (kind == Kind::Normal || kind == Kind::Given).then_some(number)
    }

    fn offer(&self, text: &str, links: &[Link], left: usize, right: usize, heap: &mut BinaryHeap<Pair>) {
        let (Some(first), Some(second)) = (links.get(left), links.get(right)) else { return };
        let Some(joined) = text.get(first.start..second.end) else { return };
        if let Some(number) = self.plain_number(joined)
            && let Some(piece) = self.pieces.get(number as usize)
        {
            heap.push(Pair { score: piece.score, left, right, bytes: joined.len() });
        }
    }

    /// The bytes of a token; control tokens have none.
    pub(crate) fn bytes(&self, number: u32) -> Vec<u8> {
        let Some(piece) = self.pieces.get(number as usize) else { return Vec::new() };
        match piece.kind {
            Kind::Control | Kind::Unknown => Vec::new(),
            Kind::Byte => {
                let digits = piece.text.trim_start_matches("<0x").trim_end_matches('>');
                u8::from_str_radix(digits, 16).map(|byte| vec![byte]).unwrap_or_default()
            }
            Kind::Normal | Kind::Given => match self.joiner {
                Joiner::Score { .. } => piece.text.replace('▁', " ").into_bytes(),
                Joiner::Pairs(_) if piece.kind == Kind::Given => piece.text.clone().into_bytes(),
                Joiner::Pairs(_) => piece.text.chars().filter_map(byte_of).collect(),
            },
        }
    }
}

fn whole(value: &Value) -> Option<i64> {
    value.to_i32().map(i64::from).or_else(|_| value.to_u32().map(i64::from)).ok()
}

fn given(pieces: &[Piece]) -> HashMap<char, Vec<u32>> {
    let mut given: HashMap<char, Vec<u32>> = HashMap::new();
    for (at, piece) in (0_u32..).zip(pieces) {
        if piece.kind == Kind::Given
            && let Some(c) = piece.text.chars().next()
        {
            given.entry(c).or_default().push(at);
        }
    }
    let length = |at: &u32| pieces.get(*at as usize).map_or(0, |piece| piece.text.len());
    for same in given.values_mut() {
        same.sort_by_key(|at| Reverse(length(at)));
    }
    given
}

fn pairs(pieces: &[Piece], merges: &[Value]) -> Result<Tokenizer, String> {
    let broken = |error: tokenizers::Error| format!("tokenizer: {error}");
    let vocabulary = (0_u32..).zip(pieces).map(|(at, piece)| (piece.text.clone(), at)).collect::<Vocab>();
    let merges = merges
        .iter()
        .filter_map(|merge| merge.to_string().ok()?.split_once(' '))
        .map(|(left, right)| (left.to_owned(), right.to_owned()))
        .collect();
    let model = BPE::builder().vocab_and_merges(vocabulary, merges);
    let mut tokenizer = Tokenizer::new(model.build().map_err(broken)?);
    tokenizer.with_normalizer(Some(NFC)).map_err(broken)?;
    let cut = Split::new(SplitPattern::Regex(QWEN_CUT.to_owned()), SplitDelimiterBehavior::Isolated, false);
    let steps = vec![
        PreTokenizerWrapper::Split(cut.map_err(broken)?),
        PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, false, false)),
    ];
    tokenizer.with_pre_tokenizer(Some(Sequence::new(steps)));
    Ok(tokenizer)
}

/// The byte behind a character of a byte-level vocabulary: printable ones stand for themselves,
/// the others are shifted up, in order.
fn byte_of(c: char) -> Option<u8> {
    let printable = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let code = u32::from(c);
    if let Ok(byte) = u8::try_from(code) {
        return printable(byte).then_some(byte);
    }
    let shifted = code.checked_sub(0x100)? as usize;
    (0..=u8::MAX).filter(|byte| !printable(*byte)).nth(shifted)
}

#[derive(Debug, Clone, Copy)]
struct Link {
    start: usize,
    end: usize,
    before: Option<usize>,
    behind: Option<usize>,
}

/// Two neighbours that could be joined; the best score first, then the leftmost.
#[derive(Debug)]
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    bytes: usize,
}

impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Pair {}

/// Bytes that become text as soon as whole characters are there.
#[derive(Debug, Default)]
pub(crate) struct Spelling(Vec<u8>);

impl Spelling {
    /// Takes bytes; gives back the characters that are complete. Bytes that can never be text become U+FFFD.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let mut out = String::new();
        loop {
            match std::str::from_utf8(&self.0) {
                Ok(text) => {
                    out.push_str(text);
                    self.0.clear();
                    return out;
                }
                Err(error) => {
                    let whole = error.valid_up_to();
                    out.push_str(&String::from_utf8_lossy(self.0.get(..whole).unwrap_or_default()));
                    let bad = match error.error_len() {
                        Some(len) => {
                            out.push(char::REPLACEMENT_CHARACTER);
                            len
                        }
                        None => 0,
                    };
                    self.0.drain(..whole + bad);
                    if bad == 0 {
                        return out;
                    }
                }
            }
        }
    }

    /// What is left at the end; a torn character becomes U+FFFD.
    pub(crate) fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.0);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn byte_level_characters_are_bytes() {
        assert_eq!(byte_of('A'), Some(b'A'));
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
        assert_eq!(byte_of('Ń'), Some(0xad));
        assert_eq!(byte_of('鍵'), None);
    }

    proptest! {
        #[test]
        fn spelling_never_splits_a_character(text in "\\PC{0,40}", step in 1_usize..4) {
            let mut spelling = Spelling::default();
            let mut out = String::new();
            for bytes in text.as_bytes().chunks(step) {
                out.push_str(&spelling.push(bytes));
            }
            out.push_str(&spelling.finish());
            prop_assert_eq!(out, text);
        }

        #[test]
        fn spelling_takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut spelling = Spelling::default();
            let mut out: String = bytes.iter().map(|byte| spelling.push(&[*byte])).collect();
            out.push_str(&spelling.finish());
            prop_assert_eq!(out, String::from_utf8_lossy(&bytes));
        }
    }
}
