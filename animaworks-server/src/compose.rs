//! The composition: one organisation run by this process, each Anima out of its directory.
//!
//! Everything is wired here and nowhere else; constructors start nothing. The demo, the
//! chat command, the examples and the tests build the same graph.

mod company;
mod engines;
mod hands;
mod meaning;
mod outside;
mod programs;
mod visit;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use animaworks_core::{
    Anima, AnimaDir, AnimaError, AnimaName, Clock, DataDir, Locale, MemoryStore, Origin, SystemClock, ThreadId, Tool,
    ToolContext, ToolName, TriggerKind,
    config::{AnimaSettings, Env, FusionMode, Models, Settings},
    executor::{ExecError, ExecutorSource},
    fs::FileError,
    gate::{Decision, Gate},
    home::AnimaHome,
    ids::{IdSource, RandomIds},
    life::{DigitalAnima, FileChoices, Parts, Sketch, sketch},
    organisation,
    seams::{Enforced, Host},
    trigger::Trigger,
};
use animaworks_exec::resolve::Engines;
use animaworks_memory::{FileMemory, Fusion, MemoryOptions, embed::weights};
use animaworks_tools::{EffectiveTable, Outside};
use async_trait::async_trait;
use chrono::DateTime;
use chrono_tz::Tz;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use self::{company::Company, meaning::Meaning};
pub use self::{hands::Hands, visit::Visit};

/// How long running turns may finish when an Anima is closed.
const GRACE: Duration = Duration::from_secs(10);

/// An organisation whose Animas live in this process.
///
/// ```no_run
/// use animaworks_core::{AnimaName, DataDir, Locale, Message, config::Env};
/// use animaworks_server::InProcess;
///
/// # async fn example() -> Result<(), animaworks_core::AnimaError> {
/// let host = InProcess::open(Env::default(), DataDir::new("/srv/anima"), Locale::En)?;
/// # let name: AnimaName = "sakura".parse().unwrap();
/// let sakura = host.resident(&name).await?;
/// let turn = sakura.anima.talk(Message::human("tanaka", "What is due today?")).await?;
/// println!("{}", sakura.anima.report(turn).await?.text);
/// sakura.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct InProcess {
    data: DataDir,
    settings: Settings,
    locale: Locale,
    zone: Tz,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    env: Env,
    engines: Engines,
    /// Instead of ours, when somebody brought others.
    other_engines: Option<Arc<dyn ExecutorSource>>,
    hands: Hands,
    company: Company,
    outside: Outside,
    tools: Vec<Arc<dyn Tool>>,
    meaning: OnceLock<Meaning>,
    residents: Mutex<BTreeMap<AnimaName, Resident>>,
}

/// An Anima that lives here, with its files and its memory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Resident {
    /// The Anima; the only way in is words.
    pub anima: Arc<dyn Anima>,
    /// What it remembers, for its owner to look at.
    pub memory: Arc<dyn MemoryStore>,
    /// Where its files are.
    pub dir: AnimaDir,
    files: Arc<FileMemory>,
}

impl Resident {
    /// Makes the process small while nobody says anything.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn rest(&self) {
        self.files.rest().await;
    }

    /// Lets it finish and puts it away.
    ///
    /// # Errors
    ///
    /// When something could not be made durable.
    ///
    /// # Cancel safety
    ///
    /// What was accepted is found at the next start.
    pub async fn close(&self) -> Result<(), AnimaError> {
        let ended = self.anima.shutdown(GRACE).await;
        self.files.close().await;
        ended
    }
}

