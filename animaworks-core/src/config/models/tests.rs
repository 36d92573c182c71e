//! The check values of exec spec §1.2–1.7 and its appendix A1, A2.

use super::*;

fn models(json: &str) -> Models {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::new(dir.path());
    fs_err::write(data.models(), json).unwrap();
    Models::load(&data, &Settings::default())
}

#[test]
fn the_built_in_table_has_the_check_values() {
    for (model, letter) in [
        ("claude-sonnet-4-6", 'S'),
        ("claude-3-5-haiku", 'S'),
        ("codex/gpt-5.4", 'C'),
        ("openai-codex/gpt-5.4", 'C'),
        ("cursor/composer-2", 'D'),
        ("gemini/gemini-2.5-pro", 'G'),
        ("google/gemini-2.5-pro", 'A'),
        ("openai/glm-4.7-flash", 'A'),
        ("xai/grok-4", 'A'),
        ("azure/gpt-4.1", 'A'),
        ("vertex_ai/gemini-2.5-flash", 'A'),
        ("mistral/mistral-large", 'A'),
        ("anthropic/claude-sonnet-4-6", 'A'),
        ("ollama/qwen3:14b", 'A'),
        ("ollama/qwen3:8b", 'B'),
        ("ollama/glm-4.7:q4", 'A'),
        ("ollama/gemma3:12b", 'B'),
        ("ollama/deepseek-r1:8b", 'B'),
        ("ollama/foo", 'B'),
        ("unknown/foo", 'B'),
        ("grok/grok-4", 'B'),
        ("local/recall", 'B'),
        ("local/gemma3", 'B'),
        ("", 'B'),
    ] {
        assert_eq!(Models::default().mode(model, None).mode.letter(), letter, "{model}");
    }
}

#[test]
fn a_mode_says_what_decided() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::new(dir.path());
    fs_err::write(
        data.models(),
        r#"{"claude-*": {"mode": "A"}, "claude-opus-*": {"mode": "S"}, "claude-opus-4-6": {"context_window": 1000000},
            "odd/*": {"mode": "X"}, "openai/*": {"mode": "autonomous", "note": 1}}"#,
    )
    .unwrap();
    let settings =
        Settings { model_modes: [("odd/*".into(), Codex), ("claude-*".into(), Basic)].into(), ..Settings::default() };
    let models = Models::load(&data, &settings);
    let source = |model| models.mode(model, None).source;
    assert_eq!(models.mode("claude-opus-4-6", Some(Gemini)).source, ModeSource::Explicit);
    // the exact row says nothing about the mode, so the next one does
    assert_eq!(source("claude-opus-4-6"), ModeSource::ModelsFile("claude-opus-*".into()));
    assert_eq!(source("claude-haiku"), ModeSource::ModelsFile("claude-*".into()));
    assert_eq!(source("odd/x"), ModeSource::Config("odd/*".into()));
    assert_eq!(source("openai/x"), ModeSource::ModelsFile("openai/*".into()));
    assert_eq!(source("ollama/gemma3:4b"), ModeSource::BuiltIn("ollama/gemma3*"));
    assert_eq!(source("nobody"), ModeSource::Fallback);
    let keys: Vec<_> = models.problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["odd/*.mode"]);
}

#[test]
fn a_malformed_file_counts_as_empty_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::new(dir.path());
    let broken = "{\n  \"claude-*\": {\"mode\": \"B\",}\n}";
    fs_err::write(data.models(), broken).unwrap();
    let models = Models::load(&data, &Settings::default());
    assert_eq!(models.mode("claude-x", None).mode, Sdk);
    assert!(matches!(models.fault.as_deref(), Some(FileError::Syntax { line: 2, .. })), "{:?}", models.fault);
    assert_eq!(fs_err::read_to_string(data.models()).unwrap(), broken);
}

