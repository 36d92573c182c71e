//! An embedder without a model: words and character pairs, hashed.
//!
//! Texts that share words or, in Japanese, neighbouring characters are near each other. That is enough for tests of
//! everything that uses vectors, needs no weights, and gives the same vectors on every machine.

use async_trait::async_trait;
use unicode_normalization::UnicodeNormalization;

use super::{EmbedError, EmbedKind, Embedder, normalise};

/// As long as the vectors of e5-small.
const DIMENSIONS: usize = 384;

/// Deterministic vectors from words and character pairs.
#[derive(Debug, Clone, Copy, Default)]
pub struct HashEmbedder {}

impl HashEmbedder {
    /// The embedder; there is nothing to configure.
    pub fn new() -> Self {
        Self {}
    }

    /// The vector of one text.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; DIMENSIONS];
        let folded: String = text.nfkc().flat_map(char::to_lowercase).collect();
        for word in folded.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
            add(&mut vector, word, 1.0);
            let letters: Vec<char> = word.chars().collect();
            for pair in letters.windows(2) {
                add(&mut vector, &String::from_iter(pair), if word.is_ascii() { 0.25 } else { 1.0 });
            }
        }
        if vector.iter().all(|value| *value == 0.0) {
            // nothing but marks: still a vector of length 1
            add(&mut vector, &folded, 1.0);
        }
        normalise(&mut vector);
        vector
    }
}

#[async_trait]
impl Embedder for HashEmbedder {
    fn signature(&self) -> &'static str {
        "hash-384-v1"
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    async fn embed(&self, _kind: EmbedKind, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

// two places per feature, so that two features rarely hide each other
fn add(vector: &mut [f32], feature: &str, weight: f32) {
    let hash = feature
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    for part in [hash, hash.rotate_left(29).wrapping_mul(0x9e37_79b9_7f4a_7c15)] {
        let sign = if part >> 63 == 1 { -1.0 } else { 1.0 };
        vector[(part >> 16) as usize % DIMENSIONS] += sign * weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cosine(a: &str, b: &str) -> f32 {
        let embedder = HashEmbedder::new();
        embedder.vector(a).iter().zip(embedder.vector(b)).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn shared_words_bring_texts_near() {
        assert!(cosine("restart the server", "The server must restart") > 0.5);
        assert!(cosine("明日の会議は何時", "会議は明日の十時") > cosine("明日の会議は何時", "請求書を送った") + 0.2);
        assert!(cosine("ＡＢＣ", "abc") > 0.999);
        for text in ["", "。", "🙂"] {
            assert!((cosine(text, text) - 1.0).abs() < 1e-5, "{text:?}");
        }
    }
}