impl InProcess {
    /// Opens an organisation. `locale` is used where its configuration names no language.
    ///
    /// # Errors
    ///
    /// [`AnimaError::Home`] when `config.json` cannot be read.
    pub fn open(env: Env, data: DataDir, locale: Locale) -> Result<Self, AnimaError> {
        let settings = Settings::load(&data)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let ids: Arc<dyn IdSource> = Arc::new(RandomIds);
        let locale = settings.locale.unwrap_or(locale);
        let engines = engines::engines(&env, &data, &settings, locale, &clock, &ids);
        let zone = settings.system.zone();
        let company = Company::new(&data, zone, &clock, &ids);
        Ok(Self {
            locale,
            zone,
            clock: clock.clone(),
            ids,
            engines,
            other_engines: None,
            hands: Hands::new(&env, clock.clone()),
            company,
            outside: outside::outside(&env, &data, &clock),
            env,
            tools: Vec::new(),
            meaning: OnceLock::new(),
            residents: Mutex::default(),
            settings,
            data,
        })
    }

    /// The same with another tool for everybody.
    #[must_use]
    pub fn with_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// The same with commands and the engines that are programs, which start through `program`: `animaworks`.
    /// With `animaworks-confine` commands run, and the programs find no tools of ours.
    #[must_use]
    pub fn with_program(mut self, program: PathBuf) -> Self {
        self.hands = self.hands.with_program(program.clone());
        let made = programs::programs(&self.env, &self.data, &self.hands, program, &self.engines);
        self.engines.programs = Some(made);
        self
    }

    /// The same with other engines.
    #[must_use]
    pub fn with_engines(mut self, engines: Arc<dyn ExecutorSource>) -> Self {
        self.other_engines = Some(engines);
        self
    }

    /// The language of the organisation.
    pub fn locale(&self) -> Locale {
        self.locale
    }

    /// Where its files are.
    pub fn data(&self) -> &DataDir {
        &self.data
    }

    /// Now, in the organisation's zone.
    pub fn now(&self) -> DateTime<Tz> {
        self.clock.now_in(self.zone)
    }

    /// Its Animas, by name.
    ///
    /// # Errors
    ///
    /// When the directory cannot be listed.
    pub fn names(&self) -> Result<Vec<AnimaName>, FileError> {
        organisation::names(&self.data)
    }

    /// Whether the model of an Anima can run here.
    ///
    /// # Errors
    ///
    /// The engine's own, with the remedy.
    pub fn can_run(&self, anima: &AnimaSettings) -> Result<(), ExecError> {
        self.engines().executor(&anima.model_for(&Trigger::Bootstrap)).map(|_| ())
    }

