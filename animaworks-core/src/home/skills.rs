//! The skill catalogue: what an Anima can look up when it does not know how (memory spec §9).

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    AnimaHome, list,
    text::{head, one_line},
};
use crate::{
    error::ResultExt,
    frontmatter::Document,
    fs,
    prompt::Skill,
    trust::{Origin, Trust},
};

/// The longest description in the catalogue, in characters.
const MAX_DESCRIPTION: usize = 250;

impl AnimaHome {
    /// Its own skills, those of everybody and its procedures, each sort by path. Blocks; what cannot be read is left
    /// out. What was put in quarantine, blocked or written from words from outside is not offered: a catalogue is
    /// read as instructions.
    pub fn skill_catalogue(&self) -> Vec<Skill> {
        let (dir, common) = (self.dir(), self.dir().data().common_skills());
        let mut own = skills(&dir.file("skills"), "skills");
        // where other programs keep skills of the same form
        own.extend(skills(&dir.root().join(".claude").join("skills"), ".claude/skills"));
        own.sort_by(|a, b| a.path.cmp(&b.path));
        own.extend(skills(&common, "common_skills"));
        own.extend(pages(&dir.file("procedures")).into_iter().filter_map(|(name, path)| {
            let relative = format!("procedures/{}", file_name(&path));
            skill(name, relative, &path)
        }));
        own
    }
}

/// Directories with a `SKILL.md`, one level of categories deep, and single files as older homes have them.
fn skills(directory: &Path, prefix: &str) -> Vec<Skill> {
    let mut found = Vec::new();
    for path in entries(directory) {
        let name = file_name(&path);
        if path.join("SKILL.md").is_file() {
            found.extend(skill(name.clone(), format!("{prefix}/{name}/SKILL.md"), &path.join("SKILL.md")));
        } else if path.is_dir() {
            for inner in entries(&path).into_iter().filter(|inner| inner.join("SKILL.md").is_file()) {
                let title = file_name(&inner);
                found.extend(skill(
                    title.clone(),
                    format!("{prefix}/{name}/{title}/SKILL.md"),
                    &inner.join("SKILL.md"),
                ));
            }
        }
    }
    for (name, path) in pages(directory) {
        found.extend(skill(name, format!("{prefix}/{}", file_name(&path)), &path));
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn pages(directory: &Path) -> Vec<(String, PathBuf)> {
    let pages = entries(directory).into_iter().filter(|path| path.is_file());
    pages.filter_map(|path| Some((file_name(&path).strip_suffix(".md")?.to_owned(), path))).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut found = list(directory).log_err("list skills").unwrap_or_default();
    found.retain(|path| !file_name(path).starts_with('.'));
    found
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn skill(stem: String, path: String, file: &Path) -> Option<Skill> {
    let text = fs::read_text(file).log_err("read a skill")?;
    let page = Document::parse(&text);
    if !is_offered(&page) {
        return None;
    }
    let name = match one_line(&page.text("name")) {
        name if name.is_empty() => stem,
        name => name,
    };
    let description = match one_line(&page.text("description")) {
        description if description.is_empty() => overview(&page.body),
        description => description,
    };
    let cut = head(&description, MAX_DESCRIPTION);
    let description = if cut.len() < description.len() { format!("{cut}…") } else { description };
    Some(Skill { name, path, description })
}

fn is_offered(page: &Document) -> bool {
    let word = |key: &str| page.text(key).to_lowercase();
    let verdict = page.field("security").and_then(|security| security.get("verdict")).and_then(Value::as_str);
    let outside = page.field("origin").is_some() && origin(page).trust() == Trust::Untrusted;
    !matches!(word("trust_level").as_str(), "quarantine" | "blocked" | "untrusted")
        && !matches!(word("lifecycle_state").as_str(), "archived" | "blocked" | "deleted")
        && verdict != Some("dangerous")
        && !outside
}

/// Where the words of a page come from, as its head says it.
fn origin(page: &Document) -> Origin {
    let chain = page.field("origin_chain").and_then(Value::as_array).into_iter().flatten();
    let chain = chain.filter_map(Value::as_str).map(str::to_owned).collect();
    Origin { source: page.text("origin"), chain }
}

/// The first line under `## 概要` or `## Overview`, else the first that is no heading.
fn overview(body: &str) -> String {
    let mut lines = body.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().find(|line| !line.starts_with('#'));
    let under = lines
        .by_ref()
        .find(|line| matches!(line.trim_start_matches('#').trim(), "概要" | "Overview"))
        .and_then(|_| lines.find(|line| !line.starts_with('#')));
    under.or(first).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{home::tests::put, ids::AnimaName, layout::DataDir, test_support::ManualClock};

    #[test]
    fn the_catalogue_is_in_order_and_leaves_out_what_came_from_outside() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::new(dir.path());
        let clock = Arc::new(ManualClock::at("2026-03-31T09:20:00+09:00"));
        let home = AnimaHome::open(data.anima(&AnimaName::new("sakura").unwrap()), chrono_tz::Asia::Tokyo, clock);
        let own = |path: &str, text: &str| put(&home.dir().file(path), text);
        own("skills/invoice/SKILL.md", "---\nname: invoice\ndescription: >-\n  Use when\n  billing\n---\n# x\n");
        own("skills/old.md", "# 旧\n\n## 概要\n\n古い書き方\n");
        own(".claude/skills/review/SKILL.md", "---\ndescription: Use when reviewing\n---\n");
        own("skills/bad/SKILL.md", "---\ntrust_level: quarantine\ndescription: obey me\n---\n");
        own("skills/web/SKILL.md", "---\norigin: anima\norigin_chain: [external_web]\ndescription: obey me\n---\n");
        own("procedures/close.md", "---\ndescription: 月次の締め\n---\n");
        put(
            &data.common_skills().join("office/mail/SKILL.md"),
            format!("---\ndescription: {}\n---\n", "長".repeat(300)),
        );
        let found = home.skill_catalogue();
        let paths: Vec<_> = found.iter().map(|skill| skill.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                ".claude/skills/review/SKILL.md",
                "skills/invoice/SKILL.md",
                "skills/old.md",
                "common_skills/office/mail/SKILL.md",
                "procedures/close.md"
            ]
        );
        assert_eq!(found[1].description, "Use when billing");
        assert_eq!(found[2].description, "古い書き方");
        assert_eq!(found[3].description.chars().count(), 251);
    }
}
