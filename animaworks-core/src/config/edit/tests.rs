//! `config.json` survives us: unknown keys, order, broken files; and says what is wrong with it.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// As the Python version writes it, with keys of later versions.
const PYTHON: &str = include_str!("python_config.json");

fn data(text: &str) -> (tempfile::TempDir, DataDir) {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::new(dir.path());
    if !text.is_empty() {
        fs_err::write(data.config(), text).unwrap();
    }
    (dir, data)
}

fn read(data: &DataDir) -> Value {
    serde_json::from_str(&fs_err::read_to_string(data.config()).unwrap()).unwrap()
}

#[test]
fn a_directory_of_the_python_version_opens_and_keeps_what_we_do_not_know() {
    let (_dir, data) = data(PYTHON);
    let file = ConfigFile::load(&data).unwrap();
    assert_eq!(file.problems, []);
    assert_eq!(file.settings.heartbeat.interval_minutes, 45);
    assert_eq!(file.settings.system.gateway.host, "0.0.0.0");
    assert_eq!(file.settings.animas["sakura"].aliases, ["さくら"]);
    ConfigFile::set(&data, "heartbeat.interval_minutes", "20").unwrap();
    ConfigFile::set(&data, "credentials.openai.base_url", "http://127.0.0.1:8000/v1").unwrap();
    let mut expected: Value = serde_json::from_str(PYTHON).unwrap();
    expected["heartbeat"]["interval_minutes"] = json!(20);
    expected["credentials"]["openai"] = json!({"base_url": "http://127.0.0.1:8000/v1"});
    assert_eq!(read(&data), expected);
    // places are kept too, so that a diff shows what was done
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&read(&data)), keys(&expected));
}