    /// The memory of an Anima, without waking it up. Whoever opened it closes it.
    ///
    /// # Errors
    ///
    /// [`AnimaError::UnknownAnima`], or when its directory cannot be used.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn memory(&self, name: &AnimaName) -> Result<Arc<FileMemory>, AnimaError> {
        let dir = self.dir(name)?;
        let mut options = memory_options(&self.settings, self.locale);
        match self.meaning() {
            Meaning::Model(model) => options.embedder = Some(model.clone()),
            Meaning::NotWanted => {}
            Meaning::Missing(why) => options.words_only = Some(why.clone()),
        }
        let memory = FileMemory::open(dir, self.zone, self.clock.clone(), options).await?;
        Ok(Arc::new(memory))
    }

    /// Wakes an Anima up, or gives the one that is awake.
    ///
    /// # Errors
    ///
    /// [`AnimaError::UnknownAnima`] with near names, [`AnimaError::Held`] when another process has it.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn resident(&self, name: &AnimaName) -> Result<Resident, AnimaError> {
        let mut residents = self.residents.lock().await;
        if let Some(resident) = residents.get(name) {
            return Ok(resident.clone());
        }
        let dir = self.dir(name)?;
        let files = self.memory(name).await?;
        let memory: Arc<dyn MemoryStore> = files.clone();
        let parts = self.parts(name, &dir, &memory);
        let anima: Arc<dyn Anima> = Arc::new(DigitalAnima::open(parts).await?);
        self.company.take_over(name).await;
        let resident = Resident { anima, memory, dir, files };
        residents.insert(name.clone(), resident.clone());
        Ok(resident)
    }

    /// What the gate would say to a call, without making it.
    ///
    /// # Errors
    ///
    /// [`AnimaError::UnknownAnima`], or when its directory cannot be used.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn decide(
        &self,
        name: &AnimaName,
        tool: &ToolName,
        args: &serde_json::Value,
        trigger: TriggerKind,
    ) -> Result<Decision, AnimaError> {
        let dir = self.dir(name)?;
        let files = self.memory(name).await?;
        let memory: Arc<dyn MemoryStore> = files.clone();
        let cx = ToolContext {
            anima: name.clone(),
            turn: self.ids.turn(),
            call: self.ids.call(),
            trigger,
            thread: ThreadId::main(),
            locale: self.locale,
            floor: Origin::human(),
            deadline: self.clock.now(),
            cancel: CancellationToken::new(),
            progress: mpsc::channel(1).0,
        };
        let decision = self.gate(&dir, &memory).decide(tool, args, &cx);
        files.close().await;
        Ok(decision)
    }

    /// The prompt of a turn that is not run, for a person to look at.
    ///
    /// # Errors
    ///
    /// [`AnimaError::UnknownAnima`], or when its files cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn sketch(&self, name: &AnimaName, trigger: Trigger) -> Result<Sketch, AnimaError> {
        let dir = self.dir(name)?;
        let files = self.memory(name).await?;
        let memory: Arc<dyn MemoryStore> = files.clone();
        let drawn = sketch(self.parts(name, &dir, &memory), trigger).await;
        files.close().await;
        drawn
    }

    /// The memory tools of an Anima for a client that no turn has started, without waking the Anima up. `wanted`
    /// chooses among the tools; without it all of them are there.
    ///
    /// # Errors
    ///
    /// [`AnimaError::UnknownAnima`], [`AnimaError::Refused`] for a tool that is not one of memory, or when its
    /// directory cannot be used.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn visit(&self, name: &AnimaName, wanted: Option<&[ToolName]>) -> Result<Visit, AnimaError> {
        let dir = self.dir(name)?;
        let memory = self.memory(name).await?;
        Visit::to_memory(self.home(&dir), memory, self.hands.permissions(&dir), wanted, self.ids.turn())
    }

    /// The tools for the outside that an Anima may use, for its owner to try, without waking the Anima up.
    ///
    /// # Errors
    ///
    /// [`AnimaError::UnknownAnima`], or when its directory cannot be used.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn visit_services(&self, name: &AnimaName) -> Result<Visit, AnimaError> {
        let dir = self.dir(name)?;
        let memory = self.memory(name).await?;
        let services = animaworks_tools::external_tools(&self.outside, self.locale);
        Ok(Visit::to_services(self.home(&dir), memory, self.hands.permissions(&dir), services, self.ids.turn()))
    }

    /// What the owner of an Anima allows it.
    ///
    /// # Errors
    ///
    /// [`AnimaError::UnknownAnima`].
    pub fn permissions(&self, name: &AnimaName) -> Result<EffectiveTable, AnimaError> {
        Ok(self.hands.permissions(&self.dir(name)?).table())
    }

    /// How far the kernel holds a command.
    pub fn sandbox_strength(&self) -> Enforced {
        self.hands.strength()
    }

    /// Where the weights of the embedder are, when they are here.
    pub fn weights(&self) -> Option<PathBuf> {
        let model = self.settings.rag.embedding_model.rsplit('/').next().unwrap_or_default();
        weights::find(&self.data.weights(), model, None).ok()
    }

    /// Why memory is searched by words only, when a model of meaning was wanted.
    pub fn words_only(&self) -> Option<String> {
        match self.meaning() {
            Meaning::Missing(why) => Some(why.clone()),
            Meaning::Model(_) | Meaning::NotWanted => None,
        }
    }

    fn meaning(&self) -> &Meaning {
        self.meaning.get_or_init(|| Meaning::open(&self.settings, self.weights().as_deref(), self.locale))
    }

    /// The tools of an Anima behind its owner's rules.
    fn gate(&self, dir: &AnimaDir, memory: &Arc<dyn MemoryStore>) -> Gate {
        let permissions = self.hands.permissions(dir);
        let mut tools = animaworks_tools::memory_tools(memory, self.locale);
        tools.extend(self.hands.tools(&permissions, self.locale));
        tools.extend(self.company.tools(&self.home(dir), memory, &self.settings, self.locale));
        tools.extend(animaworks_tools::external_tools(&self.outside, self.locale));
        tools.extend(self.tools.iter().cloned());
        Gate::new(tools, permissions)
    }

    fn parts(&self, name: &AnimaName, dir: &AnimaDir, memory: &Arc<dyn MemoryStore>) -> Parts {
        Parts {
            home: self.home(dir),
            memory: memory.clone(),
            engines: self.engines(),
            gate: self.gate(dir, memory),
            choices: Arc::new(FileChoices::new(self.data.clone(), name.clone())),
            ids: self.ids.clone(),
            post: Some(self.company.post()),
            tasks: Some(self.company.book()),
            holder: format!("pid {}", std::process::id()),
        }
    }

    fn engines(&self) -> Arc<dyn ExecutorSource> {
        self.other_engines.clone().unwrap_or_else(|| Arc::new(self.engines.clone()))
    }

    fn home(&self, dir: &AnimaDir) -> AnimaHome {
        AnimaHome::open(dir.clone(), self.zone, self.clock.clone()).with_locale(self.locale)
    }

    fn dir(&self, name: &AnimaName) -> Result<AnimaDir, AnimaError> {
        let dir = self.data.anima(name);
        if dir.root().is_dir() {
            return Ok(dir);
        }
        let names = self.names()?;
        let near = animaworks_core::gate::near(name.as_str(), names.iter().map(AnimaName::as_str), 3);
        Err(AnimaError::UnknownAnima { name: name.to_string(), near })
    }
}

