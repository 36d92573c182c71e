//! Folding: one spelling for what people write in many.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Compatibility-composed and in lower case, so that `ＤＥＰＬＯＹ`, `Deploy` and `deploy` are one word.
pub(crate) fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        }
    } else {
        Cow::Owned(text.nfkc().flat_map(char::to_lowercase).collect())
    }
}

/// How a character takes part in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    /// Chinese characters, and the marks that repeat them.
    Han,
    /// Hiragana.
    Hiragana,
    /// Katakana and its length mark.
    Katakana,
    /// Hangul.
    Hangul,
    /// Letters and digits of scripts that put spaces between words.
    Word,
    /// Everything else.
    Gap,
}

impl Script {
    /// The script of a folded character.
    pub(crate) fn of(c: char) -> Self {
        match u32::from(c) {
            0x30..=0x39 | 0x61..=0x7A => Self::Word,
            0..=0x7F => Self::Gap,
            0x3041..=0x309F => Self::Hiragana,
            0x30A1..=0x30FA | 0x30FC..=0x30FF | 0x31F0..=0x31FF => Self::Katakana,
            0x3005..=0x3007 | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF => Self::Han,
            0x1100..=0x11FF | 0xAC00..=0xD7FF => Self::Hangul,
            _ if c.is_alphanumeric() => Self::Word,
            _ => Self::Gap,
        }
    }

    /// Whether words run on without spaces.
    pub(crate) fn is_run_on(self) -> bool {
        matches!(self, Self::Han | Self::Hiragana | Self::Katakana | Self::Hangul)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_and_case_do_not_matter() {
        assert_eq!(fold("ＤＥＰＬＯＹ Ｋｅｙ ﾃｽﾄ"), "deploy key テスト");
        assert_eq!(fold("Deploy"), "deploy");
    }
}
