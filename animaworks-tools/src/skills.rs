//! `create_skill`: a page that teaches how something is done (memory spec §9).

use std::{collections::BTreeSet, sync::Arc};

use animaworks_core::{
    Locale, MemoryError, MemoryPath, MemoryStore, MemoryWrite, Origin, Tool, ToolContext, ToolError, ToolOutput,
    TriggerKind, Trust, Typed, TypedTool,
    frontmatter::Document,
    home::{AnimaHome, text::one_line},
    memory::{Etag, WriteMode},
    t,
    tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{fault, memory::for_model};

/// The longest description and the longest body, in characters.
const MAX_DESCRIPTION: usize = 1000;
const MAX_BODY: usize = 100_000;
/// Files beside a skill.
const MAX_FILES: usize = 20;

/// `create_skill` over one Anima's memory.
pub fn skill_tools(home: &AnimaHome, memory: &Arc<dyn MemoryStore>, locale: Locale) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Typed::localized(CreateSkill { home: home.clone(), memory: memory.clone() }, locale))]
}

/// Whose skill it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Location {
    #[default]
    Personal,
    Common,
}

/// A file beside the skill.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
struct Beside {
    filename: String,
    content: String,
}

/// What `create_skill` takes.
#[derive(Debug, Deserialize, JsonSchema)]
struct SkillArgs {
    skill_name: String,
    description: String,
    body: String,
    #[serde(default)]
    location: Location,
    #[serde(default)]
    references: Vec<Beside>,
    #[serde(default)]
    templates: Vec<Beside>,
    #[serde(default)]
    allowed_tools: Vec<String>,
}

#[derive(Debug)]
struct CreateSkill {
    home: AnimaHome,
    memory: Arc<dyn MemoryStore>,
}

impl TypedTool for CreateSkill {
    const NAME: &'static str = "create_skill";
    const EFFECT: Effect = Effect::Remembers;
    type Args = SkillArgs;

    async fn run(&self, args: SkillArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let locale = cx.locale;
        let description = one_line(&args.description);
        check(&args, &description, locale).map_err(|problem| fault::invalid(Self::NAME, problem))?;
        let from_outside = cx.floor.trust() == Trust::Untrusted;
        if args.location == Location::Common {
            let plans = matches!(cx.trigger, TriggerKind::Heartbeat | TriggerKind::Consolidation);
            if from_outside || plans {
                let reason = if plans {
                    t!(locale, "tools.create_skill.not_now")
                } else {
                    t!(locale, "tools.create_skill.from_outside")
                };
                return Err(fault::failed(
                    "PermissionDenied",
                    reason,
                    t!(locale, "tools.create_skill.personal_instead"),
                ));
            }
        }
        let base = match args.location {
            Location::Personal => format!("skills/{}", args.skill_name),
            Location::Common => format!("common_skills/{}", args.skill_name),
        };
        let path = inside(&format!("{base}/SKILL.md"))?;
        let (expect, made) = self.existing(&path, &args.skill_name, cx).await?;
        let now = self.home.stamp_seconds();
        let origin = cx.floor.relayed_by(Origin::ANIMA);

        let mut page = Document::new(format!("{}\n", args.body.trim()));
        page.set("name", args.skill_name.clone());
        page.set("description", description);
        page.set("created_at", made.unwrap_or_else(|| now.clone()));
        page.set("updated_at", now);
        page.set("owner_anima", cx.anima.as_str());
        if !args.allowed_tools.is_empty() {
            page.set("allowed_tools", json!(args.allowed_tools));
        }
        if from_outside {
            // a catalogue is read as instructions, so a person looks at it first
            page.set("trust_level", "quarantine");
        }
        page.set("origin", origin.source.clone());
        page.set("origin_chain", json!(origin.chain));

        // what lies beside comes first: a page never points to what is not there
        for (kind, files) in [("references", &args.references), ("templates", &args.templates)] {
            for file in files {
                let path = inside(&format!("{base}/{kind}/{}", file.filename))?;
                self.put(path, file.content.clone(), None, cx).await?;
            }
        }
        self.put(path.clone(), page.to_string(), Some(expect), cx).await?;
        let mut text = t!(locale, "tools.create_skill.done", path = path);
        if from_outside {
            text.push('\n');
            text.push_str(&t!(locale, "tools.create_skill.quarantine"));
        }
        Ok(ToolOutput::text(text).with_data(json!({"path": path, "offered": !from_outside})))
    }
}