#[async_trait]
impl Host for InProcess {
    async fn anima(&self, name: &AnimaName) -> Result<Arc<dyn Anima>, AnimaError> {
        Ok(self.resident(name).await?.anima)
    }

    async fn set_enabled(&self, name: &AnimaName, on: bool) -> Result<(), AnimaError> {
        animaworks_core::config::Status::set(&self.dir(name)?, "enabled", Some(on.into()))?;
        Ok(())
    }

    async fn restart(&self, name: &AnimaName) -> Result<(), AnimaError> {
        if let Some(resident) = self.residents.lock().await.remove(name) {
            resident.close().await?;
        }
        self.resident(name).await?;
        Ok(())
    }

    async fn reload(&self, name: &AnimaName) -> Result<(), AnimaError> {
        // settings are read again at every turn; what could not be read is said now
        let models = Models::load(&self.data, &self.settings);
        AnimaSettings::load(&self.data, name, &self.settings, &models)?;
        Ok(())
    }
}

/// What the configuration says about memory.
fn memory_options(settings: &Settings, locale: Locale) -> MemoryOptions {
    let priming = &settings.priming;
    let mut options = MemoryOptions::default();
    options.locale = locale;
    options.fusion = match settings.rag.fusion {
        FusionMode::Learned => Fusion::Learned,
        FusionMode::Score => Fusion::Score,
        FusionMode::Rrf => Fusion::Rrf,
    };
    options.budgets.dynamic = priming.dynamic_budget;
    options.budgets.greeting = priming.budget_greeting;
    options.budgets.question = priming.budget_question;
    options.budgets.request = priming.budget_request;
    options.budgets.heartbeat = priming.budget_heartbeat;
    options.budgets.heartbeat_share = priming.heartbeat_context_pct as f32;
    options
}

/// Now, in the zone that `settings` name.
pub fn now(settings: &Settings) -> DateTime<Tz> {
    let clock: &dyn Clock = &SystemClock::new();
    clock.now_in(settings.system.zone())
}
