//! What the frontmatter of a memory file says about the file, for finding and for trusting it.

use chrono::{DateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;

use animaworks_core::{Origin, clock::parse_timestamp};

/// The scalars of a frontmatter and where the body begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Front {
    /// The first byte of the body.
    pub(crate) body_start: usize,
    /// Key and value of every plain line, in order; list items follow their key as one value.
    pub(crate) fields: Vec<(String, String)>,
}

impl Front {
    /// Reads it; a file without a closing fence is all body.
    pub(crate) fn read(text: &str) -> Self {
        let mut lines = text.split_inclusive('\n');
        let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return Self::default() };
        let mut at = first.len();
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in lines {
            at += line.len();
            let plain = line.trim_end();
            if plain == "---" {
                let rest = text.get(at..).unwrap_or_default();
                let blank = ["\r\n", "\n"].into_iter().find(|blank| rest.starts_with(blank)).map_or(0, str::len);
                return Self { body_start: at + blank, fields };
            }
            if let Some(item) = plain.trim_start().strip_prefix("- ") {
                if let Some((_, value)) = fields.last_mut() {
                    if !value.is_empty() {
                        value.push('\n');
                    }
                    value.push_str(unquoted(item));
                }
            } else if let Some((key, value)) = plain.split_once(':')
                && !key.starts_with([' ', '\t', '#'])
            {
                fields.push((key.trim().to_owned(), unquoted(value).to_owned()));
            }
        }
        Self::default()
    }

    /// The value of a key, when it has one.
    pub(crate) fn field(&self, key: &str) -> Option<&str> {
        let value = self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())?;
        (!matches!(value, "" | "null" | "~" | "[]")).then_some(value)
    }

    /// Whether something newer stands in its place.
    pub(crate) fn superseded(&self) -> bool {
        self.field("valid_until").or_else(|| self.field("superseded_at")).is_some()
    }

    /// Where its words come from; empty when it does not say.
    pub(crate) fn origin(&self) -> Origin {
        let chain = self.field("origin_chain").map(|links| {
            let links = links.trim_matches(['[', ']']);
            links.split(['\n', ',']).map(|link| unquoted(link).to_owned()).filter(|link| !link.is_empty()).collect()
        });
        Origin { source: self.field("origin").unwrap_or_default().to_owned(), chain: chain.unwrap_or_default() }
    }

    /// Its title.
    pub(crate) fn title(&self) -> Option<String> {
        self.field("title").or_else(|| self.field("name")).map(str::to_owned)
    }

    /// What it is about, in a sentence.
    pub(crate) fn summary(&self) -> Option<String> {
        self.field("description").or_else(|| self.field("summary")).map(|text| text.chars().take(300).collect())
    }

    /// Since when it holds.
    pub(crate) fn moment(&self, zone: Tz) -> Option<DateTime<Utc>> {
        let text =
            ["valid_from", "updated_at", "created_at", "date", "created"].iter().find_map(|key| self.field(key))?;
        let offset = zone.offset_from_utc_datetime(&DateTime::UNIX_EPOCH.naive_utc()).fix();
        parse_timestamp(text, offset).map(|at| at.with_timezone(&Utc))
    }
}

fn unquoted(value: &str) -> &str {
    let value = value.trim();
    ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_at_the_top_is_no_frontmatter() {
        assert_eq!(Front::read("---\nno close").body_start, 0);
        let front = Front::read("---\nconfidence: 0.5\ntags:\n- a\n- b\nvalid_until: ''\n---\n\n本文\n");
        assert_eq!(
            (front.field("confidence"), front.field("tags"), front.superseded()),
            (Some("0.5"), Some("a\nb"), false)
        );
        assert_eq!(
            "---\nconfidence: 0.5\ntags:\n- a\n- b\nvalid_until: ''\n---\n\n本文\n".get(front.body_start..),
            Some("本文\n")
        );
        assert!(Front::read("---\nvalid_until: '2026-03-31T02:11:00+09:00'\n---\nx").superseded());
    }
}
