//! Who is there and with which model: `system`, `credentials`, `anima_defaults`, `animas`.

use std::collections::BTreeMap;

use chrono_tz::Tz;
use serde_json::Value;

use crate::{
    config::{
        Secret,
        shape::{Shape, choices, int, num, sections},
    },
    ids::ModelId,
    mode::ExecutionMode,
};

choices! {
    /// How Claude Code logs in.
    ModeSAuth {
        /// With an API key.
        Api = "api",
        /// Through AWS Bedrock.
        Bedrock = "bedrock",
        /// Through Google Vertex AI.
        Vertex = "vertex",
        /// With a subscription.
        Max = "max",
    }
}

sections! {
    /// `system`.
    SystemSettings {
        /// How the program runs; only `server` is known.
        mode: String = "server".into();
        /// How much is logged.
        log_level: String = "INFO".into();
        /// The time zone of schedules and days; empty means Asia/Tokyo.
        timezone: String = String::new(), Shape::Zone;
        /// Where the server listens.
        gateway: Gateway = Gateway::default();
    }

    /// `system.gateway`.
    Gateway {
        /// The address.
        host: String = "127.0.0.1".into();
        /// The port.
        port: u16 = 18500, int(0, 65535);
    }

    /// One entry of `credentials`.
    Credential {
        /// What sort of login it is.
        r#type: String = "api_key".into();
        /// The key.
        api_key: Secret = Secret::default();
        /// More keys of the same service.
        keys: BTreeMap<String, Secret> = BTreeMap::new();
        /// Where the service is, when it is not at its usual place.
        base_url: Option<String> = None;
    }

    /// One entry of `animas`: the layout of the organisation, written from the `status.json` files.
    Placement {
        /// Who it reports to.
        supervisor: Option<String> = None;
        /// What it is good at, in a few words.
        speciality: Option<String> = None;
        /// Other names it answers to.
        aliases: Vec<String> = Vec::new();
    }

    /// What can be decided per Anima: in `status.json`, and for all of them in `anima_defaults`.
    /// `None` everywhere means that nobody decided.
    AnimaFields {
        /// The model for people and tasks.
        model: Option<ModelId> = None;
        /// The model for everything the Anima does by itself.
        background_model: Option<ModelId> = None;
        /// The model to fall back to.
        fallback_model: Option<ModelId> = None;
        /// The models to fall back to, in order.
        fallback_models: Option<Vec<ModelId>> = None;
        /// The entry of `credentials` for the model.
        credential: Option<String> = None;
        /// The entry of `credentials` for the background model.
        background_credential: Option<String> = None;
        /// The mode, instead of the one that follows from the model.
        execution_mode: Option<ExecutionMode> = None;
        /// How mode S logs in.
        mode_s_auth: Option<ModeSAuth> = None;
        /// The longest answer, in tokens.
        max_tokens: Option<u32> = None, int(1, 1_000_000);
        /// Model calls within a turn.
        max_turns: Option<u32> = None, int(1, 1_000_000);
        /// Sessions that may be joined into one piece of work.
        max_chains: Option<u32> = None, int(0, 1000);
        /// How full the context may get before the session ends, as a share.
        context_threshold: Option<f64> = None, num(0.05, 1.0);
        /// How much of the window the history may take before it is compressed, as a share.
        conversation_history_threshold: Option<f64> = None, num(0.01, 1.0);
        /// Whether the model may think before it answers.
        thinking: Option<bool> = None;
        /// How hard it thinks.
        thinking_effort: Option<String> = None;
        /// How hard the background model thinks.
        background_thinking_effort: Option<String> = None;
        /// Seconds a model call may take.
        llm_timeout: Option<u64> = None, int(1, 86_400);
        /// Messages per hour.
        max_outbound_per_hour: Option<u32> = None, int(0, 100_000);
        /// Messages per day.
        max_outbound_per_day: Option<u32> = None, int(0, 1_000_000);
        /// Different recipients in one run.
        max_recipients_per_run: Option<u32> = None, int(0, 1000);
        /// The directory to work in, when a task names none.
        default_workspace: Option<String> = None;
        /// Whether it looks around by itself.
        heartbeat_enabled: Option<bool> = None;
        /// Minutes between two rounds.
        heartbeat_interval_minutes: Option<u32> = None, int(1, 1440);
        /// Whether it sleeps on the day.
        consolidation_enabled: Option<bool> = None;
        /// Tokens it may spend in a month.
        token_budget_monthly: Option<u64> = None;
        /// More MCP servers for its engine.
        extra_mcp_servers: Option<BTreeMap<String, Value>> = None;
    }
}

impl SystemSettings {
    /// The zone of schedules and days.
    pub fn zone(&self) -> Tz {
        // the shape has let nothing else through
        self.timezone.parse().unwrap_or(Tz::Asia__Tokyo)
    }
}
