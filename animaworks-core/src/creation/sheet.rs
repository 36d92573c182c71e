//! Character sheets: one Markdown file that describes a person, in Japanese or English (exec spec §10.2).

use super::CreateError;

/// A character sheet, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sheet {
    /// What the title says: `sakura` of `# Character: sakura`.
    pub title: Option<String>,
    /// The name, in lower case.
    pub name: Option<String>,
    /// Who it reports to.
    pub supervisor: Named,
    /// Its role.
    pub role: Option<String>,
    /// What it is good at.
    pub speciality: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// The mode, instead of the one that follows from the model.
    pub execution_mode: Option<String>,
    /// The entry of `credentials`.
    pub credential: Option<String>,
    /// `identity.md`.
    pub identity: String,
    /// `injection.md`.
    pub injection: String,
    /// `permissions.md`.
    pub permissions: Option<String>,
    /// `heartbeat.md`.
    pub heartbeat: Option<String>,
    /// `cron.md`.
    pub cron: Option<String>,
}

/// A name that can be left out, or denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Named {
    /// Nothing is said.
    #[default]
    Unsaid,
    /// Nobody, and on purpose.
    Nobody,
    /// This one.
    Is(String),
}

/// A part that every sheet must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The table of names.
    Basic,
    /// Who it is.
    Personality,
    /// What it does.
    Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Basic,
    Personality,
    Role,
    Permissions,
    Heartbeat,
    Cron,
    Routine,
    Appearance,
    Other,
}

struct Section<'a> {
    kind: Kind,
    heading: &'a str,
    body: String,
}

impl Sheet {
    /// Takes a sheet apart.
    ///
    /// # Errors
    ///
    /// [`CreateError::Incomplete`] with everything that is missing.
    pub fn parse(text: &str) -> Result<Self, CreateError> {
        let (title, sections) = split(text.trim_start_matches('\u{feff}'));
        let mut missing = Vec::new();
        for (kind, part) in
            [(Kind::Basic, Part::Basic), (Kind::Personality, Part::Personality), (Kind::Role, Part::Role)]
        {
            if !sections.iter().any(|section| section.kind == kind && !section.body.is_empty()) {
                missing.push(part);
            }
        }
        if !missing.is_empty() {
            return Err(CreateError::Incomplete(missing));
        }
        let mut sheet = Self { title, ..Self::default() };
        let mut identity = Vec::new();
        let mut injection = Vec::new();
        for section in &sections {
            let whole = format!("## {}\n\n{}", section.heading, section.body);
            match section.kind {
                Kind::Basic => {
                    sheet.basic(&section.body);
                    identity.push(whole);
                }
                Kind::Personality | Kind::Appearance => identity.push(whole),
                Kind::Role => injection.push(whole),
                Kind::Permissions => sheet.permissions = own_file(&section.body),
                Kind::Heartbeat => sheet.heartbeat = own_file(&section.body),
                Kind::Cron => sheet.cron = own_file(&section.body),
                Kind::Routine if section.body.contains("schedule") => sheet.cron = own_file(&section.body),
                Kind::Routine => sheet.heartbeat = own_file(&section.body),
                // it stays in character_sheet.md
                Kind::Other => {}
            }
        }
        sheet.identity = identity.join("\n\n");
        sheet.injection = injection.join("\n\n");
        Ok(sheet)
    }

    fn basic(&mut self, body: &str) {
        for (key, value) in pairs(body) {
            let said = said(&value);
            match key.to_lowercase().as_str() {
                "英名" | "名前" | "name" if self.name.is_none() => self.name = said.map(|name| name.to_lowercase()),
                "上司" | "supervisor" => self.supervisor = said.map_or(Named::Nobody, Named::Is),
                "ロール" | "role" => self.role = said.map(|role| role.to_lowercase()),
                "専門" | "speciality" | "specialty" => self.speciality = said,
                "モデル" | "model" => self.model = said,
                "実行モード" | "execution mode" | "execution_mode" => self.execution_mode = said,
                "credential" | "認証情報" | "クレデンシャル" => self.credential = said,
                _ => {}
            }
        }
    }
}

/// The supervisor that the table of an `identity.md` names, as it was written before `status.json` had it.
pub(crate) fn supervisor_in(identity: &str) -> Option<String> {
    let named =
        pairs(identity).into_iter().find(|(key, _)| matches!(key.to_lowercase().as_str(), "上司" | "supervisor"))?;
    said(&named.1)
}

