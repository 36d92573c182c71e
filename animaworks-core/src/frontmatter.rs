//! The block of YAML at the head of a Markdown file (memory spec §7).
//!
//! Reading is lenient: what cannot be understood leaves the body alone. Writing touches only the keys that were
//! set: order, unknown keys, comments and quotes of everything else stay as a person or another version left them.

use serde_json::{Map, Value};

/// The largest block that is read.
const MAX_BYTES: usize = 64 * 1024;

/// A Markdown file with what its head says about it.
///
/// ```
/// use animaworks_core::frontmatter::Document;
///
/// let mut page = Document::parse("---\nmood: good # today\nconfidence: 0.5\n---\n\n本文\n");
/// page.set("confidence", 0.7);
/// assert_eq!(page.to_string(), "---\nmood: good # today\nconfidence: 0.7\n---\n\n本文\n");
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// Everything behind the head.
    pub body: String,
    fields: Map<String, Value>,
    entries: Vec<Entry>,
    /// What stood between the closing fence and the body.
    gap: String,
    fenced: bool,
    problem: Option<String>,
}

/// One key with its lines as they stand in the file; the key is empty for lines before the first one.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    key: String,
    raw: String,
}

impl Document {
    /// A page without a head.
    pub fn new(body: impl Into<String>) -> Self {
        Self { body: body.into(), gap: "\n".to_owned(), ..Self::default() }
    }

    /// Takes a file apart. Without a closing fence all of it is body.
    pub fn parse(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some((head, rest)) = split(text) else { return Self::new(text) };
        let (gap, body) = match ["\r\n", "\n"].into_iter().find_map(|blank| Some((blank, rest.strip_prefix(blank)?))) {
            Some((blank, body)) => (blank, body),
            None => ("", rest),
        };
        let mut page = Self {
            body: body.to_owned(),
            gap: gap.to_owned(),
            fenced: true,
            entries: entries(head),
            ..Self::default()
        };
        match read(head) {
            Ok(fields) => {
                let keys: Vec<_> = page.entries.iter().map(|entry| &entry.key).filter(|key| !key.is_empty()).collect();
                if !fields.keys().eq(keys) {
                    // written in a way that cannot be cut line by line, such as `{a: 1}`
                    page.entries = fields.iter().map(|(key, value)| Entry::new(key, value)).collect();
                }
                page.fields = fields;
            }
            Err(problem) => {
                page.entries = vec![Entry { key: String::new(), raw: head.to_owned() }];
                page.problem = Some(problem);
            }
        }
        page
    }

    /// What the head says, in its order.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// The value of a key.
    pub fn field(&self, key: &str) -> Option<&Value> {
        self.fields.get(key)
    }

    /// The value of a key as text; empty when it has none.
    pub fn text(&self, key: &str) -> String {
        match self.fields.get(key) {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(other) => other.to_string(),
        }
    }

    /// Why the head could not be read, when it could not.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whether there is a head at all.
    pub fn has_head(&self) -> bool {
        self.fenced
    }

    /// Sets a key: in its place when it is there, at the end when it is new.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        if self.problem.take().is_some() {
            // what nobody could read stays, where it harms no reader
            for entry in &mut self.entries {
                entry.raw = entry.raw.lines().map(|line| format!("# {line}\n")).collect();
            }
        }
        self.fenced = true;
        let entry = Entry::new(key, &value);
        match self.entries.iter_mut().find(|old| old.key == key) {
            Some(old) => {
                if self.fields.get(key) != Some(&value) {
                    *old = entry;
                }
            }
            None => {
                if let Some(last) = self.entries.last_mut().filter(|last| !last.raw.ends_with('\n')) {
                    last.raw.push('\n');
                }
                self.entries.push(entry);
            }
        }
        self.fields.insert(key.to_owned(), value);
    }

    /// Sets a key that is not there yet.
    pub fn set_default(&mut self, key: &str, value: impl Into<Value>) {
        if !self.fields.contains_key(key) {
            self.set(key, value);
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.entries.retain(|entry| entry.key != key);
        self.fields.shift_remove(key)
    }
}

impl std::fmt::Display for Document {
    /// The file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.fenced {
            f.write_str("---\n")?;
            for entry in &self.entries {
                f.write_str(&entry.raw)?;
                if !entry.raw.ends_with('\n') && !entry.raw.is_empty() {
                    f.write_str("\n")?;
                }
            }
            f.write_str("---\n")?;
            f.write_str(&self.gap)?;
        }
        f.write_str(&self.body)
    }
}

impl Entry {
    fn new(key: &str, value: &Value) -> Self {
        Self { key: key.to_owned(), raw: format!("{}:{}\n", scalar(key), written(value)) }
    }
}

