//! Changes keep what they are not about; whoever goes can come back.

use super::*;
use crate::{
    config::ConfigFile,
    creation::{NewAnima, Origin, Shipped, create, init},
    error::Fault,
    i18n::Locale,
};

fn organisation() -> (tempfile::TempDir, DataDir) {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::new(dir.path());
    let shipped = Shipped::new(Locale::En);
    init(&data, &shipped, false).unwrap();
    for (name, supervisor) in [("alder", None), ("wren", Some("alder")), ("juno", Some("wren"))] {
        let new = NewAnima {
            name: Some(name.into()),
            supervisor: supervisor.map(str::to_owned),
            ..NewAnima::new(Origin::Blank)
        };
        create(&data, &shipped, &new).unwrap();
    }
    (dir, data)
}

fn anima(name: &str) -> AnimaName {
    AnimaName::new(name).unwrap()
}

fn status(data: &DataDir, name: &str) -> Value {
    serde_json::from_str(&fs::read_text(&data.anima(&anima(name)).status()).unwrap()).unwrap()
}

#[test]
fn another_model_takes_what_belonged_to_the_old_one() {
    let (_dir, data) = organisation();
    let wren = anima("wren");
    let model = |model: &str| ModelId::new(model).unwrap();
    ConfigFile::set(&data, "animas.wren.execution_mode", "S").unwrap();
    ConfigFile::set(&data, "animas.wren.x_future", "1").unwrap_err();
    Status::set(&data.anima(&wren), "x_future", Some(1.into())).unwrap();
    let same = set_model(&data, &wren, &model("claude-opus-4-6"), None).unwrap();
    assert!(same.cleared.is_empty());
    assert_eq!(status(&data, "wren")["execution_mode"], "S");
    let other = set_model(&data, &wren, &model("openai/x"), Some("work")).unwrap();
    assert_eq!(other.cleared, ["execution_mode"]);
    let now = status(&data, "wren");
    assert_eq!((&now["model"], &now["credential"], &now["x_future"]), (&json!("openai/x"), &json!("work"), &json!(1)));
    set_background_model(&data, &wren, Some(&model("ollama/y")), Some("here")).unwrap();
    assert_eq!(status(&data, "wren")["background_credential"], "here");
    set_background_model(&data, &wren, None, None).unwrap();
    assert_eq!(status(&data, "wren").get("background_model"), None);
    set_enabled(&data, &wren, false).unwrap();
    assert_eq!(status(&data, "wren")["enabled"], false);
    let error = set_enabled(&data, &anima("wran"), true).unwrap_err();
    assert_eq!((error.code(), error.kind().exit_code()), ("unknown_anima_near", 5));
}

#[test]
fn nobody_comes_to_report_to_itself() {
    let (_dir, data) = organisation();
    assert!(matches!(set_supervisor(&data, &anima("alder"), Some(&anima("juno"))), Err(CreateError::Circle { .. })));
    assert!(matches!(set_supervisor(&data, &anima("juno"), Some(&anima("juno"))), Err(CreateError::Circle { .. })));
    assert!(matches!(
        set_supervisor(&data, &anima("juno"), Some(&anima("x"))),
        Err(CreateError::UnknownSupervisor { .. })
    ));
    set_supervisor(&data, &anima("juno"), None).unwrap();
    set_supervisor(&data, &anima("alder"), Some(&anima("juno"))).unwrap();
    assert_eq!(ConfigFile::load(&data).unwrap().settings.animas["alder"].supervisor.as_deref(), Some("juno"));
}

#[test]
fn whoever_is_put_away_can_come_back() {
    let (_dir, data) = organisation();
    let wren = anima("wren");
    fs::write_atomic(&data.anima(&wren).file("knowledge/a.md"), b"remembered", Privacy::Normal).unwrap();
    let at = DateTime::parse_from_rfc3339("2026-03-31T09:15:02+09:00").unwrap();
    let gone = delete(&data, &wren, "moved to another company", &at).unwrap();
    assert_eq!(gone.orphans, [anima("juno")]);
    assert!(gone.path.ends_with("archive/animas/wren-20260331-091502"));
    assert!(!data.anima(&wren).root().exists());
    assert!(!ConfigFile::load(&data).unwrap().settings.animas.contains_key("wren"));
    let note: Value = fs::read_json(&gone.path.with_extension("json")).unwrap();
    assert_eq!(
        (&note["reason"], &note["archived_at"]),
        (&json!("moved to another company"), &json!("2026-03-31T09:15:02+09:00"))
    );
    assert!(delete(&data, &wren, "again", &at).is_err());
    assert_eq!(restore(&data, &gone.path).unwrap(), wren);
    assert_eq!(fs::read_text(&data.anima(&wren).file("knowledge/a.md")).unwrap(), "remembered");
    assert!(ConfigFile::load(&data).unwrap().settings.animas.contains_key("wren"));
}
