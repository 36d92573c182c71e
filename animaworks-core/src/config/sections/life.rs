//! The working day: `heartbeat`, `background_task`, `server`, guards, `inbox`, `completion_gate`.

use std::collections::BTreeMap;

use crate::{
    config::shape::{Shape, choices, int, num, sections},
    ids::ModelId,
};

choices! {
    /// What happens to a cron job that runs wild.
    CronGuardMode {
        /// Nothing.
        Off = "off",
        /// It is reported.
        Warn = "warn",
        /// It is switched off.
        Disable = "disable",
    }

    /// Which pictures may be fetched from outside.
    MediaProxyMode {
        /// All that pass the scan.
        OpenWithScan = "open_with_scan",
        /// Those of allowed domains.
        Allowlist = "allowlist",
    }
}

sections! {
    /// `heartbeat`: looking around, and the limits on talking to each other.
    HeartbeatSettings {
        /// Minutes between two rounds.
        interval_minutes: u32 = 30, int(1, 1440);
        /// The background model of Animas that name none.
        default_model: Option<ModelId> = None;
        /// Seconds until a round is told to finish.
        soft_timeout_seconds: u64 = 300, int(30, 3600);
        /// Seconds until a round is ended; 0 for never.
        hard_timeout_seconds: u64 = 0, int(0, 7200);
        /// Seconds between two rounds that messages start.
        msg_heartbeat_cooldown_s: u64 = 300, int(0, 86_400);
        /// The window of the cascade limit, in seconds.
        cascade_window_s: u64 = 1800, int(0, 86_400);
        /// Messages between two Animas in that window before they are slowed down.
        cascade_threshold: u32 = 3, int(1, 1000);
        /// The window of the depth limit, in seconds.
        depth_window_s: u64 = 600, int(0, 86_400);
        /// Replies to replies in that window.
        max_depth: u32 = 6, int(1, 1000);
        /// The intents that wake the recipient.
        actionable_intents: Vec<String> = vec!["report".into(), "question".into()];
        /// Whether the sender learns that a message was read.
        enable_read_ack: bool = false;
        /// Seconds between two posts of one Anima on one board.
        channel_post_cooldown_s: u64 = 300, int(0, 86_400);
        /// Messages of one Anima per hour.
        max_messages_per_hour: u32 = 30, int(0, 100_000);
        /// Messages of one Anima per day.
        max_messages_per_day: u32 = 100, int(0, 1_000_000);
        /// Minutes of silence until a full context is compacted.
        idle_compaction_minutes: u64 = 10, int(1, 120);
        /// The size `current_state.md` should keep to, in characters.
        current_state_max_chars: usize = 8000, int(100, 1_000_000);
    }

    /// `background_task`: tools and tasks that run while the Anima does something else.
    BackgroundTaskSettings {
        /// Whether there are any.
        enabled: bool = true;
        /// The tools that may be submitted.
        eligible_tools: BTreeMap<String, EligibleTool> = BTreeMap::new();
        /// Hours a result is kept.
        result_retention_hours: u64 = 24, int(1, 8760);
        /// Tasks with a model that run side by side.
        max_parallel_llm_tasks: u32 = 3, int(1, 10);
        /// Workers for tools.
        worker_pool_size: u32 = 1, int(1, 16);
        /// Seconds running tasks get when the program stops.
        shutdown_drain_seconds: u64 = 600, int(0, 7200);
    }

    /// One entry of `background_task.eligible_tools`.
    EligibleTool {
        /// Seconds after which a call is better submitted.
        threshold_s: u64 = 30, int(0, 86_400);
    }

    /// `server`: processes and streams.
    ServerSettings {
        /// Seconds between two frames of a stream before it counts as dead.
        ipc_stream_timeout: u64 = 60, int(1, 3600);
        /// Seconds between two signs of life; must be below `ipc_stream_timeout`.
        keepalive_interval: u64 = 30, int(1, 3600);
        /// Seconds a streamed answer may take.
        max_streaming_duration: u64 = 1800, int(1, 86_400);
        /// Seconds a busy Anima may be silent before it counts as hung.
        busy_hang_threshold: u64 = 900, int(1, 86_400);
        /// Whether a broken stream is picked up where it was.
        stream_checkpoint_enabled: bool = true;
        /// How often a stream is tried again.
        stream_retry_max: u32 = 3, int(0, 20);
        /// Seconds between two tries.
        stream_retry_delay_s: f64 = 5.0, num(0.0, 600.0);
        /// How often a model call is tried again.
        llm_num_retries: u32 = 3, int(0, 20);
        /// How long Ollama keeps a model loaded, in its own words.
        ollama_keep_alive: String = String::new();
        /// Days a login lasts; `null` for 400.
        session_ttl_days: Option<u32> = Some(90), Shape::Optional(Box::new(int(1, 400)));
        /// Seconds an Anima's process may take to be ready.
        anima_startup_ready_timeout: u64 = 120, int(1, 3600);
        /// Seconds an Anima's process may take to stop.
        anima_stop_timeout: u64 = 60, int(1, 3600);
        /// Seconds a process may take to be started.
        spawn_timeout: u64 = 300, int(1, 3600);
        /// Seconds after its start in which a process is not checked.
        health_check_warmup_seconds: u64 = 300, int(0, 3600);
        /// Seconds a runner may take to warm up.
        runner_warmup_seconds: u64 = 180, int(0, 3600);
        /// How often a dead supervisor is started again.
        supervisor_respawn_max_retries: u32 = 3, int(0, 100);
        /// Seconds between two such starts.
        supervisor_respawn_retry_interval_seconds: u64 = 30, int(0, 3600);
        /// The path the pages are served under.
        base_path: String = String::new();
        /// Pictures from outside.
        media_proxy: MediaProxySettings = MediaProxySettings::default();
    }

    /// `server.media_proxy`.
    MediaProxySettings {
        /// Which pictures are fetched.
        mode: MediaProxyMode = MediaProxyMode::OpenWithScan;
        /// The domains of `allowlist`.
        allowed_domains: Vec<String> = Vec::new();
        /// The largest picture.
        max_bytes: u64 = 5_242_880, int(1, 1_073_741_824);
        /// Redirects that are followed.
        max_redirects: u32 = 3, int(0, 20);
        /// Seconds until connected.
        timeout_connect_s: u64 = 5, int(1, 600);
        /// Seconds between two reads.
        timeout_read_s: u64 = 10, int(1, 600);
        /// Pictures per window.
        rate_limit_requests: u32 = 30, int(1, 100_000);
        /// The window, in seconds.
        rate_limit_window_s: u64 = 60, int(1, 86_400);
    }

    /// `llm_rate_guard`: a provider that refuses is left alone for a while.
    RateGuardSettings {
        /// Whether it is.
        enabled: bool = true;
        /// Seconds, when the provider names none.
        default_block_seconds: u64 = 60, int(0, 86_400);
        /// Seconds at the most.
        max_block_seconds: u64 = 600, int(0, 86_400);
        /// Seconds after an exhausted quota.
        quota_block_seconds: u64 = 1800, int(0, 86_400);
        /// Seconds at the most after an exhausted quota.
        max_quota_block_seconds: u64 = 14_400, int(0, 604_800);
    }

    /// `cron_guard`.
    CronGuardSettings {
        /// What happens.
        mode: CronGuardMode = CronGuardMode::Warn;
        /// Runs of one job per window.
        max_fires_per_window: u32 = 60, int(1, 10_000);
        /// The window, in minutes.
        window_minutes: u64 = 60, int(1, 10_080);
        /// Failures in a row.
        max_consecutive_failures: u32 = 5, int(1, 1000);
    }

    /// `inbox`: how long letters are kept.
    InboxSettings {
        /// Hours until an unread letter is too old.
        ttl_hours: u64 = 24, int(1, 8760);
        /// Days an expired letter is kept.
        expired_retention_days: u64 = 7, int(0, 3650);
        /// Days a processed letter is kept.
        processed_retention_days: u64 = 30, int(0, 3650);
        /// Days a suspicious letter is kept.
        quarantine_retention_days: u64 = 30, int(0, 3650);
    }

    /// `completion_gate`: the last look before a piece of work is called done.
    CompletionGateSettings {
        /// Whether there is one.
        enabled: bool = true;
        /// Tool calls a turn must have made for it.
        min_tool_calls: u32 = 0, int(0, 1000);
    }

    /// One entry of `activity_schedule`.
    ActivityHours {
        /// From, `HH:MM`.
        start: String = "00:00".into(), Shape::Daily;
        /// To, `HH:MM`.
        end: String = "23:59".into(), Shape::Daily;
        /// How lively, in percent.
        level: u32 = 100, int(10, 400);
    }
}
