//! Which value counts, and who decided it.

use serde_json::json;

use super::*;
use crate::{message::Message, mode::ExecutionMode, trigger::Night};

fn resolve(status: Value, config: Value) -> AnimaSettings {
    let settings = Settings::read(&config, &mut Vec::new());
    let models = Models::load(&DataDir::new("/nonexistent"), &settings);
    AnimaSettings::resolve(&AnimaName::new("sakura").unwrap(), Status::read(&status), &settings, &models)
}

#[test]
fn status_wins_over_defaults_over_role_over_what_is_built_in() {
    let all = resolve(
        json!({"role": "engineer", "max_tokens": 4096}),
        json!({"anima_defaults": {"max_tokens": 1, "max_chains": 4}}),
    );
    assert_eq!((all.max_tokens.value, all.max_tokens.source), (4096, Source::Status));
    assert_eq!((all.max_chains.value, all.max_chains.source), (4, Source::Config("anima_defaults.max_chains".into())));
    assert_eq!((all.context_threshold.value, all.context_threshold.source), (0.8, Source::Role("engineer".into())));
    assert_eq!((all.llm_timeout.value, all.llm_timeout.source), (Duration::from_secs(600), Source::BuiltIn));
    assert_eq!(all.model.value.as_str(), "claude-opus-4-6");
}

#[test]
fn every_role_has_the_values_of_its_table() {
    for (role, model, background, chains, threshold, history) in [
        ("engineer", "claude-opus-4-6", Some("claude-sonnet-4-6"), 10, 0.8, 0.4),
        ("manager", "claude-opus-4-6", Some("claude-sonnet-4-6"), 3, 0.6, 0.3),
        ("writer", "claude-sonnet-4-6", None, 5, 0.7, 0.3),
        ("researcher", "claude-sonnet-4-6", None, 2, 0.5, 0.3),
        ("ops", "openai/glm-4.7-flash", None, 2, 0.5, 0.3),
        ("general", "claude-sonnet-4-6", None, 2, 0.5, 0.3),
    ] {
        let defaults = role_defaults(role).unwrap();
        assert_eq!(defaults.model.as_ref().map(ModelId::as_str), Some(model), "{role}");
        assert_eq!(defaults.background_model.as_ref().map(ModelId::as_str), background, "{role}");
        assert_eq!((defaults.max_turns, defaults.max_chains), (Some(10_000), Some(chains)), "{role}");
        assert_eq!(defaults.context_threshold, Some(threshold), "{role}");
        assert_eq!(defaults.conversation_history_threshold, Some(history), "{role}");
    }
    assert_eq!(role_defaults("../../x"), None);
    assert_eq!(built_in_model().as_str(), "claude-sonnet-4-6");
}

#[test]
fn people_and_tasks_get_the_main_model_and_everything_else_the_background_one() {
    let all = resolve(
        json!({"model": "claude-opus-4-6", "execution_mode": "a1", "background_model": "openai/gpt-4.1-mini", "max_tokens": 1000}),
        json!({"model_max_tokens": {"openai/*": 500}, "consolidation": {"llm_model": "ollama/gemma3:4b"}}),
    );
    let chat = all.model_for(&Trigger::Chat(Box::new(Message::human("tanaka", "hello"))));
    assert_eq!(
        (chat.id.as_str(), chat.mode, chat.credential.as_str()),
        ("claude-opus-4-6", ExecutionMode::Sdk, "anthropic")
    );
    assert_eq!(chat.max_output, Tokens(1000));
    let beat = all.model_for(&Trigger::Heartbeat);
    assert_eq!(
        (beat.id.as_str(), beat.mode, beat.credential.as_str()),
        ("openai/gpt-4.1-mini", ExecutionMode::Autonomous, "openai")
    );
    assert_eq!((beat.window, beat.max_output), (Tokens(1_000_000), Tokens(500)));
    let night = all.model_for(&Trigger::Consolidation(Night::Daily));
    assert_eq!((night.id.as_str(), night.credential.as_str()), ("ollama/gemma3:4b", "ollama"));
}

#[test]
fn a_cleared_background_model_means_the_main_one() {
    let all = resolve(json!({"role": "engineer", "credential": "work"}), json!({}));
    assert_eq!(
        (all.background_model.value.as_str(), all.background_model.source),
        ("claude-opus-4-6", Source::As("model"))
    );
    assert_eq!(
        (all.background_credential.value.as_str(), all.background_credential.source),
        ("work", Source::As("credential"))
    );
    let all = resolve(json!({}), json!({"heartbeat": {"default_model": "ollama/qwen3:8b"}}));
    assert_eq!(all.background_model.source, Source::Config("heartbeat.default_model".into()));
    assert_eq!(all.background_credential.value, "ollama");
}

#[test]
fn thinking_is_a_matter_of_whether_and_how_hard() {
    for (status, effort) in [
        (json!({}), None),
        (json!({"thinking": true}), Some("medium")),
        (json!({"thinking": false, "thinking_effort": "high"}), None),
        (json!({"thinking_effort": "high"}), Some("high")),
    ] {
        assert_eq!(resolve(status.clone(), json!({})).thinking.value.as_deref(), effort, "{status}");
    }
}

#[test]
fn a_listing_names_every_source() {
    let all = resolve(json!({"role": "ops", "supervisor": "rin", "enabled": false}), json!({}));
    assert!(!all.enabled());
    let rows: Vec<_> = all.list().iter().map(|row| format!("{} = {} ({})", row.key, row.value, row.source)).collect();
    insta::assert_snapshot!(rows.join("\n"), @r#"
    enabled = false (status.json)
    role = "ops" (status.json)
    supervisor = "rin" (status.json)
    speciality = null (built in)
    model = "openai/glm-4.7-flash" (role ops)
    background_model = "openai/glm-4.7-flash" (as model)
    fallback_models = [] (built in)
    credential = "openai" (built in)
    background_credential = "openai" (as credential)
    mode_s_auth = null (built in)
    max_tokens = 8192 (built in)
    max_turns = 10000 (role ops)
    max_chains = 2 (role ops)
    context_threshold = 0.5 (role ops)
    conversation_history_threshold = 0.3 (role ops)
    thinking = null (built in)
    background_thinking = null (as thinking)
    llm_timeout = 600 (built in)
    heartbeat_enabled = true (built in)
    heartbeat_interval_minutes = 30 (built in)
    consolidation_enabled = true (built in)
    max_outbound_per_hour = 30 (built in)
    max_outbound_per_day = 100 (built in)
    max_recipients_per_run = 2 (built in)
    token_budget_monthly = null (built in)
    default_workspace = null (built in)
    "#);
}
