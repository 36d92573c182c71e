//! Memory: `priming`, `rag`, `memory`, `activity_log`, `consolidation`, `housekeeping`, `prompt` (memory spec §26).

use crate::{
    config::shape::{Shape, choices, int, num, sections},
    ids::ModelId,
};

choices! {
    /// When old activity is thrown away.
    RotationMode {
        /// By size.
        Size = "size",
        /// By age.
        Time = "time",
        /// By both.
        Both = "both",
    }
}

choices! {
    /// How lists of answers are put together.
    FusionMode {
        /// Many small signs are added, each with a weight learned from open data.
        Learned = "learned",
        /// Standardised scores are added.
        Score = "score",
        /// Reciprocal ranks are added.
        Rrf = "rrf",
    }
}

sections! {
    /// `priming`: what comes to mind before an answer. Budgets are tokens.
    PrimingSettings {
        /// Whether the budget follows the kind of message.
        dynamic_budget: bool = true;
        /// For a greeting.
        budget_greeting: u32 = 500, int(0, 1_000_000);
        /// For a question.
        budget_question: u32 = 2000, int(0, 1_000_000);
        /// For a request.
        budget_request: u32 = 3000, int(0, 1_000_000);
        /// For a round; at least this.
        budget_heartbeat: u32 = 200, int(0, 1_000_000);
        /// For a round; at least this share of the window.
        heartbeat_context_pct: f64 = 0.05, num(0.0, 1.0);
        /// Seconds one channel may take.
        channel_timeout_seconds: f64 = 60.0, num(0.01, 600.0);
    }

    /// `rag`: the index and the search.
    RagSettings {
        /// Whether there is an index.
        enabled: bool = true;
        /// How what words and meaning find is put together.
        fusion: FusionMode = FusionMode::Learned;
        /// The model of the vectors.
        embedding_model: String = "intfloat/multilingual-e5-small".into();
        /// Whether a graphics card may be used.
        use_gpu: bool = false;
        /// Whether activation spreads over links.
        enable_spreading_activation: bool = true;
        /// How far it spreads.
        max_graph_hops: u32 = 2, int(0, 10);
        /// How alike two memories must be to count as linked.
        implicit_link_threshold: f64 = 0.75, num(0.0, 1.0);
        /// The kinds it spreads over.
        spreading_memory_types: Vec<String> = vec!["knowledge".into(), "episodes".into()];
        /// The least score of a hit.
        min_retrieval_score: f64 = 0.3, num(0.0, 1.0);
        /// The least score of a skill.
        skill_match_min_score: f64 = 0.75, num(0.0, 1.0);
        /// Whether the graph is kept between searches.
        graph_cache_enabled: bool = true;
        /// Whether changed files are indexed at once.
        enable_file_watcher: bool = true;
        /// Whether queries and passages get their prefixes.
        embedding_e5_prefix_enabled: bool = false;
        /// The prefix of queries.
        embedding_query_prefix: String = "query: ".into();
        /// The prefix of passages.
        embedding_document_prefix: String = "passage: ".into();
        /// The longest text the model reads, in its tokens.
        embedding_max_seq_length: u32 = 2048, int(16, 1_000_000);
        /// Whether an answer that is not sure enough is left out.
        abstain_on_low_confidence: bool = true;
        /// How sure is sure enough.
        confidence_threshold: f64 = 0.35, num(0.0, 1.0);
        /// Whether only words are searched, without a model.
        lexical_only: bool = false;
    }

    /// `memory`: forgetting.
    MemorySettings {
        /// Days a memory must have been weak before it is put away.
        forget_low_days: u32 = 60, int(1, 36_500);
        /// The most recalls a weak memory may have had.
        forget_max_access: u32 = 2, int(0, 1000);
        /// Days the archive is kept; nothing in it is deleted before.
        archive_retention_days: u32 = 90, int(1, 36_500);
        /// Whether memories that belong together may be merged.
        neurogenesis_enabled: bool = true;
    }

    /// `activity_log`.
    ActivityLogSettings {
        /// Whether old days are thrown away.
        rotation_enabled: bool = true;
        /// By what.
        rotation_mode: RotationMode = RotationMode::Size;
        /// Megabytes of one Anima.
        max_size_mb: u64 = 1024, int(1, 1_048_576);
        /// Megabytes of one file; 0 for no limit.
        max_file_size_mb: u64 = 100, int(0, 1_048_576);
        /// Days.
        max_age_days: u64 = 7, int(1, 36_500);
        /// When.
        rotation_time: String = "05:00".into(), Shape::Daily;
    }

    /// `consolidation`: sleep.
    ConsolidationSettings {
        /// Every night.
        daily_enabled: bool = true;
        /// When.
        daily_time: String = "02:00".into(), Shape::Daily;
        /// Once a week.
        weekly_enabled: bool = true;
        /// When.
        weekly_time: String = "sun:03:00".into(), Shape::Weekly;
        /// Once a month.
        monthly_enabled: bool = true;
        /// When.
        monthly_time: String = "1:04:00".into(), Shape::Monthly;
        /// Whether the index is swept at night.
        indexing_enabled: bool = true;
        /// When.
        indexing_time: String = "04:00".into(), Shape::Daily;
        /// Episodes a day must have to be slept on.
        min_episodes_threshold: u32 = 1, int(0, 1000);
        /// The model of the night; the Anima's background model when there is none.
        llm_model: Option<ModelId> = None;
        /// Its credential.
        llm_credential: Option<String> = None;
        /// How alike two memories must be to count as the same.
        duplicate_threshold: f64 = 0.85, num(0.0, 1.0);
        /// Model calls of a night.
        max_turns: u32 = 30, int(1, 10_000);
        /// Days after which episodes are compressed.
        episode_retention_days: u32 = 30, int(1, 36_500);
        /// Days without activity after which an Anima is not woken for it.
        inactivity_skip_days: u32 = 7, int(0, 3650);
    }

    /// `housekeeping`: what is swept every morning. All in days unless named otherwise.
    HousekeepingSettings {
        /// Whether it is.
        enabled: bool = true;
        /// When.
        run_time: String = "05:30".into(), Shape::Daily;
        /// Prompts that were logged.
        prompt_log_retention_days: u32 = 3, int(0, 3650);
        /// Cron logs.
        cron_log_retention_days: u32 = 14, int(0, 3650);
        /// Short-term files.
        shortterm_retention_days: u32 = 7, int(1, 3650);
        /// Archived short-term files.
        shortterm_archive_retention_days: u32 = 30, int(1, 3650);
        /// Results of tasks.
        task_results_retention_days: u32 = 7, int(0, 3650);
        /// Failed tasks.
        pending_failed_retention_days: u32 = 14, int(0, 3650);
        /// Archived letters between Animas.
        dm_log_archive_retention_days: u32 = 30, int(0, 3650);
    }

    /// `prompt`.
    PromptSettings {
        /// From how many characters on `injection.md` is called long.
        injection_size_warning_chars: usize = 2000, int(100, 1_000_000);
    }
}
