//! What an Anima remembers: Markdown is the truth, the index is its shadow.
