//! The thread a model lives on: one answer after the other, until nobody asks any more.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use animaworks_core::{Clock, ExecError, Locale, StopReason, Usage, t};
use tokio::sync::mpsc::Sender;

use super::{
    GgufCard,
    chat_template::{self, Part},
    decoder::{Decoder, Family},
    malformed, open,
    sampler::{Sampler, Sampling},
    vocabulary::{Spelling, Vocabulary},
};
use crate::basic::{TextAsk, TextEvent};

/// Tokens of a prompt that are read at once; between two reads it can be stopped.
const READ_AT_ONCE: usize = 256;
/// A prompt must leave room for at least so many tokens of an answer.
const LEAST_ANSWER: usize = 16;

/// One answer to write.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) ask: TextAsk,
    pub(super) out: Sender<Result<TextEvent, ExecError>>,
}

/// Where jobs are handed in, while there is a thread.
pub(super) type Desk = Mutex<Option<mpsc::Sender<Job>>>;

/// What the thread knows before it loads anything.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) path: PathBuf,
    pub(super) engine: String,
    pub(super) sampling: Sampling,
    pub(super) locale: Locale,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) loaded: Arc<AtomicBool>,
    /// Gone when the model has been dropped.
    pub(super) desk: Weak<Desk>,
}

/// A model in memory.
#[derive(Debug)]
struct Model {
    family: Family,
    decoder: Decoder,
    vocabulary: Vocabulary,
    window: usize,
    ends: Vec<u32>,
    /// What the decoder has read, in order.
    read: Vec<u32>,
}

/// Nobody listens any more.
struct Gone;

impl Room {
    /// Works until it has been idle for `idle`, or until the model is dropped.
    pub(super) fn run(&self, jobs: &mpsc::Receiver<Job>, idle: Duration) {
        let mut model = None;
        while let Some(job) = self.next(jobs, idle) {
            if job.out.is_closed() {
                continue;
            }
            if model.is_none() {
                match Model::load(&self.path) {
                    Ok(loaded) => model = Some(loaded),
                    Err(error) => {
                        tell(&job.out, error);
                        continue;
                    }
                }
                self.loaded.store(true, Ordering::Release);
            }
            if let Some(model) = &mut model {
                match self.answer(model, &job) {
                    Ok(Ok(()) | Err(Gone)) => {}
                    Err(error) => {
                        // whatever the decoder was in the middle of is not to be built upon
                        model.forget();
                        tell(&job.out, error);
                    }
                }
            }
        }
    }

    /// The next job. Without one the desk is closed under its lock, so that no job is handed to a thread that ends.
    fn next(&self, jobs: &mpsc::Receiver<Job>, idle: Duration) -> Option<Job> {
        match jobs.recv_timeout(idle) {
            Ok(job) => return Some(job),
            Err(mpsc::RecvTimeoutError::Disconnected) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Some(desk) = self.desk.upgrade() {
                    let mut work = desk.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Ok(job) = jobs.try_recv() {
                        return Some(job);
                    }
                    *work = None;
                    self.loaded.store(false, Ordering::Release);
                    return None;
                }
            }
        }
        self.loaded.store(false, Ordering::Release);
        None
    }

    fn answer(&self, model: &mut Model, job: &Job) -> Result<Result<(), Gone>, ExecError> {
        let broken = |error: candle_core::Error| malformed(&self.path, &error);
        let tokens =
            model.prompt(&job.ask).map_err(|detail| ExecError::Malformed { engine: self.engine.clone(), detail })?;
        let window = model.window.min(job.ask.model.window.get());
        if tokens.len() + LEAST_ANSWER > window {
            let detail = format!("{} tokens of {window}", tokens.len());
            return Err(ExecError::ContextOverflow { engine: self.engine.clone(), detail });
        }
        let longest = job.ask.model.max_output.get().min(window - tokens.len());

        // what both prompts begin with has been read; the last token is read again for what may follow it
        let same = model.read.iter().zip(&tokens).take_while(|(a, b)| a == b).count().min(tokens.len() - 1);
        model.back_to(same);
        let started = self.clock.elapsed();
        let new = tokens.get(same..).unwrap_or_default();
        let mut next = None;
        let mut left = new.len();
        for chunk in new.chunks(READ_AT_ONCE) {
            left -= chunk.len();
            next = model.take(chunk, left == 0).map_err(broken)?;
            if say(&job.out, Ok(TextEvent::Working)).is_err() {
                return Ok(Err(Gone));
            }
        }
        let read_in = self.clock.elapsed().saturating_sub(started);

        let mut sampler = Sampler::new(self.sampling);
        let mut spelling = Spelling::default();
        let mut said = Vec::new();
        let reason = loop {
            let Some(token) = next.take().and_then(|logits| sampler.pick(logits, &said)) else {
                break StopReason::End;
            };
            if model.ends.contains(&token) {
                break StopReason::End;
            }
            said.push(token);
            let text = spelling.push(&model.vocabulary.bytes(token));
            if !text.is_empty() && say(&job.out, Ok(TextEvent::Text(text))).is_err() || job.out.is_closed() {
                return Ok(Err(Gone));
            }
            if said.len() >= longest {
                break StopReason::Length;
            }
            next = model.take(&[token], true).map_err(broken)?;
        };
        let wrote_in = self.clock.elapsed().saturating_sub(started + read_in);
        let rest = spelling.finish();
        let usage = Usage {
            input_tokens: new.len() as u64,
            output_tokens: said.len() as u64,
            cache_read_tokens: same as u64,
            ..Usage::default()
        };
        let note = t!(
            self.locale,
            "exec.local.speed",
            read = new.len(),
            read_speed = speed(new.len(), read_in),
            wrote = said.len(),
            write_speed = speed(said.len(), wrote_in),
        );
        let mut last = vec![TextEvent::Usage(usage), TextEvent::Note(note), TextEvent::End(reason)];
        if !rest.is_empty() {
            last.insert(0, TextEvent::Text(rest));
        }
        Ok(last.into_iter().try_for_each(|event| say(&job.out, Ok(event))))
    }
}

