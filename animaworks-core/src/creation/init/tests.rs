//! A new organisation, begun twice, updated and mended.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::{config::Settings, i18n::Locale};

fn mode(path: &Path) -> u32 {
    fs_err::metadata(path).unwrap().permissions().mode() & 0o777
}

/// An operator's own tree of texts, whose `company/vision.md` says `vision`.
fn own(dir: &Path, vision: &str) -> Shipped {
    fs::write_atomic(&dir.join("en/company/vision.md"), vision.as_bytes(), Privacy::Normal).unwrap();
    Shipped { locale: Locale::En, directory: Some(dir.to_owned()) }
}

#[test]
fn a_new_organisation_is_complete_private_and_in_its_language() {
    for locale in Locale::ALL {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::new(dir.path().join("aw"));
        assert!(!is_initialised(&data));
        let report = init(&data, &Shipped::new(locale), false).unwrap();
        assert!(!report.existed && is_initialised(&data));
        assert_eq!(
            (mode(data.root()), mode(&data.shared().join("inbox")), mode(&data.config())),
            (0o700, 0o700, 0o600)
        );
        for path in [
            "models.json",
            ".ragignore",
            "company/vision.md",
            "common_knowledge/00_index.md",
            "common_knowledge/organization/structure.md",
            "prompts/behavior_rules.md",
            "shared/channels/general.jsonl",
            "shared/channels/ops.jsonl",
            "shared/users",
            "archive",
            "tmp/attachments",
        ] {
            assert!(data.root().join(path).exists(), "{path}");
        }
        let (settings, problems) = Settings::check(&data).unwrap();
        assert_eq!((settings.locale, problems), (Some(locale), vec![]));
        let index = fs::read_text(&data.common_knowledge().join("00_index.md")).unwrap();
        assert_eq!(index.contains('困'), locale == Locale::Ja);
    }
}

#[test]
fn an_unfinished_one_is_finished_and_a_finished_one_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::new(dir.path());
    let shipped = Shipped::new(Locale::En);
    init(&data, &shipped, false).unwrap();
    fs_err::remove_file(data.config()).unwrap();
    fs_err::write(data.models(), r#"{"x": {}}"#).unwrap();
    fs_err::write(data.vision(), "ours").unwrap();
    let report = init(&data, &shipped, false).unwrap();
    assert!(!report.existed);
    assert_eq!(report.texts, Synced { kept: vec!["company/vision.md".into()], ..Synced::default() });
    fs_err::write(data.config(), r#"{"locale": "ja", "mine": 1}"#).unwrap();
    let report = init(&data, &shipped, true).unwrap();
    assert!(report.existed);
    assert_eq!(fs_err::read_to_string(data.config()).unwrap(), r#"{"locale": "ja", "mine": 1}"#);
    assert_eq!(fs_err::read_to_string(data.models()).unwrap(), r#"{"x": {}}"#);
}

#[test]
fn corrections_reach_what_nobody_changed_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let texts = tempfile::tempdir().unwrap();
    let data = DataDir::new(dir.path());
    init(&data, &own(texts.path(), "one"), false).unwrap();
    let vision = ["company/vision.md".to_owned()];
    let two = sync_templates(&data, &own(texts.path(), "two"), false).unwrap();
    assert_eq!(two, Synced { updated: vision.to_vec(), ..Synced::default() });
    fs_err::write(data.vision(), "ours").unwrap();
    let three = own(texts.path(), "three");
    assert_eq!(sync_templates(&data, &three, false).unwrap().kept, vision);
    assert_eq!(fs::read_text(&data.vision()).unwrap(), "ours");
    // asked for by force, the changed one goes to the archive
    assert_eq!(sync_templates(&data, &three, true).unwrap().replaced, vision);
    assert_eq!(fs::read_text(&data.vision()).unwrap(), "three");
    let aside: Vec<_> = fs_err::read_dir(data.archive().join("templates/company")).unwrap().collect();
    assert_eq!(fs::read_text(&aside[0].as_ref().unwrap().path()).unwrap(), "ours");
    // a removed one stays removed until it is asked for
    fs_err::remove_file(data.vision()).unwrap();
    assert_eq!(sync_templates(&data, &three, false).unwrap().kept, vision);
    assert_eq!(sync_templates(&data, &three, true).unwrap().added, vision);
}

#[test]
fn a_lost_list_of_shipped_texts_harms_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::new(dir.path());
    init(&data, &Shipped::new(Locale::En), false).unwrap();
    fs_err::write(data.root().join(".templates.json"), "{torn").unwrap();
    fs_err::write(data.vision(), "ours").unwrap();
    let synced = sync_templates(&data, &Shipped::new(Locale::En), false).unwrap();
    assert_eq!(synced, Synced { kept: vec!["company/vision.md".into()], ..Synced::default() });
}
