//! The threads that compute: bounded, one core each, questions first.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::oneshot;

use super::{E5Options, EmbedError, EmbedKind, Model, Weights, release_pages, vector};

type Answer = Result<Vec<f32>, EmbedError>;

/// Workers and their queue. Dropping it lets each worker finish the text it has begun.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    // one thread per pool: a matrix product inside a text then stays on its thread
    _workers: Vec<ThreadPool>,
}

#[derive(Debug)]
struct Shared {
    weights: Arc<Weights>,
    options: E5Options,
    queue: Mutex<Queue>,
    wake: Condvar,
    model: Mutex<Option<Arc<Model>>>,
}

#[derive(Debug, Default)]
struct Queue {
    queries: VecDeque<Job>,
    passages: VecDeque<Job>,
    running: usize,
    closed: bool,
}

#[derive(Debug)]
struct Job {
    kind: EmbedKind,
    text: String,
    answer: oneshot::Sender<Answer>,
}

impl Pool {
    pub(super) fn new(weights: Arc<Weights>, options: E5Options) -> Result<Self, EmbedError> {
        let shared = Arc::new(Shared {
            weights,
            options,
            queue: Mutex::new(Queue::default()),
            wake: Condvar::new(),
            model: Mutex::new(None),
        });
        let mut workers = Vec::new();
        for number in 0..options.threads.max(1) {
            let builder = ThreadPoolBuilder::new().num_threads(1).thread_name(move |_| format!("embed-{number}"));
            let worker = builder.build().map_err(|error| EmbedError::Compute(Box::new(error)))?;
            let shared = Arc::clone(&shared);
            worker.spawn(move || shared.work());
            workers.push(worker);
        }
        Ok(Self { shared, _workers: workers })
    }

    /// Puts a text in line.
    pub(super) fn submit(&self, kind: EmbedKind, text: String) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        let job = Job { kind, text, answer };
        let mut queue = self.shared.queue();
        match kind {
            EmbedKind::Query => queue.queries.push_back(job),
            EmbedKind::Passage => queue.passages.push_back(job),
        }
        drop(queue);
        self.shared.wake.notify_one();
        receiver
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.shared.model_slot().is_some()
    }

    pub(super) fn unload(&self) {
        *self.shared.model_slot() = None;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn model_slot(&self) -> MutexGuard<'_, Option<Arc<Model>>> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The layers, read by whoever needs them first while the others wait.
    fn model(&self) -> Result<Arc<Model>, EmbedError> {
        let mut slot = self.model_slot();
        if let Some(model) = &*slot {
            return Ok(Arc::clone(model));
        }
        let model = Arc::new(Model::load(&self.weights)?);
        *slot = Some(Arc::clone(&model));
        Ok(model)
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            // nobody waits any more: the text was cancelled
            if !job.answer.is_closed() {
                let answer = self.model().and_then(|model| vector(&self.weights, &model, job.kind, &job.text));
                if job.answer.send(answer).is_err() {
                    tracing::trace!("a text was computed for nobody");
                }
            }
            self.queue().running -= 1;
        }
    }

    /// The next text; `None` when the pool is gone.
    fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(job) = queue.queries.pop_front() {
                queue.running += 1;
                return Some(job);
            }
            if let Some(job) = queue.passages.pop_front() {
                queue.running += 1;
                return Some(job);
            }
            let (back, waited) =
                self.wake.wait_timeout(queue, self.options.idle).unwrap_or_else(PoisonError::into_inner);
            queue = back;
            let idle =
                waited.timed_out() && queue.running == 0 && queue.queries.is_empty() && queue.passages.is_empty();
            if idle {
                let unloaded = self.model_slot().take();
                if unloaded.is_some() {
                    release_pages(&self.weights);
                    tracing::debug!("gave the layers of the embedder back");
                }
            }
        }
    }
}
