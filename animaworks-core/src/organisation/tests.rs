//! Lines, circles and what is written about them.

use serde_json::{Value, json};

use super::*;

fn organisation(statuses: &[(&str, &str)]) -> (tempfile::TempDir, DataDir) {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::new(dir.path());
    for (name, status) in statuses {
        let anima = data.anima(&anima(name));
        fs_err::create_dir_all(anima.root()).unwrap();
        fs_err::write(anima.status(), status).unwrap();
    }
    (dir, data)
}

fn anima(name: &str) -> AnimaName {
    AnimaName::new(name).unwrap()
}

fn words(names: Vec<&AnimaName>) -> Vec<&str> {
    names.into_iter().map(AnimaName::as_str).collect()
}

#[test]
fn the_lines_follow_the_supervisors() {
    let (_dir, data) = organisation(&[
        ("sakura", r#"{"supervisor": null, "speciality": "取りまとめ"}"#),
        ("rin", r#"{"supervisor": "sakura"}"#),
        ("aoi", r#"{"supervisor": "sakura", "enabled": false}"#),
        ("ume", r#"{"supervisor": "rin"}"#),
        ("hana", r#"{"supervisor": ""}"#),
    ]);
    let all = Organisation::load(&data).unwrap();
    assert!(all.problems().is_empty(), "{:?}", all.problems());
    assert_eq!(words(all.subordinates(&anima("sakura"))), ["aoi", "rin"]);
    assert_eq!(words(all.descendants(&anima("sakura"))), ["aoi", "rin", "ume"]);
    assert_eq!(words(all.superiors(&anima("ume"))), ["rin", "sakura"]);
    assert_eq!(words(all.peers(&anima("rin"))), ["aoi"]);
    assert_eq!(words(all.top_level()), ["hana", "sakura"]);
    assert!(all.peers(&anima("sakura")).is_empty());
    assert!(all.is_above(&anima("sakura"), &anima("ume")) && !all.is_above(&anima("ume"), &anima("sakura")));
    assert!(all.would_be_circle(&anima("sakura"), &anima("ume")));
    assert!(!all.would_be_circle(&anima("ume"), &anima("sakura")));
    assert!(!all.member(&anima("aoi")).unwrap().enabled);
    assert_eq!(all.near("sakur"), ["sakura"]);
}

#[test]
fn circles_are_reported_and_not_followed() {
    let (_dir, data) = organisation(&[
        ("aoi", r#"{"supervisor": "rin"}"#),
        ("rin", r#"{"supervisor": "ume"}"#),
        ("ume", r#"{"supervisor": "aoi"}"#),
        ("self", r#"{"supervisor": "self"}"#),
        ("below", r#"{"supervisor": "aoi"}"#),
    ]);
    let all = Organisation::load(&data).unwrap();
    let mut circles: Vec<Vec<&str>> = all
        .problems()
        .iter()
        .map(|problem| match problem {
            OrgProblem::Cycle(animas) => animas.iter().map(AnimaName::as_str).collect(),
            other => panic!("{other:?}"),
        })
        .collect();
    circles.sort();
    assert_eq!(circles, [vec!["aoi", "rin", "ume"], vec!["self"]]);
    assert_eq!(words(all.superiors(&anima("below"))), ["aoi"]);
    assert_eq!(words(all.descendants(&anima("aoi"))), ["below"]);
}

#[test]
fn a_wrong_supervisor_and_a_broken_file_are_said_and_stop_nobody() {
    let (_dir, data) = organisation(&[
        ("sakura", "{}"),
        ("rin", r#"{"supervisor": "sakrua"}"#),
        ("aoi", "{\n  \"supervisor\": \"sakura\",\n}"),
    ]);
    fs_err::create_dir_all(data.animas().join(".tmp-x")).unwrap();
    let all = Organisation::load(&data).unwrap();
    let said: Vec<_> = all.problems().iter().map(|problem| problem.text(Locale::En)).collect();
    assert!(said.iter().any(|text| text.contains("sakrua") && text.contains("sakura?")), "{said:?}");
    assert!(said.iter().any(|text| text.contains("status.json:3:1")), "{said:?}");
    assert_eq!(words(all.top_level()), ["aoi", "rin", "sakura"]);
    assert!(!all.member(&anima("aoi")).unwrap().enabled);
}

#[test]
fn the_layout_in_config_follows_and_other_keys_stay() {
    let (_dir, data) = organisation(&[
        ("sakura", r#"{"speciality": "取りまとめ"}"#),
        ("rin", r#"{"supervisor": "sakura"}"#),
        ("aoi", r#"{"supervisor": "ume"}"#),
        ("ume", r#"{"supervisor": "aoi"}"#),
        ("old", "{}"),
    ]);
    fs_err::write(
        data.anima(&anima("old")).file("identity.md"),
        "# old\n\n| 項目 | 設定 |\n|---|---|\n| 上司 | rin |\n",
    )
    .unwrap();
    let config = json!({"x": 1, "animas": {
        "rin": {"company": "x", "supervisor": null, "speciality": null},
        "aoi": {"supervisor": "as before"},
        "gone": {"supervisor": "rin"}
    }});
    fs_err::write(data.config(), config.to_string()).unwrap();
    let synced = sync(&data).unwrap();
    assert_eq!(
        (synced.changed, synced.removed),
        (vec!["old".into(), "rin".into(), "sakura".into()], vec!["gone".into()])
    );
    let written: Value = serde_json::from_str(&fs_err::read_to_string(data.config()).unwrap()).unwrap();
    assert_eq!(
        written,
        json!({"x": 1, "animas": {
            "rin": {"company": "x", "supervisor": "sakura", "speciality": null},
            "aoi": {"supervisor": "as before"},
            "old": {"supervisor": "rin", "speciality": null},
            "sakura": {"supervisor": null, "speciality": "取りまとめ"}
        }})
    );
    let again = sync(&data).unwrap();
    assert!(again.changed.is_empty() && again.removed.is_empty());
}

#[test]
fn without_a_config_nothing_is_written() {
    let (_dir, data) = organisation(&[("sakura", "{}")]);
    sync(&data).unwrap();
    assert!(!data.config().exists());
}