#[test]
fn a_window_comes_from_file_then_config_then_card_then_table() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::new(dir.path());
    fs_err::write(
        data.models(),
        r#"{"claude-*": {"context_window": 200000}, "claude-opus-4-6": {"context_window": 1000000}}"#,
    )
    .unwrap();
    let settings = Settings { model_context_windows: [("openai/glm*".into(), 64_000)].into(), ..Settings::default() };
    let local = ModelId::new("local/tiny").unwrap();
    let models =
        Models::load(&data, &settings).with_card(local, LocalCard { window: Some(Tokens(32_768)), tools: true });
    for (model, window, source) in [
        ("claude-opus-4-6", 1_000_000, WindowSource::ModelsFile("claude-opus-4-6".into())),
        ("claude-sonnet-4-6", 200_000, WindowSource::ModelsFile("claude-*".into())),
        ("openai/glm-4.7-flash", 64_000, WindowSource::Config("openai/glm*".into())),
        ("local/tiny", 32_768, WindowSource::Card),
        ("anthropic/claude-opus-4-6", 200_000, WindowSource::BuiltIn("claude-")),
        ("openai/gpt-4.1-mini", 1_000_000, WindowSource::BuiltIn("gpt-4.1")),
        ("ollama/gemma3:12b", 128_000, WindowSource::BuiltIn("gemma3")),
        ("ollama/gemma4:12b", 8192, WindowSource::BuiltIn("gemma4")),
        ("nobody", 128_000, WindowSource::Fallback),
    ] {
        assert_eq!(models.window(model), ResolvedWindow { window: Tokens(window), source }, "{model}");
    }
    assert_eq!(models.mode("local/tiny", None), ResolvedMode { mode: Autonomous, source: ModeSource::Card });
}

#[test]
fn thresholds_have_the_check_values() {
    for (configured, window, expected) in [
        (0.5, 1_000_000, 0.5),
        (0.5, 200_000, 0.5),
        (0.5, 199_999, 0.5),
        (0.5, 128_000, 0.6728),
        (0.5, 64_000, 0.8264),
        (0.5, 32_000, 0.9032),
        (0.5, 30_000, 0.908),
        (0.5, 8192, 0.9603),
        (0.8, 128_000, 0.8648),
        (0.99, 8192, 0.99),
    ] {
        let scaled = scaled_threshold(configured, Tokens(window));
        assert!((scaled - expected).abs() < 1e-9, "{configured} {window}: {scaled}");
    }
}

#[test]
fn model_names_are_said_the_way_the_other_side_wants() {
    for (model, auth, said) in [
        ("anthropic/claude-sonnet-4-6", None, "claude-sonnet-4-6"),
        ("claude-sonnet-4-6", Some(ModeSAuth::Api), "claude-sonnet-4-6"),
        ("bedrock/jp.anthropic.claude-x", Some(ModeSAuth::Max), "claude-x"),
        ("bedrock/jp.anthropic.claude-x", Some(ModeSAuth::Bedrock), "jp.anthropic.claude-x"),
        ("vertex_ai/claude-x", Some(ModeSAuth::Vertex), "claude-x"),
    ] {
        assert_eq!(claude_model(model, auth), said, "{model}");
    }
    assert_eq!((provider("openai/a/b"), bare_model("openai/a/b")), (Some("openai"), "a/b"));
    assert_eq!(usual_credential("claude-x"), "anthropic");
}

#[test]
fn the_shipped_models_file_is_what_the_table_means() {
    let text = crate::templates::find(Locale::En, "config_defaults/models.json").unwrap();
    let models = models(text);
    assert!(models.fault.is_none() && models.problems.is_empty(), "{models:?}");
    for (model, letter, window) in [
        ("claude-opus-4-6", 'S', 1_000_000),
        ("claude-sonnet-4-6", 'S', 1_000_000),
        ("claude-haiku-4-5", 'S', 200_000),
        ("cursor/composer-2", 'D', 1_000_000),
        ("gemini/gemini-2.5-pro", 'G', 1_000_000),
        ("openai/gpt-4.1-mini", 'A', 1_000_000),
        ("ollama/gemma3:4b", 'B', 8192),
    ] {
        assert_eq!(models.mode(model, None).mode.letter(), letter, "{model}");
        assert_eq!(models.window(model).window, Tokens(window), "{model}");
    }
    for pattern in models.rows().keys() {
        let model = pattern.replace('*', "x");
        assert_eq!(models.mode(&model, None).mode, Models::default().mode(&model, None).mode, "{pattern}");
    }
}
