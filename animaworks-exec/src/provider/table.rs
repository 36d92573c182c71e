//! The providers.

use animaworks_core::mode::fnmatch;

use super::{Auth, MaxTokens, Provider, Quirks, Thinking};
use crate::wire::Dialect;

const CHAT: &str = "/v1/chat/completions";

/// A server of unknown make that speaks OpenAI's dialect.
pub(super) const COMPATIBLE: Quirks = Quirks { thinking: Thinking::Template, small_models: true, ..Quirks::NONE };

const fn compatible(name: &'static str, prefixes: &'static [&'static str], base_url: &'static str) -> Provider {
    Provider {
        name,
        prefixes,
        base_url,
        path: CHAT,
        dialect: Dialect::OpenAi,
        auth: Auth::Bearer,
        quirks: Quirks::NONE,
    }
}

/// All of them. The first row whose prefix fits is taken.
pub const PROVIDERS: &[Provider] = &[
    Provider {
        quirks: Quirks { max_tokens: MaxTokens::ByModel, thinking: Thinking::Effort, ..Quirks::NONE },
        ..compatible("openai", &["openai", "gpt-*", "o1*", "o3*", "o4*"], "https://api.openai.com")
    },
    Provider {
        path: "/v1/messages",
        dialect: Dialect::Anthropic,
        auth: Auth::Header("x-api-key"),
        ..compatible("anthropic", &["anthropic", "claude-*"], "https://api.anthropic.com")
    },
    Provider {
        path: "/chat/completions",
        quirks: Quirks { thinking: Thinking::EffortOrNone, plain_schema: true, ..Quirks::NONE },
        ..compatible(
            "google",
            &["google", "gemini", "gemini-*"],
            "https://generativelanguage.googleapis.com/v1beta/openai",
        )
    },
    Provider {
        path: "/openai/deployments/{model}/chat/completions?api-version={api_version}",
        auth: Auth::Header("api-key"),
        quirks: Quirks { max_tokens: MaxTokens::ByModel, thinking: Thinking::Effort, ..Quirks::NONE },
        ..compatible("azure", &["azure"], "")
    },
    Provider {
        // refuses fields it does not know, and sends usage unasked
        quirks: Quirks { stream_usage: false, call_id_length: Some(9), ..Quirks::NONE },
        ..compatible("mistral", &["mistral"], "https://api.mistral.ai")
    },
    Provider {
        quirks: Quirks { thinking: Thinking::Effort, ..Quirks::NONE },
        ..compatible("xai", &["xai"], "https://api.x.ai")
    },
    compatible("deepseek", &["deepseek"], "https://api.deepseek.com"),
    Provider {
        quirks: Quirks { thinking: Thinking::Nested, ..Quirks::NONE },
        ..compatible("openrouter", &["openrouter"], "https://openrouter.ai/api")
    },
    Provider {
        auth: Auth::Optional,
        quirks: Quirks { thinking: Thinking::EffortOrNone, small_models: true, ..Quirks::NONE },
        ..compatible("ollama", &["ollama", "ollama_chat"], "http://localhost:11434")
    },
    Provider {
        auth: Auth::Optional,
        quirks: COMPATIBLE,
        ..compatible("vllm", &["vllm", "hosted_vllm"], "http://localhost:8000")
    },
    Provider {
        auth: Auth::Optional,
        quirks: COMPATIBLE,
        ..compatible("lm_studio", &["lm_studio"], "http://localhost:1234")
    },
    compatible("groq", &["groq"], "https://api.groq.com/openai"),
    Provider { path: "/chat/completions", ..compatible("zai", &["zai"], "https://api.z.ai/api/paas/v4") },
    compatible("minimax", &["minimax"], "https://api.minimax.io"),
    compatible("moonshot", &["moonshot"], "https://api.moonshot.ai"),
];

/// The provider of a model, and the model as that provider calls it.
pub fn find(model: &str) -> Option<(&'static Provider, &str)> {
    let by_prefix = model.split_once('/').and_then(|(prefix, bare)| {
        let row = PROVIDERS.iter().find(|row| row.prefixes.contains(&prefix))?;
        (!bare.is_empty()).then_some((row, bare))
    });
    by_prefix.or_else(|| {
        let fits =
            |row: &&Provider| row.prefixes.iter().any(|pattern| pattern.contains('*') && fnmatch(pattern, model));
        PROVIDERS.iter().find(fits).map(|row| (row, model))
    })
}
