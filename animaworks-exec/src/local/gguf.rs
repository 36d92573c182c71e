//! `local/<model>`: a GGUF model of the gemma3 or qwen3 family in this process.
//!
//! The weights are loaded when the first turn needs them, live on a thread of their own,
//! and are given back when nobody has asked for a while. A conversation that begins like
//! the one before is not read again from its beginning.

mod chat_template;
mod decoder;
mod room;
mod sampler;
mod vocabulary;

use std::{
    collections::HashMap,
    fmt,
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use animaworks_core::{Clock, ExecError, Locale, ResultExt, Tokens};
use candle_core::quantized::gguf_file::Content;
use futures_util::{StreamExt, stream::BoxStream};

pub use self::sampler::Sampling;
use self::{
    decoder::Family,
    room::{Desk, Job, Room},
};
use crate::basic::{TextAsk, TextEvent, TextModel};

/// Events that may wait for a slow reader.
const WAITING_EVENTS: usize = 64;

/// What a GGUF file says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufCard {
    /// The file.
    pub path: PathBuf,
    /// What the file calls its model, such as `Gemma 3 270m`.
    pub name: String,
    /// The architecture, such as `gemma3`.
    pub architecture: String,
    /// The context window it was made for.
    pub window: Tokens,
}

impl GgufCard {
    /// Reads a file's description, without its weights.
    ///
    /// # Errors
    ///
    /// [`ExecError::NotInstalled`] when there is no such file, [`ExecError::Malformed`] when it is no GGUF,
    /// [`ExecError::Rejected`] when its family is not known here.
    pub fn read(path: &Path) -> Result<Self, ExecError> {
        let (content, _) = open(path)?;
        Self::of(path, &content).map(|(card, _)| card)
    }

    fn of(path: &Path, content: &Content) -> Result<(Self, Family), ExecError> {
        let text = |key: &str| {
            let value = content.metadata.get(key)?;
            value.to_string().ok().cloned()
        };
        let architecture = text("general.architecture").unwrap_or_default();
        let family = Family::of(&architecture).ok_or_else(|| ExecError::Rejected {
            engine: engine(path),
            status: 0,
            detail: format!("models of the family {architecture:?} are not known here; gemma3 and qwen3 are"),
        })?;
        let window = content.metadata.get(&format!("{architecture}.context_length"));
        let window = window.and_then(|value| value.to_u32().ok()).unwrap_or(8192);
        let name = text("general.name").unwrap_or_else(|| engine(path));
        Ok((Self { path: path.to_owned(), name, architecture, window: Tokens(window) }, family))
    }
}

/// Finds a model: a path to a `.gguf` file, or the name of a file or directory under `models`
/// (with or without `.gguf`).
///
/// # Errors
///
/// [`ExecError::NotInstalled`] says where was looked.
pub fn locate(model: &str, models: &Path) -> Result<PathBuf, ExecError> {
    let name = model.strip_prefix("local/").unwrap_or(model);
    let given = PathBuf::from(name);
    let mut places = vec![models.join(name), models.join(format!("{name}.gguf"))];
    if given.is_absolute() {
        places = vec![given];
    } else if name.split('/').any(|part| part == "..") {
        places.clear();
    }
    for place in &places {
        if place.is_file() {
            return Ok(place.clone());
        }
        if place.is_dir()
            && let Some(files) = fs_err::read_dir(place).log_err("looking for models")
        {
            let mut files: Vec<PathBuf> = files
                .filter_map(|file| Some(file.log_err("looking for models")?.path()))
                .filter(|path| path.extension().is_some_and(|extension| extension == "gguf"))
                .collect();
            files.sort();
            if let Some(first) = files.into_iter().next() {
                return Ok(first);
            }
        }
    }
    let looked = places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ");
    Err(ExecError::NotInstalled { engine: format!("local/{name}"), detail: looked })
}

/// The GGUF models of a data directory; each is loaded at most once.
#[derive(Debug)]
pub struct LocalModels {
    directory: PathBuf,
    locale: Locale,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<PathBuf, Arc<GgufModel>>>,
}

impl LocalModels {
    /// The models under `directory` (`{data}/models`). Notes are in `locale`.
    pub fn new(directory: PathBuf, locale: Locale, clock: Arc<dyn Clock>) -> Self {
        Self { directory, locale, clock, known: Mutex::default() }
    }

