//! Everything is dropped at some step and opened again from the files.

use pretty_assertions::assert_eq;

use super::{kit::Kit, *};
use crate::{home::journal::CallStatus, test_support::FakeTool};

fn words(anima: &DigitalAnima) -> Vec<String> {
    let turns = anima.home().conversation(&ThreadId::main()).unwrap().conversation.turns;
    turns.into_iter().map(|turn| turn.content).collect()
}

const MARK: &str = "（ここで応答が中断されました）";

#[tokio::test]
async fn accepted_and_never_begun_is_told() {
    let kit = Kit::new();
    let (engine, _hand) = puppet();
    let anima = kit.open(engine).await;
    let message = say("消えないで");
    let turn = anima.talk(message.clone()).await.unwrap();
    // nothing of the turn has run yet: this runtime has one thread
    kit.end(anima).await;

    let engine = ScriptedExecutor::default();
    let anima = kit.open(engine.clone()).await;
    assert_eq!(words(&anima), ["消えないで", MARK]);
    assert_eq!(ended(&anima, turn.clone()).await.stop, StopKind::Interrupted);
    assert_eq!(anima.talk(message).await.unwrap(), turn, "the same id is the same turn");
    assert!(engine.requests().is_empty(), "no model is called for it");
    let events: Vec<_> = anima.events(None).take(1).collect().await;
    assert!(matches!(&events[0], Ok(Numbered { event: AnimaEvent::Recovered { characters: 0, .. }, .. })));
}

#[tokio::test]
async fn what_was_accepted_is_in_the_activity_log_too() {
    let kit = Kit::new();
    let anima = kit.open(ScriptedExecutor::default()).await;
    // a process that dies right here has told only the conversation
    anima.home().accept(&say("残して")).unwrap();
    kit.end(anima).await;

    for _ in 0..2 {
        let anima = kit.open(ScriptedExecutor::default()).await;
        let logged = anima.home().recent(1, 50).unwrap();
        let received: Vec<_> = logged.iter().filter(|line| line.activity.kind == "message_received").collect();
        assert_eq!(received.len(), 1);
        assert_eq!(received[0].activity.content, "残して");
        kit.end(anima).await;
    }
}

#[tokio::test]
async fn a_partial_answer_is_kept_once_and_marked() {
    let kit = Kit::new();
    let (engine, mut hand) = puppet();
    let anima = kit.open(engine).await;
    let turn = anima.talk(say("話して")).await.unwrap();
    let run = hand.next_run().await;
    run.say("むかしむかし");
    kit.until_text(&anima, &turn, "むかしむかし").await;
    kit.until_journal(&anima, "むかしむかし").await;
    kit.end(anima).await;

    for _ in 0..3 {
        let anima = kit.open(ScriptedExecutor::default()).await;
        assert_eq!(words(&anima), ["話して".to_owned(), format!("むかしむかし\n{MARK}")]);
        let errors = anima.home().recent(1, 50).unwrap();
        assert_eq!(errors.iter().filter(|line| line.activity.kind == "error").count(), 1);
        assert!(anima.home().orphans().unwrap().is_empty());
        kit.end(anima).await;
    }
}

#[tokio::test]
async fn a_tool_with_an_effect_is_known_after_a_crash_and_not_run_again() {
    let kit = Kit::new();
    let tool = FakeTool::new("send", Effect::Communicates);
    let kit = kit.with_tool(tool.clone());
    let (engine, mut hand) = puppet();
    let anima = kit.open(engine).await;
    let turn = anima.talk(say("送って")).await.unwrap();
    let run = hand.next_run().await;
    run.call("send", "{\"to\":\"kaede\"}");
    run.say("送りま");
    kit.until_text(&anima, &turn, "送りま").await;
    // the start of a call is waited for, its end goes to the disk with the words after it
    kit.until_journal(&anima, "送りま").await;
    let calls = anima.home().orphans().unwrap().remove(0).calls;
    assert_eq!(calls[0].status, CallStatus::Completed, "before the crash it is on disk");
    kit.end(anima).await;

    let anima = kit.open(ScriptedExecutor::default()).await;
    let turns = anima.home().conversation(&ThreadId::main()).unwrap().conversation.turns;
    assert_eq!(turns[1].tool_records.len(), 1, "the Anima knows what it did");
    assert_eq!(tool.calls(), 1);
}

