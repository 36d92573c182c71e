//! A turn as a stream: the work lives it and sends what happens; leaving the stream ends the work.

use animaworks_core::{ExecError, ResultExt, StopReason, TurnEvent};
use async_stream::stream;
use futures_util::{StreamExt, stream::BoxStream};
use tokio::sync::mpsc;

/// Events between the work and its reader; a few lines of text ahead.
const EVENT_BUFFER: usize = 64;

/// The stream of a turn. Everything the turn waits for has to be inside `work`, which ends with the stream.
pub(crate) fn live<W>(work: impl FnOnce(Out) -> W + Send + 'static) -> BoxStream<'static, Result<TurnEvent, ExecError>>
where
    W: Future<Output = Result<StopReason, ExecError>> + Send + 'static,
{
    stream! {
        let (sender, mut events) = mpsc::channel(EVENT_BUFFER);
        let mut work = Box::pin(work(Out(sender)));
        let end = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => yield Ok(event),
                end = &mut work => break end,
            }
        };
        drop(work);
        while let Ok(event) = events.try_recv() {
            yield Ok(event);
        }
        yield end.map(TurnEvent::Completed);
    }
    .boxed()
}

/// Where a turn's events go.
#[derive(Debug, Clone)]
pub(crate) struct Out(mpsc::Sender<TurnEvent>);

impl Out {
    /// Sends one event; waits while the reader is slow.
    pub(crate) async fn send(&self, event: TurnEvent) {
        self.0.send(event).await.ignore("nobody reads a turn that is being dropped");
    }

    /// Sends several, in order.
    pub(crate) async fn send_all(&self, events: Vec<TurnEvent>) {
        for event in events {
            self.send(event).await;
        }
    }
}