impl CreateSkill {
    /// The state of a skill that is there and ours, with the day it was made. Somebody else's is not replaced.
    async fn existing(
        &self,
        path: &MemoryPath,
        name: &str,
        cx: &ToolContext,
    ) -> Result<(Etag, Option<String>), ToolError> {
        let file = match self.memory.read(path).await {
            Ok(file) => file,
            Err(MemoryError::NotFound { .. }) => return Ok((Etag::absent(), None)),
            Err(error) => return Err(for_model(error, cx.locale)),
        };
        let page = Document::parse(&file.text);
        if page.text("owner_anima") != cx.anima.as_str() {
            return Err(fault::failed(
                "StateError",
                t!(cx.locale, "tools.create_skill.taken", name = name),
                t!(cx.locale, "tools.create_skill.taken_instead", path = path),
            ));
        }
        let made = page.text("created_at");
        Ok((file.etag, (!made.is_empty()).then_some(made)))
    }

    async fn put(
        &self,
        path: MemoryPath,
        text: String,
        expect: Option<Etag>,
        cx: &ToolContext,
    ) -> Result<(), ToolError> {
        let write = MemoryWrite { path, text, mode: WriteMode::Overwrite, expect, origin: cx.floor.clone() };
        self.memory.write(write).await.map(|_| ()).map_err(|error| for_model(error, cx.locale))
    }
}