    /// The model of a name such as `local/gemma-3-270m` or `local//srv/models/qwen3.gguf`.
    ///
    /// # Errors
    ///
    /// As [`locate`] and [`GgufCard::read`].
    pub fn model(&self, name: &str) -> Result<Arc<GgufModel>, ExecError> {
        let path = locate(name, &self.directory)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = known.get(&path) {
            return Ok(model.clone());
        }
        let card = GgufCard::read(&path)?;
        let model = Arc::new(GgufModel::new(card, self.locale, self.clock.clone()));
        known.insert(path, model.clone());
        Ok(model)
    }
}

/// A GGUF model as a [`TextModel`].
pub struct GgufModel {
    card: GgufCard,
    engine: String,
    sampling: Sampling,
    idle: Duration,
    locale: Locale,
    clock: Arc<dyn Clock>,
    loaded: Arc<AtomicBool>,
    /// Where the thread with the weights takes its work, while there is one.
    thread: Arc<Desk>,
}

impl fmt::Debug for GgufModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GgufModel").field("card", &self.card).field("sampling", &self.sampling).finish()
    }
}

impl GgufModel {
    /// A model that is loaded when it is first asked. Notes are in `locale`.
    pub fn new(card: GgufCard, locale: Locale, clock: Arc<dyn Clock>) -> Self {
        Self {
            engine: engine(&card.path),
            card,
            sampling: Sampling::default(),
            idle: Duration::from_secs(300),
            locale,
            clock,
            loaded: Arc::default(),
            thread: Arc::default(),
        }
    }

    /// The same with another way to pick words.
    #[must_use]
    pub fn with_sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// The same that gives its weights back after `idle` without work; five minutes by default.
    #[must_use]
    pub fn idle_after(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// What it is.
    pub fn card(&self) -> &GgufCard {
        &self.card
    }

    /// Whether the weights are in memory now.
    pub fn is_loaded(&self) -> bool {
        self.loaded.load(Ordering::Acquire)
    }

    /// Hands a job to the thread; starts one when there is none.
    fn hand_over(&self, job: Job) -> Result<(), ExecError> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let job = match thread.as_ref() {
            None => job,
            Some(work) => match work.send(job) {
                Ok(()) => return Ok(()),
                // it has been idle and is gone
                Err(mpsc::SendError(job)) => job,
            },
        };
        let (work, jobs) = mpsc::channel();
        let room = Room {
            path: self.card.path.clone(),
            engine: self.engine.clone(),
            sampling: self.sampling,
            locale: self.locale,
            clock: self.clock.clone(),
            loaded: self.loaded.clone(),
            desk: Arc::downgrade(&self.thread),
        };
        let idle = self.idle;
        let lost = |detail: String| ExecError::Interrupted { engine: self.engine.clone(), detail };
        // the thread ends by itself: when it is idle, or when this model is dropped
        // the work is there before the thread, which could be idle before it came
        work.send(job).map_err(|error| lost(error.to_string()))?;
        let started = std::thread::Builder::new().name("gguf".to_owned()).spawn(move || room.run(&jobs, idle));
        started.map_err(|error| lost(format!("no thread: {error}")))?;
        *thread = Some(work);
        Ok(())
    }
}

impl TextModel for GgufModel {
    fn name(&self) -> &str {
        &self.engine
    }

    fn needs_network(&self) -> bool {
        false
    }

    fn write(&self, ask: TextAsk) -> BoxStream<'static, Result<TextEvent, ExecError>> {
        let (out, events) = tokio::sync::mpsc::channel(WAITING_EVENTS);
        if let Err(error) = self.hand_over(Job { ask, out }) {
            return futures_util::stream::iter([Err(error)]).boxed();
        }
        futures_util::stream::unfold(events, |mut events| async move { Some((events.recv().await?, events)) }).boxed()
    }
}

/// A model's name in errors.
fn engine(path: &Path) -> String {
    format!("local/{}", path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default())
}

fn open(path: &Path) -> Result<(Content, File), ExecError> {
    let mut file = fs_err::File::open(path)
        .map_err(|error| ExecError::NotInstalled { engine: engine(path), detail: error.to_string() })?
        .into_file();
    let mut reader = std::io::BufReader::new(&mut file);
    let content = Content::read(&mut reader).map_err(|error| malformed(path, &error))?;
    Ok((content, file))
}

fn malformed(path: &Path, error: &candle_core::Error) -> ExecError {
    // the first line is the reason, the rest a trace of calls
    let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
    ExecError::Malformed { engine: engine(path), detail: format!("{}: {reason}", path.display()) }
}