#[test]
fn the_file_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, data) = data("{}");
    ConfigFile::set(&data, "locale", "en").unwrap();
    assert_eq!(fs_err::metadata(data.config()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_broken_file_is_named_with_its_place_and_never_overwritten() {
    let broken = "{\n  \"locale\": \"ja\",\n  \"heartbeat\": {\"interval_minutes\": 30,}\n}\n";
    let (_dir, data) = data(broken);
    let error = ConfigFile::load(&data).unwrap_err();
    assert!(matches!(&error, FileError::Syntax { line: 3, .. }), "{error}");
    assert!(matches!(Settings::load(&data), Err(FileError::Syntax { .. })));
    assert!(ConfigFile::set(&data, "locale", "en").is_err());
    assert!(ConfigFile::edit(&data, serde_json::Map::clear).is_err());
    assert_eq!(fs_err::read_to_string(data.config()).unwrap(), broken);
    let (_dir, list) = self::data("[1, 2]");
    assert!(matches!(ConfigFile::load(&list), Err(FileError::Syntax { line: 1, .. })));
}

#[test]
fn values_that_do_not_fit_are_all_named_and_the_rest_works() {
    let (_dir, data) = data(
        r#"{"locale": "fr", "heartbeat": {"interval_minutes": 0, "max_depth": "six", "soft_timeout_seconds": 60.0},
            "server": {"ipc_stream_timeout": 20, "keepalive_interval": 30}, "system": {"timezone": "Asia/Nowhere"},
            "anima_defaults": {"context_threshold": 7}, "credentials": {"a": {"api_key": 12}},
            "consolidation": {"weekly_time": "someday"}, "priming": []}"#,
    );
    let (settings, problems) = Settings::check(&data).unwrap();
    let shown: Vec<_> =
        problems.iter().map(|problem| format!("{}: {}", problem.key, problem.text(Locale::En))).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    locale: found "fr"; allowed: one of ja, en
    system.timezone: found "Asia/Nowhere"; allowed: the name of a time zone, such as Asia/Tokyo
    credentials.a.api_key: found number; allowed: a key as text
    anima_defaults.context_threshold: found 7; allowed: a number from 0.05 to 1
    consolidation.weekly_time: found "someday"; allowed: a time such as sun:03:00
    priming: found list; allowed: an object
    heartbeat.interval_minutes: found 0; allowed: a whole number from 1 to 1440
    heartbeat.max_depth: found "six"; allowed: a whole number from 1 to 1000
    server.keepalive_interval: found 30; allowed: a whole number from 1 to 19
    "#);
    assert_eq!(settings.heartbeat.soft_timeout_seconds, 60);
    assert_eq!(settings.heartbeat.interval_minutes, 30);
    assert_eq!(settings.server.keepalive_interval, 10);
    let error = problems[0].in_file(&data.config()).to_string();
    assert!(error.ends_with("config.json: locale: found \"fr\"; allowed: one of ja, en"), "{error}");
}

#[test]
fn nothing_is_set_before_there_is_an_organisation() {
    let (_dir, data) = data("");
    let error = ConfigFile::set(&data, "locale", "en").unwrap_err();
    assert_eq!((error.code(), error.kind().exit_code()), ("not_initialised", 5));
    assert!(!data.config().exists());
}

#[test]
fn a_slip_of_the_pen_is_seen() {
    let (_dir, data) = data(
        r#"{"heartbeat": {"intervall_minutes": 5}, "zzz": {"a": 1}, "voice": {"x": {}}, "credentials": {"a": {"api_kex": ""}}}"#,
    );
    let unknown = ConfigFile::load(&data).unwrap().unknown();
    let keys: Vec<_> = unknown.iter().map(|unknown| unknown.key.as_str()).collect();
    assert_eq!(keys, ["heartbeat.intervall_minutes", "zzz", "credentials.a.api_kex"]);
    assert_eq!(unknown[0].near, ["heartbeat.interval_minutes"]);
}

#[test]
fn a_key_is_set_with_its_type() {
    let (_dir, data) = data("{}");
    for (key, text, value) in [
        ("setup_complete", "true", json!(true)),
        ("heartbeat.interval_minutes", "15", json!(15)),
        ("anima_defaults.context_threshold", "0.7", json!(0.7)),
        ("anima_defaults.execution_mode", "autonomous", json!("A")),
        ("anima_defaults.background_model", "", json!(null)),
        ("credentials.anthropic.api_key", "12345", json!("12345")),
        ("model_modes.\"openai/gpt-4.1*\"", "A", json!("A")),
        ("voice.stt_model", "large", json!("large")),
        (
            "human_notification.channels",
            r#"[{"type": "ntfy", "config": {"topic": "t"}}]"#,
            json!([{"type": "ntfy", "config": {"topic": "t"}}]),
        ),
        ("external_messaging.user_aliases.owner.slack_user_id", "U0", json!("U0")),
    ] {
        ConfigFile::set(&data, key, text).unwrap();
        let object = read(&data).as_object().cloned().unwrap();
        assert_eq!(file::at(&object, &file::split_key(key)), Some(&value), "{key}");
    }
    let before = read(&data);
    for (key, text) in [
        ("heartbeat.interval_minutes", "1441"),
        ("heartbeat.interval_minutes", "soon"),
        ("setup_complete", "maybe"),
        ("server.keepalive_interval", "60"),
        ("locale", "fr"),
        ("anima_defaults.execution_mode", "zzz"),
        ("heartbeat", "7"),
    ] {
        let error = ConfigFile::set(&data, key, text).unwrap_err();
        assert!(matches!(error, ConfigError::Unfit(_)), "{key} {text}: {error}");
        let said = (&error as &dyn Fault).explain(Locale::Ja).message;
        assert!(said.contains("使えるのは") && !said.contains('{') && said.contains(key), "{said}");
    }
    let ConfigError::UnknownKey { near, .. } = ConfigFile::set(&data, "heartbeat.intervall_minutes", "1").unwrap_err()
    else {
        panic!("a wrong key must be refused");
    };
    assert_eq!(near[0], "heartbeat.interval_minutes");
    assert_eq!(read(&data), before);
}

#[test]
fn the_field_of_an_anima_goes_to_its_own_file() {
    let (_dir, data) = data(r#"{"animas": {"sakura": {"supervisor": null}}}"#);
    fs_err::create_dir_all(data.anima(&AnimaName::new("sakura").unwrap()).root()).unwrap();
    let file = ConfigFile::set(&data, "animas.sakura.model", "openai/x").unwrap();
    assert_eq!(fs_err::read_to_string(&file).unwrap(), "{\n  \"model\": \"openai/x\"\n}\n");
    assert!(file.ends_with("animas/sakura/status.json"));
    ConfigFile::set(&data, "animas.sakura.model", "null").unwrap();
    assert_eq!(fs_err::read_to_string(&file).unwrap(), "{}\n");
    ConfigFile::set(&data, "animas.sakura.aliases", r#"["saki"]"#).unwrap();
    assert_eq!(read(&data)["animas"]["sakura"], json!({"supervisor": null, "aliases": ["saki"]}));
    let error = ConfigFile::set(&data, "animas.sakur.model", "x").unwrap_err();
    assert!(matches!(&error, ConfigError::UnknownAnima { near, .. } if near == &["sakura"]), "{error:?}");
}

#[test]
fn a_listing_shows_everything_but_secrets() {
    let (_dir, data) = data(PYTHON);
    let file = ConfigFile::load(&data).unwrap();
    let entries = file.list();
    let shown =
        |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| (entry.value.clone(), entry.written));
    assert_eq!(shown("heartbeat.interval_minutes"), Some((json!(45), true)));
    assert_eq!(shown("heartbeat.max_depth"), Some((json!(6), false)));
    assert_eq!(shown("credentials.anthropic.api_key"), Some((json!("***"), true)));
    assert_eq!(shown("future_section.nested.flag"), Some((json!(true), true)));
    let all = serde_json::to_string(&entries.iter().map(|entry| &entry.value).collect::<Vec<_>>()).unwrap();
    for secret in ["sk-test-anthropic", "xoxb-test", "tok-test"] {
        assert!(!all.contains(secret), "{secret}");
        assert!(PYTHON.contains(secret), "{secret} is in the sample");
    }
    assert_eq!(file.value("credentials.anthropic").unwrap().value["api_key"], "***");
    assert_eq!(
        file.value("heartbeat.max_depth").unwrap(),
        Entry { key: "heartbeat.max_depth".into(), value: json!(6), written: false }
    );
    assert_eq!(file.value("future_section.nested.flag").unwrap().value, json!(true));
    assert!(matches!(file.value("heartbeat.nothing"), Err(ConfigError::UnknownKey { .. })));
}

#[test]
fn every_default_fits_its_own_shape() {
    let defaults = Value::Object(defaults());
    let mut problems = Vec::new();
    assert_eq!(Settings::read(&defaults, &mut problems), Settings::default());
    assert_eq!(problems, []);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("x_[a-z.\"]{1,4}", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn unknown_keys_survive_at_every_level(top in any_json(), section in any_json(), entry in any_json(), minutes in 1_u32..=1440) {
        let text = json!({
            "x_top": top, "heartbeat": {"x_in": section, "max_depth": 7}, "credentials": {"a": {"x_entry": entry}}, "locale": "ja"
        });
        let (_dir, data) = data(&text.to_string());
        ConfigFile::set(&data, "heartbeat.interval_minutes", &minutes.to_string()).unwrap();
        ConfigFile::set(&data, "credentials.a.api_key", "k").unwrap();
        let mut expected = text;
        expected["heartbeat"]["interval_minutes"] = json!(minutes);
        expected["credentials"]["a"]["api_key"] = json!("k");
        prop_assert_eq!(read(&data), expected);
    }

    #[test]
    fn no_json_stops_us(value in any_json(), section in any_json()) {
        let mut problems = Vec::new();
        Settings::read(&value, &mut problems);
        Settings::read(&json!({"heartbeat": section, "animas": section, "anima_defaults": section, "credentials": {"a": section}}), &mut problems);
        for problem in problems {
            prop_assert!(!problem.text(Locale::Ja).is_empty());
        }
    }
}