fn check(args: &SkillArgs, description: &str, locale: Locale) -> Result<(), String> {
    let name = args.skill_name.as_str();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if !begins || name.len() > 64 || !name.chars().all(plain) {
        return Err(t!(locale, "tools.create_skill.name"));
    }
    if description.is_empty() || description.chars().count() > MAX_DESCRIPTION {
        return Err(t!(locale, "tools.create_skill.description", max = MAX_DESCRIPTION));
    }
    let body = args.body.trim();
    if body.is_empty() || body.chars().count() > MAX_BODY {
        return Err(t!(locale, "tools.create_skill.body", max = MAX_BODY));
    }
    let files: Vec<&Beside> = args.references.iter().chain(&args.templates).collect();
    let simple = |name: &str| {
        !name.starts_with('.')
            && (1..=100).contains(&name.chars().count())
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    let unique: BTreeSet<_> = args.references.iter().map(|file| &file.filename).collect();
    let also: BTreeSet<_> = args.templates.iter().map(|file| &file.filename).collect();
    let all_differ = unique.len() == args.references.len() && also.len() == args.templates.len();
    let fits = files.len() <= MAX_FILES && files.iter().all(|file| file.content.chars().count() <= MAX_BODY);
    if !all_differ || !fits || !files.iter().all(|file| simple(&file.filename)) {
        return Err(t!(locale, "tools.create_skill.files", max = MAX_FILES));
    }
    Ok(())
}

fn inside(path: &str) -> Result<MemoryPath, ToolError> {
    MemoryPath::new(path).map_err(|error| fault::invalid("create_skill", error.to_string()))
}

#[cfg(test)]
mod tests {
    use animaworks_core::{
        gate::{Gate, OwnMemoryOnly},
        test_support::FakeMemory,
    };
    use serde_json::Value;

    use super::*;
    use crate::messages::tests::{Office, call, error_type};

    struct Shelf {
        office: Office,
        memory: Arc<dyn MemoryStore>,
        gate: Gate,
    }

    fn shelf() -> Shelf {
        let office = Office::open();
        let memory: Arc<dyn MemoryStore> = Arc::new(FakeMemory::default());
        let gate = Gate::new(skill_tools(&office.services.home, &memory, Locale::En), Arc::new(OwnMemoryOnly));
        Shelf { office, memory, gate }
    }

    fn skill(name: &str) -> Value {
        json!({"skill_name": name, "description": "月次の締め。\nUse when closing: the month", "body": "# 手順\n\n1. 集める",
            "references": [{"filename": "表.md", "content": "a"}], "allowed_tools": ["Read"]})
    }

    async fn page(shelf: &Shelf, path: &str) -> Document {
        Document::parse(&shelf.memory.read(&MemoryPath::new(path).unwrap()).await.unwrap().text)
    }

    #[tokio::test]
    async fn a_skill_can_be_read_by_any_program_that_knows_the_form() {
        let s = shelf();
        let made = call(&s.gate, &s.office.cx("t1"), "create_skill", skill("monthly-close")).await;
        assert!(!made.is_error, "{}", made.text);
        let written = page(&s, "skills/monthly-close/SKILL.md").await;
        assert_eq!(written.text("name"), "monthly-close");
        assert_eq!(written.text("description"), "月次の締め。 Use when closing: the month");
        assert_eq!((written.body.as_str(), written.field("trust_level")), ("# 手順\n\n1. 集める\n", None));
        assert_eq!(page(&s, "skills/monthly-close/references/表.md").await.body, "a");
        s.office.clock.advance(std::time::Duration::from_secs(86_400));
        assert!(!call(&s.gate, &s.office.cx("t2"), "create_skill", skill("monthly-close")).await.is_error);
        let again = page(&s, "skills/monthly-close/SKILL.md").await;
        assert!(
            again.text("created_at").starts_with("2026-03-31") && again.text("updated_at").starts_with("2026-04-01")
        );
    }

    #[tokio::test]
    async fn a_skill_made_of_words_from_outside_is_kept_and_not_offered() {
        let s = shelf();
        let cx = ToolContext { floor: Origin::of(Origin::EXTERNAL_WEB), ..s.office.cx("t1") };
        let made = call(&s.gate, &cx, "create_skill", skill("web")).await;
        assert!(made.text.contains("person"), "{}", made.text);
        let path = "skills/web/SKILL.md";
        assert_eq!(page(&s, path).await.text("trust_level"), "quarantine");
        let file = s.office.services.home.dir().file(path);
        animaworks_core::fs::write_atomic(
            &file,
            page(&s, path).await.to_string().as_bytes(),
            animaworks_core::fs::Privacy::Normal,
        )
        .unwrap();
        assert!(s.office.services.home.skill_catalogue().is_empty());
        let mut common = skill("web");
        common["location"] = json!("common");
        assert_eq!(error_type(&call(&s.gate, &cx, "create_skill", common.clone()).await), "PermissionDenied");
        let beat = ToolContext { trigger: TriggerKind::Heartbeat, ..s.office.cx("t1") };
        assert_eq!(error_type(&call(&s.gate, &beat, "create_skill", common.clone()).await), "PermissionDenied");
        assert!(!call(&s.gate, &s.office.cx("t1"), "create_skill", common).await.is_error);
    }

    #[tokio::test]
    async fn what_does_not_fit_is_refused_and_others_skills_stay() {
        let s = shelf();
        let cx = s.office.cx("t1");
        for name in ["", "../x", "Big", "-x", "a b", "x/y", &"a".repeat(65)] {
            assert_eq!(
                error_type(&call(&s.gate, &cx, "create_skill", skill(name)).await),
                "InvalidArguments",
                "{name}"
            );
        }
        for file in ["../x.md", ".env", "a/b", ""] {
            let mut args = skill("x");
            args["templates"] = json!([{"filename": file, "content": "x"}]);
            assert_eq!(error_type(&call(&s.gate, &cx, "create_skill", args).await), "InvalidArguments", "{file}");
        }
        let path = MemoryPath::new("common_skills/mail/SKILL.md").unwrap();
        let text = "---\nname: mail\nowner_anima: yuki\n---\n".to_owned();
        let write = MemoryWrite { path, text, mode: WriteMode::Overwrite, expect: None, origin: Origin::anima() };
        s.memory.write(write).await.unwrap();
        let mut args = skill("mail");
        args["location"] = json!("common");
        assert_eq!(error_type(&call(&s.gate, &cx, "create_skill", args).await), "StateError");
    }

    #[test]
    fn every_argument_is_described_in_both_languages() {
        let s = shelf();
        for locale in Locale::ALL {
            crate::tests::described(skill_tools(&s.office.services.home, &s.memory, locale)[0].spec());
        }
    }
}
