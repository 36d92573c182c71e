//! `config.json` as the program reads it: every key with its type and default.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Problem, file,
    sections::{
        ActivityHours, ActivityLogSettings, AnimaFields, BackgroundTaskSettings, CompletionGateSettings,
        ConsolidationSettings, Credential, CronGuardSettings, ExternalMessagingSettings, HeartbeatSettings,
        HousekeepingSettings, HumanNotificationSettings, ImageGenSettings, InboxSettings, InteractionSettings,
        LocalLlmSettings, LoggingSettings, MemorySettings, Placement, PrimingSettings, PromptSettings, RagSettings,
        RateGuardSettings, ServerSettings, SystemSettings, UiSettings,
    },
    shape::{self, int, sections},
};
use crate::{fs::FileError, i18n::Locale, layout::DataDir, mode::ExecutionMode};

sections! {
    /// `config.json`.
    Settings {
        /// The version of the file.
        version: u32 = 1;
        /// Whether the first steps are done.
        setup_complete: bool = false;
        /// The language of the organisation; the environment decides when it is not written down.
        locale: Option<Locale> = None;
        /// Machine and address.
        system: SystemSettings = SystemSettings::default();
        /// Keys to models and services.
        credentials: BTreeMap<String, Credential> = BTreeMap::new();
        /// Modes by model pattern; `models.json` comes first.
        model_modes: BTreeMap<String, ExecutionMode> = BTreeMap::new();
        /// Context windows by model pattern; `models.json` comes first.
        model_context_windows: BTreeMap<String, u32> = BTreeMap::new();
        /// Longest answers by model pattern.
        model_max_tokens: BTreeMap<String, u32> = BTreeMap::new();
        /// What holds for every Anima that does not say otherwise.
        anima_defaults: AnimaFields = AnimaFields::default();
        /// The layout of the organisation.
        animas: BTreeMap<String, Placement> = BTreeMap::new();
        /// Directories by short name.
        workspaces: BTreeMap<String, String> = BTreeMap::new();
        /// Sleep.
        consolidation: ConsolidationSettings = ConsolidationSettings::default();
        /// Index and search.
        rag: RagSettings = RagSettings::default();
        /// Forgetting.
        memory: MemorySettings = MemorySettings::default();
        /// What is swept.
        housekeeping: HousekeepingSettings = HousekeepingSettings::default();
        /// The log of what happened.
        activity_log: ActivityLogSettings = ActivityLogSettings::default();
        /// Speech; read by its own part.
        voice: BTreeMap<String, Value> = BTreeMap::new();
        /// The pages.
        ui: UiSettings = UiSettings::default();
        /// The program's own log.
        logging: LoggingSettings = LoggingSettings::default();
        /// The prompt.
        prompt: PromptSettings = PromptSettings::default();
        /// What comes to mind.
        priming: PrimingSettings = PrimingSettings::default();
        /// Pictures.
        image_gen: ImageGenSettings = ImageGenSettings::default();
        /// Calling people.
        human_notification: HumanNotificationSettings = HumanNotificationSettings::default();
        /// Questions to people.
        interaction: InteractionSettings = InteractionSettings::default();
        /// Messengers.
        external_messaging: ExternalMessagingSettings = ExternalMessagingSettings::default();
        /// Long-running work.
        background_task: BackgroundTaskSettings = BackgroundTaskSettings::default();
        /// Looking around.
        heartbeat: HeartbeatSettings = HeartbeatSettings::default();
        /// Processes and streams.
        server: ServerSettings = ServerSettings::default();
        /// Providers that refuse.
        llm_rate_guard: RateGuardSettings = RateGuardSettings::default();
        /// Cron jobs that run wild.
        cron_guard: CronGuardSettings = CronGuardSettings::default();
        /// Letters.
        inbox: InboxSettings = InboxSettings::default();
        /// The local model tool.
        local_llm: LocalLlmSettings = LocalLlmSettings::default();
        /// The last look before work is done.
        completion_gate: CompletionGateSettings = CompletionGateSettings::default();
        /// How lively everybody is, in percent.
        activity_level: u32 = 100, int(10, 400);
        /// How lively at which hours.
        activity_schedule: Vec<ActivityHours> = Vec::new();
        /// Where icons of Animas are.
        icon_url_template: String = String::new();
    }
}

impl Settings {
    /// Reads `config.json`; without one everything has its default. A value that does not
    /// fit has its default too, and is logged; [`Settings::check`] returns those.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the file cannot be read or is no JSON object.
    pub fn load(data: &DataDir) -> Result<Self, FileError> {
        let (settings, problems) = Self::check(data)?;
        for problem in problems {
            tracing::warn!(
                key = problem.key, problem = %problem.text(Locale::En), "config.json: value does not fit, the default is used"
            );
        }
        Ok(settings)
    }

    /// Reads `config.json` and says everything in it that does not fit.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the file cannot be read or is no JSON object.
    pub fn check(data: &DataDir) -> Result<(Self, Vec<Problem>), FileError> {
        let object = file::read_object(&data.config())?.unwrap_or_default();
        let mut problems = Vec::new();
        Ok((Self::read(&Value::Object(object), &mut problems), problems))
    }

    pub(crate) fn read(value: &Value, problems: &mut Vec<Problem>) -> Self {
        let mut settings: Self = shape::read(value, "", problems);
        let server = &mut settings.server;
        if server.keepalive_interval >= server.ipc_stream_timeout {
            let most = i64::try_from(server.ipc_stream_timeout.saturating_sub(1)).unwrap_or(i64::MAX);
            problems.push(Problem {
                key: "server.keepalive_interval".into(),
                found: server.keepalive_interval.to_string(),
                expected: int(1, most),
            });
            server.keepalive_interval = (server.ipc_stream_timeout / 2).max(1);
        }
        settings
    }
}