/// Sends an event from the thread; waits while the reader is slow.
fn say(out: &Sender<Result<TextEvent, ExecError>>, event: Result<TextEvent, ExecError>) -> Result<(), Gone> {
    out.blocking_send(event).map_err(|closed| {
        tracing::trace!(%closed, "the reader has gone");
        Gone
    })
}

/// Sends a failure; a reader that has gone does not miss it.
fn tell(out: &Sender<Result<TextEvent, ExecError>>, error: ExecError) {
    if say(out, Err(error)).is_err() {
        tracing::debug!("a failure that nobody waits for");
    }
}

/// Tokens a second, to one decimal.
fn speed(tokens: usize, took: Duration) -> String {
    if took.is_zero() { "–".to_owned() } else { format!("{:.1}", tokens as f64 / took.as_secs_f64()) }
}

impl Model {
    fn load(path: &Path) -> Result<Self, ExecError> {
        let (content, mut file) = open(path)?;
        let (card, family) = GgufCard::of(path, &content)?;
        let detail = |detail: String| ExecError::Malformed { engine: super::engine(path), detail };
        let vocabulary = Vocabulary::of(&content).map_err(detail)?;
        let decoder = Decoder::load(family, &content, &mut file).map_err(|error| malformed(path, &error))?;
        let ends = chat_template::ends(family).iter().filter_map(|text| vocabulary.number(text));
        let ends = ends.chain(vocabulary.end).collect();
        tracing::info!(model = card.name, window = card.window.0, "loaded");
        Ok(Self { family, decoder, vocabulary, window: card.window.get(), ends, read: Vec::new() })
    }

    /// A conversation in the numbers of this model.
    fn prompt(&self, ask: &TextAsk) -> Result<Vec<u32>, String> {
        let parts = chat_template::render(self.family, &ask.system, &ask.messages, ask.model.thinking.is_some());
        let mut tokens: Vec<u32> = self.vocabulary.begin.into_iter().collect();
        for part in &parts {
            match part {
                Part::Control(text) => match self.vocabulary.number(text) {
                    Some(number) => tokens.push(number),
                    // a model that was never taught it reads it as text
                    None => tokens.extend(self.vocabulary.numbers(text, false)?),
                },
                Part::Text(text) => tokens.extend(self.vocabulary.numbers(text, tokens.is_empty())?),
            }
        }
        Ok(tokens)
    }

    fn take(&mut self, tokens: &[u32], wanted: bool) -> candle_core::Result<Option<Vec<f32>>> {
        let next = self.decoder.read(tokens, wanted)?;
        self.read.extend_from_slice(tokens);
        Ok(next)
    }

    fn back_to(&mut self, position: usize) {
        self.decoder.rewind(position);
        self.read.truncate(position);
    }

    fn forget(&mut self) {
        self.back_to(0);
    }
}