/// Cuts a text at its fences: what is between them, and what is behind.
fn split(text: &str) -> Option<(&str, &str)> {
    let first = text.split_inclusive('\n').next().filter(|line| line.trim_end() == "---")?;
    let inside = text.get(first.len()..)?;
    let mut at = 0;
    for line in inside.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((inside.get(..at)?, inside.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

/// The lines of a block, by the key they belong to.
fn entries(head: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in head.split_inclusive('\n') {
        let key = match line.chars().next() {
            Some(c) if !c.is_whitespace() && !matches!(c, '#' | '-' | '}' | ']') => line.split_once(':'),
            _ => None,
        };
        match (key, entries.last_mut()) {
            (Some((key, _)), _) => {
                entries.push(Entry { key: key.trim().trim_matches(['"', '\'']).to_owned(), raw: line.to_owned() });
            }
            (None, Some(last)) => last.raw.push_str(line),
            (None, None) => entries.push(Entry { key: String::new(), raw: line.to_owned() }),
        }
    }
    entries
}

fn read(head: &str) -> Result<Map<String, Value>, String> {
    if head.len() > MAX_BYTES {
        return Err(format!("larger than {MAX_BYTES} bytes"));
    }
    if head.trim().is_empty() {
        return Ok(Map::new());
    }
    let budget = serde_saphyr::budget! { max_depth: 32, max_nodes: 4000, max_aliases: 16, max_anchors: 16 };
    let options = serde_saphyr::options! { budget: budget, with_snippet: false };
    match serde_saphyr::from_str_with_options::<Value>(head, options) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("not a mapping".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A value behind its colon.
fn written(value: &Value) -> String {
    match value {
        Value::Array(items) if items.is_empty() => " []".to_owned(),
        Value::Array(items) if items.iter().all(|item| !item.is_array() && !item.is_object()) => {
            items.iter().map(|item| format!("\n-{}", written(item))).collect()
        }
        Value::String(text) => format!(" {}", scalar(text)),
        // JSON is YAML too
        other => format!(" {other}"),
    }
}

/// A text, plain where no reader of any version takes it for something else.
fn scalar(text: &str) -> String {
    const WORDS: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let plain = text.chars().next().is_some_and(char::is_alphabetic)
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ' | '(' | ')' | '、' | '。'))
        && !text.ends_with(' ')
        && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
    if plain {
        text.to_owned()
    } else if text.chars().any(char::is_control) {
        Value::String(text.to_owned()).to_string()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn takes_a_file_apart_as_the_python_version_does() {
        for (text, fields, body) in [
            ("---\nconfidence: 0.5\n---\n\n本文\n", json!({"confidence": 0.5}), "本文\n"),
            ("---\nbad: [\n---\nx", json!({}), "x"),
            ("---\nno close", json!({}), "---\nno close"),
            ("---\n- a\n- b\n---\nx", json!({}), "x"),
            ("---\n---\nx", json!({}), "x"),
            ("\u{feff}---\r\na: 1\r\n---\r\n\r\nx", json!({"a": 1}), "x"),
            ("no head", json!({}), "no head"),
            ("", json!({}), ""),
        ] {
            let page = Document::parse(text);
            assert_eq!((Value::Object(page.fields.clone()), page.body.as_str()), (fields, body), "{text:?}");
        }
    }

    #[test]
    fn only_what_is_set_changes() {
        let text = "---\n# by hand\nname: \"a: b\"   # quoted\ntags:\n- x\n- y\nlast_used: ''\nversion: 1\n---\nbody";
        let mut page = Document::parse(text);
        assert_eq!(page.to_string(), text);
        page.set("version", 2);
        page.set("name", "a: b");
        page.set("updated_at", "2026-03-31T02:10:44+09:00");
        page.remove("last_used");
        page.set("tags", json!(["x", "yes", "2026"]));
        let expected = "---\n# by hand\nname: \"a: b\"   # quoted\ntags:\n- x\n- 'yes'\n- '2026'\nversion: 2\n\
                        updated_at: '2026-03-31T02:10:44+09:00'\n---\nbody";
        assert_eq!(page.to_string(), expected);
    }

    #[test]
    fn a_flow_mapping_is_written_line_by_line() {
        let mut page = Document::parse("---\n{a: 1, b: [2]}\n---\nx");
        page.set("a", 3);
        assert_eq!(page.to_string(), "---\na: 3\nb:\n- 2\n---\nx");
    }

    #[test]
    fn what_cannot_be_read_is_kept_as_a_comment() {
        let mut page = Document::parse("---\nbad: [\n---\nx");
        assert!(page.problem().is_some());
        assert_eq!(page.to_string(), "---\nbad: [\n---\nx");
        page.set("confidence", 0.5);
        assert_eq!(page.to_string(), "---\n# bad: [\nconfidence: 0.5\n---\nx");
    }

    #[test]
    fn a_bomb_is_not_read() {
        let mut bomb = String::from("---\na: &a [x, x, x, x, x, x, x, x, x]\n");
        for n in 0..20 {
            bomb.push_str(&format!("b{n}: &b{n} [*a, *a, *a, *a, *a, *a, *a, *a]\n"));
        }
        bomb.push_str("---\nx");
        assert!(Document::parse(&bomb).problem().is_some());
        let long = format!("---\na: {}\n---\nx", "y".repeat(MAX_BYTES));
        assert!(Document::parse(&long).problem().is_some());
    }

    proptest! {
        #[test]
        fn what_is_set_is_read_back(key in "[a-z_]{1,10}", text in "\\PC{0,30}", number in -1000_i64..1000) {
            let mut page = Document::new("本文");
            page.set(&key, text.as_str());
            page.set("zz_number", number);
            page.set("zz_list", json!([text, number, null, true]));
            let again = Document::parse(&page.to_string());
            prop_assert_eq!(again.problem(), None);
            prop_assert_eq!(again.fields(), page.fields());
            prop_assert_eq!(&again.body, "本文");
        }

        #[test]
        fn nothing_panics_and_nothing_is_lost(text in "(---\n)?(\\PC{0,8}[:\n#-]?){0,6}(\n---\n)?\\PC{0,8}") {
            let page = Document::parse(&text);
            prop_assert!(text.ends_with(&page.body));
        }
    }
}