#[tokio::test]
async fn words_that_wait_reach_the_disk_within_a_second() {
    let kit = Kit::new();
    let (engine, mut hand) = puppet();
    let anima = kit.open(engine).await;
    let turn = anima.talk(say("話して")).await.unwrap();
    let run = hand.next_run().await;
    run.say("短い");
    kit.until_text(&anima, &turn, "短い").await;
    assert_eq!(anima.home().orphans().unwrap()[0].text, "", "it waits for more");
    kit.until_journal(&anima, "短い").await;
}

#[tokio::test]
async fn queued_messages_survive_too() {
    let kit = Kit::new();
    let (engine, mut hand) = puppet();
    let anima = kit.open(engine).await;
    anima.talk(say("一")).await.unwrap();
    let _run = hand.next_run().await;
    for words in ["二", "三"] {
        anima.talk(say(words)).await.unwrap();
    }
    kit.end(anima).await;
    let anima = kit.open(ScriptedExecutor::saying(["はい"])).await;
    assert_eq!(words(&anima), ["一", MARK, "二", MARK, "三", MARK]);
    let turn = anima.talk(say("四")).await.unwrap();
    assert_eq!(ended(&anima, turn).await.text, "はい");
}

#[tokio::test]
async fn a_broken_round_leaves_a_note_for_the_next() {
    let kit = Kit::new();
    let (engine, mut hand) = puppet();
    let anima = kit.open(engine).await;
    let turn = anima.wake(Trigger::Heartbeat).await.unwrap();
    let run = hand.next_run().await;
    run.say("受信箱を見て");
    kit.until_text(&anima, &turn, "受信箱を見て").await;
    kit.until_journal(&anima, "受信箱を見て").await;
    kit.end(anima).await;

    let engine = ScriptedExecutor::saying(["HEARTBEAT_OK"]);
    let anima = kit.open(engine.clone()).await;
    let note = anima.home().recovery_note().unwrap().expect("a note");
    let turn = anima.wake(Trigger::Heartbeat).await.unwrap();
    ended(&anima, turn).await;
    assert!(engine.requests()[0].prompt.last_words().contains(note.trim()));
    assert_eq!(anima.home().recovery_note().unwrap(), None, "it is shown once");
    assert!(words(&anima).is_empty(), "a round does not speak to people");
}

#[tokio::test]
async fn dropped_after_any_event_nothing_is_lost_and_nothing_happens_twice() {
    for step in 0.. {
        let kit = Kit::new();
        let tool = FakeTool::new("send", Effect::Communicates);
        let kit = kit.with_tool(tool.clone());
        let steps = vec![Step::text("まず"), Step::call("send", "{}"), Step::text("送りました")];
        let anima = kit.open(script(steps)).await;
        let turn = anima.talk(say("送って")).await.unwrap();
        let seen: Vec<LifeEvent> =
            anima.watch(turn.clone(), None).take(step).map(|event| event.unwrap().event).collect().await;
        kit.end(anima).await;
        let called = tool.calls();

        let again = ScriptedExecutor::default();
        let anima = kit.open(again.clone()).await;
        let turns = anima.home().conversation(&ThreadId::main()).unwrap().conversation.turns;
        assert_eq!(turns.len(), 2, "step {step}: {turns:?}");
        assert_eq!(turns[0].content, "送って");
        let records = &turns[1].tool_records;
        assert!(records.len() >= called, "step {step}: what was done is known");
        if records.len() > called {
            // noted as begun, and the process died before it ran: nobody can tell, and it says so
            assert_eq!(records[0].result_summary, "（行われたかどうか不明）");
        }
        assert!(called <= 1 && again.requests().is_empty());
        assert!(anima.home().orphans().unwrap().is_empty());
        if matches!(seen.last(), Some(LifeEvent::Done(_))) {
            assert_eq!(turns[1].content, "まず送りました");
            assert!(step > 5, "{seen:?}");
            return;
        }
    }
}

impl Kit {
    /// Waits until the journal has some words; time passes meanwhile.
    async fn until_journal(&self, anima: &DigitalAnima, text: &str) {
        for round in 0..20_000 {
            // the words may still be on their way to the journal when time passes
            if round % 100 == 0 {
                self.clock.advance(Duration::from_secs(1));
            }
            let orphans = anima.home().orphans().unwrap();
            if orphans.iter().any(|orphan| orphan.text.contains(text)) {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{text} never reached the journal");
    }
}
