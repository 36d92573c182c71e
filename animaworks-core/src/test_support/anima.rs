//! An Anima that repeats what it hears.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream, stream::BoxStream};

use crate::{
    anima::{
        Anima, AnimaError, AnimaEvent, AnimaStatus, CycleAction, CycleReport, LifeEvent, Numbered, Scope, StopKind,
    },
    ids::{AnimaName, ThreadId, TurnId},
    message::Message,
    trigger::Trigger,
    units::{Seq, Usage},
};

/// Answers every message with its own words; the same message id gives the same turn.
#[derive(Debug)]
pub struct FakeAnima {
    name: AnimaName,
    turns: Mutex<BTreeMap<TurnId, CycleReport>>,
}

impl FakeAnima {
    /// One of that name.
    pub fn new(name: AnimaName) -> Self {
        Self { name, turns: Mutex::default() }
    }

    fn record(&self, turn: TurnId, trigger: &Trigger, text: String) -> TurnId {
        let report = CycleReport {
            turn: turn.clone(),
            trigger: trigger.to_string(),
            action: if text.is_empty() { CycleAction::Idle } else { CycleAction::Responded },
            stop: StopKind::Normal,
            text,
            thinking: String::new(),
            thread: ThreadId::main(),
            model: None,
            mode: None,
            usage: Usage::default(),
            tools: Vec::new(),
            chains: 0,
            duration_ms: 0,
            ended_at: chrono::DateTime::UNIX_EPOCH,
            error: None,
            notes: Vec::new(),
        };
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).entry(turn.clone()).or_insert(report);
        turn
    }
}

#[async_trait]
impl Anima for FakeAnima {
    fn name(&self) -> &AnimaName {
        &self.name
    }

    async fn talk(&self, message: Message) -> Result<TurnId, AnimaError> {
        let refused = |error: crate::ids::BadId| AnimaError::Refused { code: "bad_id", reason: error.to_string() };
        let turn = TurnId::new(message.id.as_str()).map_err(refused)?;
        let text = message.text.clone();
        Ok(self.record(turn, &Trigger::Chat(Box::new(message)), text))
    }

    async fn wake(&self, trigger: Trigger) -> Result<TurnId, AnimaError> {
        let n = self.turns.lock().unwrap_or_else(PoisonError::into_inner).len();
        let refused = |error: crate::ids::BadId| AnimaError::Refused { code: "bad_id", reason: error.to_string() };
        let turn = TurnId::new(format!("wake-{n}")).map_err(refused)?;
        Ok(self.record(turn, &trigger, String::new()))
    }

    fn watch(&self, turn: TurnId, after: Option<Seq>) -> BoxStream<'static, Result<Numbered<LifeEvent>, AnimaError>> {
        let report = self.turns.lock().unwrap_or_else(PoisonError::into_inner).get(&turn).cloned();
        let Some(report) = report else {
            return stream::iter([Err(AnimaError::UnknownTurn { turn })]).boxed();
        };
        let events =
            [LifeEvent::Accepted { turn }, LifeEvent::Text(report.text.clone()), LifeEvent::Done(Box::new(report))];
        let numbered = events.into_iter().zip(1..).map(|(event, n)| Numbered { seq: Seq(n), event });
        stream::iter(numbered.filter(move |event| after.is_none_or(|after| event.seq > after)).map(Ok)).boxed()
    }

    async fn interrupt(&self, _scope: Scope) -> Result<(), AnimaError> {
        Ok(())
    }

    async fn status(&self) -> Result<AnimaStatus, AnimaError> {
        Ok(AnimaStatus { name: self.name.clone(), enabled: true, running: Vec::new(), waiting: 0, model: None })
    }

    fn events(&self, _after: Option<Seq>) -> BoxStream<'static, Result<Numbered<AnimaEvent>, AnimaError>> {
        stream::pending().boxed()
    }

    async fn shutdown(&self, _grace: Duration) -> Result<(), AnimaError> {
        Ok(())
    }
}