/// The title and the sections; headings inside code fences are text.
fn split(text: &str) -> (Option<String>, Vec<Section<'_>>) {
    let mut title = None;
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        let heading = if fence.is_none() && mark.is_none() { heading(line) } else { None };
        match (heading, sections.last_mut()) {
            (Some((1, words)), None) if title.is_none() => title = title_name(words),
            (Some((2, words)), _) => {
                let heading = words.split('→').next().unwrap_or(words).trim_end_matches(['（', '(', ' ', '　']);
                sections.push(Section { kind: kind(words), heading, body: String::new() });
            }
            (_, Some(section)) => {
                section.body.push_str(line);
                section.body.push('\n');
            }
            (_, None) => {}
        }
    }
    for section in &mut sections {
        section.body = section.body.trim().trim_end_matches("\n---").trim().to_owned();
    }
    (title, sections)
}

/// The level and the words of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|b| *b == b'#').count();
    let words = line.get(level..)?.strip_prefix([' ', '\t', '　'])?;
    (level > 0).then(|| (level, words.trim()))
}

fn title_name(words: &str) -> Option<String> {
    let name = words.rsplit([':', '：']).next().unwrap_or(words).trim();
    (!name.is_empty()).then(|| name.to_owned())
}

fn kind(heading: &str) -> Kind {
    // `→ identity.md` decides, whatever stands before it
    let lower = heading.to_lowercase();
    for (file, kind) in [
        ("identity.md", Kind::Personality),
        ("injection.md", Kind::Role),
        ("permissions.md", Kind::Permissions),
        ("heartbeat.md", Kind::Heartbeat),
        ("cron.md", Kind::Cron),
    ] {
        if lower.contains(file) {
            return kind;
        }
    }
    let words = lower.split(['（', '(', '→']).next().unwrap_or_default().trim();
    match words {
        "基本情報" | "基本プロフィール" | "basic information" | "basic info" | "basic profile" => {
            Kind::Basic
        }
        "人格" | "性格" | "性格・キャラクター" | "personality" => Kind::Personality,
        "役割・行動方針" | "役割" | "行動方針" | "role & guidelines" | "role and guidelines" | "role" => {
            Kind::Role
        }
        "権限" | "permissions" => Kind::Permissions,
        "heartbeat" | "ハートビート" | "定期巡回" => Kind::Heartbeat,
        "cron" | "定時タスク" => Kind::Cron,
        "定期業務" | "routine" | "routines" | "heartbeat / cron" | "定期業務 / heartbeat / cron" => {
            Kind::Routine
        }
        "外見" | "容姿" | "appearance" => Kind::Appearance,
        _ => Kind::Other,
    }
}

/// The body of a section as a file of its own: its headings move up one level, where jobs and parts are expected.
fn own_file(body: &str) -> Option<String> {
    if body.is_empty() {
        return None;
    }
    let lines = body.lines().map(|line| if line.starts_with("### ") { line.get(1..).unwrap_or(line) } else { line });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// Keys and values of a table (`| key | value |`) or a list (`- key: value`).
fn pairs(text: &str) -> Vec<(String, String)> {
    text.lines()
        .filter_map(|line| {
            let line = line.trim();
            let (key, value) = if let Some(row) = line.strip_prefix('|') {
                let mut cells = row.trim_end_matches('|').split('|');
                (cells.next()?, cells.next()?)
            } else {
                let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?;
                item.split_once([':', '：'])?
            };
            Some((plain(key), plain(value)))
        })
        .collect()
}

fn plain(cell: &str) -> String {
    cell.trim().trim_matches(['*', '`', '_']).trim().to_owned()
}

/// A value, unless it says that there is none.
fn said(value: &str) -> Option<String> {
    let inner = value.trim_matches(['(', ')', '（', '）']).trim();
    let none = inner.is_empty()
        || matches!(inner.to_lowercase().as_str(), "なし" | "無し" | "none" | "null" | "n/a")
        || inner.chars().all(|c| matches!(c, '-' | 'ー' | '—' | '–' | '―'));
    (!none).then(|| value.to_owned())
}

#[cfg(test)]
mod tests;
