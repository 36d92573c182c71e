//! The life under test: scripted engines, real files, a clock turned by hand.

#![allow(redundant_imports, reason = "each file of tests names what it uses")]

mod crash;
mod kit;

use std::time::Duration;

use futures_util::StreamExt;
use pretty_assertions::assert_eq;

use self::kit::{Kit, Step, all_events, puppet, script, text_of};
use super::*;
use crate::{
    Locale,
    error::{ErrorKind, Fault},
    event::TurnEvent,
    executor::{Checkpoint, ExecError, PromptMessage},
    home::{
        activity::{Activity, ActivityQuery},
        post_office::FilePostOffice,
    },
    seams::PostOffice,
    test_support::{FakeTool, ScriptedExecutor},
    tool::Effect,
    trigger::Night,
    trust::Origin,
};

fn say(text: &str) -> Message {
    Message::human("tanaka", text)
}

async fn ended(anima: &DigitalAnima, turn: TurnId) -> CycleReport {
    (anima as &dyn Anima).report(turn).await.unwrap()
}

#[tokio::test]
async fn a_chat_turn_is_answered_kept_and_reported() {
    let kit = Kit::new();
    let engine = ScriptedExecutor::new([vec![
        TurnEvent::Text("はい、".into()),
        TurnEvent::Text("送りました。\n<!-- emo".into()),
        TurnEvent::Text("tion: {\"emotion\": \"smile\"} -->".into()),
        TurnEvent::Usage(Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() }),
    ]]);
    let anima = kit.open(engine.clone()).await;
    let turn = anima.talk(say("見積書は送った？")).await.unwrap();
    let events = all_events(&anima, &turn).await;
    assert_eq!(text_of(&events), "はい、送りました。\n");
    assert!(events.contains(&LifeEvent::Emotion("smile".into())), "{events:?}");
    assert!(matches!(events.first(), Some(LifeEvent::Accepted { .. })));
    let report = ended(&anima, turn).await;
    assert_eq!((report.text.as_str(), report.action), ("はい、送りました。", CycleAction::Responded));
    assert_eq!(report.usage.input_tokens, 10);

    let home = anima.home();
    let turns = home.conversation(&ThreadId::main()).unwrap().conversation.turns;
    assert_eq!(
        turns.iter().map(|t| t.content.as_str()).collect::<Vec<_>>(),
        ["見積書は送った？", "はい、送りました。"]
    );
    let kinds: Vec<String> = home.recent(1, 10).unwrap().into_iter().map(|line| line.activity.kind).collect();
    assert_eq!(kinds, ["message_received", "response_sent"]);
    assert!(home.orphans().unwrap().is_empty(), "the journal is gone");
    assert_eq!(home.usage(home.today()).unwrap().len(), 1);
    assert_eq!(home.transcript(home.today()).unwrap().len(), 2);

    let request = &engine.requests()[0];
    assert_eq!(request.prompt.last_words(), "見積書は送った？");
    assert!(request.prompt.system.contains("sakura"));
}

#[tokio::test]
async fn the_instructions_of_the_first_run_go_with_the_turn_that_makes_it_somebody() {
    let kit = Kit::new();
    let anima = kit.open(ScriptedExecutor::saying(["who am I?", "I am sakura"])).await;
    let dir = anima.home().dir().clone();
    let write = |name: &str, text: &str| fs_err::write(dir.file(name), text).unwrap();
    write("bootstrap.md", "Find out who you are.");
    write("identity.md", "# Identity\n\n(undefined)\n");
    write("injection.md", "Answers letters.");
    let turn = anima.talk(say("hello")).await.unwrap();
    ended(&anima, turn).await;
    assert!(dir.file("bootstrap.md").exists(), "nobody has said yet who it is");
    write("identity.md", "Calm and exact.");
    let turn = anima.talk(say("and now?")).await.unwrap();
    ended(&anima, turn).await;
    assert!(!dir.file("bootstrap.md").exists());
    assert!(dir.archive().join("bootstrap.md").exists());
}

#[tokio::test]
async fn the_second_turn_knows_the_first() {
    let kit = Kit::new();
    let engine = ScriptedExecutor::saying(["一つ目", "二つ目"]);
    let anima = kit.open(engine.clone()).await;
    for words in ["はじめ", "つぎ"] {
        let turn = anima.talk(say(words)).await.unwrap();
        ended(&anima, turn).await;
    }
    let messages = engine.requests()[1].prompt.messages.clone();
    let words: Vec<&str> = messages
        .iter()
        .map(|message| match message {
            PromptMessage::User { text, .. } | PromptMessage::Assistant { text, .. } => text.as_str(),
            PromptMessage::ToolResult { text, .. } => text.as_str(),
        })
        .collect();
    assert_eq!(words, ["はじめ", "一つ目", "つぎ"]);
}

#[tokio::test]
async fn a_tool_turn_is_written_down_before_and_after() {
    let kit = Kit::new();
    let tool = FakeTool::new("write_note", Effect::Remembers);
    let anima = kit
        .with_tool(tool.clone())
        .open(script(vec![Step::call("write_note", "{\"a\":1}"), Step::text("書いた")]))
        .await;
    let turn = anima.talk(say("書いて")).await.unwrap();
    let events = all_events(&anima, &turn).await;
    assert!(events.iter().any(|e| matches!(e, LifeEvent::ToolStarted { .. })), "{events:?}");
    assert!(events.iter().any(|e| matches!(e, LifeEvent::ToolEnded { is_error: false, .. })));
    assert_eq!(tool.calls(), 1);
    let report = ended(&anima, turn).await;
    assert_eq!(report.tools.len(), 1);
    let kinds: Vec<String> = anima.home().recent(1, 10).unwrap().into_iter().map(|l| l.activity.kind).collect();
    assert_eq!(kinds, ["message_received", "tool_use", "tool_result", "response_sent"]);
    let turns = anima.home().conversation(&ThreadId::main()).unwrap().conversation.turns;
    assert_eq!(turns[1].tool_records.len(), 1);
}

#[tokio::test]
async fn the_same_message_twice_is_one_turn_even_after_a_restart() {
    let kit = Kit::new();
    let engine = ScriptedExecutor::saying(["一度だけ"]);
    let message = say("やあ");
    let anima = kit.open(engine.clone()).await;
    let first = anima.talk(message.clone()).await.unwrap();
    assert_eq!(anima.talk(message.clone()).await.unwrap(), first);
    ended(&anima, first.clone()).await;
    kit.end(anima).await;

    let anima = kit.open(engine.clone()).await;
    let again = anima.talk(message).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(ended(&anima, again).await.text, "一度だけ");
    assert_eq!(engine.requests().len(), 1);
    assert_eq!(anima.home().conversation(&ThreadId::main()).unwrap().conversation.turns.len(), 2);
}

#[tokio::test]
async fn a_message_in_a_busy_thread_interrupts_and_is_answered_next() {
    let kit = Kit::new();
    let (engine, mut hand) = puppet();
    let anima = kit.open(engine).await;
    let first = anima.talk(say("長い話をして")).await.unwrap();
    let run = hand.next_run().await;
    run.say("むかしむかし");
    kit.until_text(&anima, &first, "むかしむかし").await;
    let second = anima.talk(say("やっぱり短く")).await.unwrap();
    let report = ended(&anima, first).await;
    assert_eq!((report.stop, report.action), (StopKind::Interrupted, CycleAction::Cancelled));
    assert_eq!(report.text, "むかしむかし");
    let run = hand.next_run().await;
    run.say("はい。");
    run.end();
    assert_eq!(ended(&anima, second).await.text, "はい。");
    let turns = anima.home().conversation(&ThreadId::main()).unwrap().conversation.turns;
    let words: Vec<&str> = turns.iter().map(|turn| turn.content.as_str()).collect();
    assert_eq!(words, ["長い話をして", "むかしむかし\n（ここで応答が中断されました）", "やっぱり短く", "はい。"]);
}

#[tokio::test]
async fn a_chat_does_not_wait_for_a_heartbeat_nor_for_another_thread() {
    let kit = Kit::new();
    let (engine, mut hand) = puppet();
    let anima = kit.open(engine).await;
    let heartbeat = anima.wake(Trigger::Heartbeat).await.unwrap();
    let slow = hand.next_run().await;
    let other = anima.talk(say("別の話").in_thread(ThreadId::new("t2").unwrap())).await.unwrap();
    let other_run = hand.next_run().await;
    let turn = anima.talk(say("おはよう")).await.unwrap();
    let run = hand.next_run().await;
    run.say("おはようございます");
    run.end();
    assert_eq!(ended(&anima, turn).await.text, "おはようございます");
    let status = anima.status().await.unwrap();
    assert_eq!((status.running.len(), status.waiting), (2, 0));
    slow.say("HEARTBEAT_OK");
    slow.end();
    assert_eq!(ended(&anima, heartbeat).await.action, CycleAction::Idle);
    other_run.end();
    assert_eq!(ended(&anima, other).await.stop, StopKind::EmptyResponse);
}

#[tokio::test]
async fn a_lane_takes_one_waiting_turn_of_a_kind() {
    let kit = Kit::new();
    let (engine, mut hand) = puppet();
    let anima = kit.open(engine).await;
    anima.wake(Trigger::Heartbeat).await.unwrap();
    let first = hand.next_run().await;
    let waiting = anima.wake(Trigger::Cron { job: "日報".into() }).await.unwrap();
    assert!(matches!(anima.wake(Trigger::Cron { job: "日報".into() }).await, Err(AnimaError::Busy { .. })));
    assert_eq!(anima.status().await.unwrap().waiting, 1);
    first.end();
    let second = hand.next_run().await;
    second.say("まとめた");
    second.end();
    assert_eq!(ended(&anima, waiting).await.text, "まとめた");
}

#[tokio::test]
async fn every_trigger_takes_the_same_path() {
    let kit = Kit::new();
    let tool = FakeTool::new("Bash", Effect::Acts);
    let engine = ScriptedExecutor::saying(vec!["x"; 6]);
    let anima = kit.with_tool(tool).open(engine.clone()).await;
    let triggers = [
        Trigger::Greet { user: "tanaka".into() },
        Trigger::Bootstrap,
        Trigger::Heartbeat,
        Trigger::Cron { job: "日報".into() },
        Trigger::Consolidation(Night::Daily),
        Trigger::Inbox { from: vec!["kaede".into()] },
    ];
    for trigger in triggers {
        let turn = anima.wake(trigger.clone()).await.unwrap();
        let report = ended(&anima, turn).await;
        assert_eq!((report.text.as_str(), &report.error), ("x", &None), "{trigger:?}");
    }
    let requests = engine.requests();
    assert!(requests[2].prompt.last_words().contains("HEARTBEAT_OK"));
    assert!(!requests[2].prompt.system.contains("Bash"), "a round is offered nothing that acts");
    let turns = anima.home().conversation(&ThreadId::main()).unwrap().conversation.turns;
    assert_eq!(turns.len(), 2, "only greeting and bootstrap speak to people");
}

#[tokio::test]
async fn a_letter_is_noted_once_however_often_it_is_taken_up() {
    let kit = Kit::new();
    let failing = script(vec![
        Step::Fail(ExecError::Quota { engine: "x".into(), detail: "none".into() }),
        Step::Run,
        Step::text("承知しました"),
    ]);
    let mut parts = kit.parts(Arc::new(failing));
    let (home, ids) = (parts.home.clone(), parts.ids.clone());
    let clock = Arc::new(kit.clock.clone());
    let post = Arc::new(FilePostOffice::new(home.dir().data().clone(), home.zone(), clock, ids));
    parts.post = Some(post.clone());
    let letter = Message::anima("kaede", "棚卸しは金曜です", Origin::anima());
    let anima = DigitalAnima::open(parts).await.unwrap();
    post.post(letter.with_id(crate::MessageId::new("m1").unwrap()), home.name()).await.unwrap();
    let trigger = Trigger::Inbox { from: vec!["kaede".into()] };
    for expected in [CycleAction::Error, CycleAction::Responded] {
        let turn = anima.wake(trigger.clone()).await.unwrap();
        assert_eq!(ended(&anima, turn).await.action, expected);
        kit.clock.advance(Duration::from_secs(3600));
    }
    let received = home.load(&ActivityQuery::days(1).kinds(&[Activity::MESSAGE_RECEIVED])).unwrap();
    let lines: Vec<_> =
        received.iter().map(|line| (line.activity.from.as_str(), line.activity.content.as_str())).collect();
    assert_eq!(lines, [("kaede", "棚卸しは金曜です")]);
}

#[tokio::test]
async fn a_task_that_is_not_there_ends_with_a_plain_word() {
    let kit = Kit::new();
    let anima = kit.open(ScriptedExecutor::saying(["x"])).await;
    let turn = anima.wake(Trigger::Task(crate::TaskId::new("t1").unwrap())).await.unwrap();
    let error = ended(&anima, turn).await.error.unwrap();
    assert_eq!((error.code.as_str(), error.message.as_str()), ("unknown_task", "タスク t1 はありません"));
}

#[tokio::test]
async fn an_error_keeps_what_was_said_and_speaks_the_organisations_language() {
    let kit = Kit::new();
    let failing = script(vec![
        Step::text("途中まで"),
        Step::Fail(ExecError::Quota { engine: "x".into(), detail: "none".into() }),
    ]);
    let anima = kit.open(failing).await;
    let turn = anima.talk(say("どう？")).await.unwrap();
    let report = ended(&anima, turn).await;
    assert_eq!((report.action, report.text.as_str()), (CycleAction::Error, "途中まで"));
    let error = report.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Quota);
    assert!(!error.message.is_ascii(), "{}", error.message);
    let turns = anima.home().conversation(&ThreadId::main()).unwrap().conversation.turns;
    assert!(turns[1].content.starts_with("途中まで\n"), "{}", turns[1].content);
    let errors = anima.home().load(&ActivityQuery::days(1)).unwrap();
    assert!(errors.iter().any(|line| line.activity.kind == "error"));
}

#[tokio::test]
async fn a_broken_stream_is_taken_up_again_without_doing_things_twice() {
    let kit = Kit::new();
    let tool = FakeTool::new("send", Effect::Communicates);
    let broken = || ExecError::Interrupted { engine: "x".into(), detail: "reset".into() };
    let engine = script(vec![
        Step::call("send", "{\"to\":\"kaede\"}"),
        Step::text("送っ"),
        Step::Fail(broken()),
        Step::Run,
        // the model asks for the same thing again
        Step::call("send", "{\"to\":\"kaede\"}"),
        Step::text("送りました"),
    ]);
    let anima = kit.with_tool(tool.clone()).open(engine.clone()).await;
    let turn = anima.talk(say("送って")).await.unwrap();
    kit.turn_time_until_done(&anima, &turn).await;
    let events = all_events(&anima, &turn).await;
    assert!(events.iter().any(|event| matches!(event, LifeEvent::Retrying { attempt: 1, .. })), "{events:?}");
    let report = ended(&anima, turn).await;
    assert_eq!((report.text.as_str(), &report.error), ("送っ送りました", &None));
    assert_eq!(tool.calls(), 1, "an effect happens once");
    let again = engine.requests()[1].prompt.last_words().to_owned();
    assert!(again.starts_with("送って") && again.contains("- send:") && again.contains("送っ"), "{again}");
}

#[tokio::test]
async fn a_stream_that_never_holds_ends_as_an_error_with_its_text() {
    let kit = Kit::new();
    let mut steps = Vec::new();
    for _ in 0..5 {
        steps.extend([
            Step::text("あ"),
            Step::Fail(ExecError::Interrupted { engine: "x".into(), detail: "r".into() }),
            Step::Run,
        ]);
    }
    let engine = script(steps);
    let anima = kit.open(engine.clone()).await;
    let turn = anima.talk(say("どう？")).await.unwrap();
    kit.turn_time_until_done(&anima, &turn).await;
    let report = ended(&anima, turn).await;
    assert_eq!((report.action, report.text.as_str()), (CycleAction::Error, "ああああ"));
    assert_eq!(engine.requests().len(), 4, "once and three more");
}

#[tokio::test]
async fn a_full_context_goes_on_in_another_session() {
    let kit = Kit::new();
    let engine = script(vec![
        Step::text("前半。"),
        Step::Event(TurnEvent::Completed(crate::StopReason::Chain)),
        Step::Run,
        Step::text("後半。"),
    ]);
    let anima = kit.open(engine.clone()).await;
    let turn = anima.talk(say("長い仕事")).await.unwrap();
    let events = all_events(&anima, &turn).await;
    assert!(events.iter().any(|event| matches!(event, LifeEvent::Chain { chain: 1, .. })));
    let report = ended(&anima, turn).await;
    assert_eq!((report.text.as_str(), report.chains), ("前半。後半。", 1));
    let system = engine.requests()[1].prompt.system.clone();
    assert!(system.contains("長い仕事") && system.contains("前半。"), "{system}");
    let left = anima.home().session(crate::trigger::SessionKind::Chat, &ThreadId::main()).unwrap();
    assert_eq!(left, None, "notes are put away after a normal end");
}

#[tokio::test]
async fn what_a_turn_has_seen_lowers_the_trust_of_what_it_does() {
    let kit = Kit::new();
    let web = kit::Web::default();
    let note = kit::Floor::default();
    let engine = script(vec![Step::call("web", "{}"), Step::call("floor", "{}"), Step::text("済")]);
    let anima = kit.with_tools(vec![Arc::new(web), Arc::new(note.clone())]).open(engine).await;
    let turn = anima.talk(say("調べて")).await.unwrap();
    ended(&anima, turn).await;
    assert_eq!(note.seen(), [crate::Trust::Untrusted]);
}

#[test]
fn what_is_not_accepted_says_how_to_go_on() {
    let path = std::path::Path::new("journal.jsonl");
    for (kind, code, sort) in [
        (std::io::ErrorKind::StorageFull, "not_accepted_disk_full", ErrorKind::Internal),
        (std::io::ErrorKind::ReadOnlyFilesystem, "not_accepted", ErrorKind::Permission),
        (std::io::ErrorKind::Other, "not_accepted", ErrorKind::Internal),
    ] {
        let refused = not_accepted("journal", &FileError::io("write", path, kind.into()));
        assert_eq!((refused.code(), refused.kind()), (code, sort));
        for locale in Locale::ALL {
            let said = (&refused as &dyn Fault).explain(locale);
            assert!(said.message.contains("journal.jsonl") && said.hint.is_some(), "{said:?}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_made_durable_is_not_accepted() {
    let kit = Kit::new();
    let engine = ScriptedExecutor::saying(["x"]);
    let anima = kit.open(engine.clone()).await;
    // a file where a directory must be
    fs_err::write(anima.home().dir().root().join("shortterm"), "in the way").unwrap();
    let refused = anima.talk(say("やあ")).await;
    assert!(matches!(refused, Err(AnimaError::NotAccepted { .. })), "{refused:?}");
    assert!(engine.requests().is_empty());
    assert!(anima.home().conversation(&ThreadId::main()).unwrap().conversation.turns.is_empty());
    let long = anima.talk(say(&"あ".repeat(MAX_MESSAGE + 1))).await;
    assert!(matches!(long, Err(AnimaError::Refused { code: "message_too_long", .. })));
}

#[tokio::test]
async fn a_long_conversation_is_made_shorter_and_goes_on() {
    let kit = Kit::new();
    let engine =
        ScriptedExecutor::new([vec![TurnEvent::Text("要約です".into())], vec![TurnEvent::Text("はい".into())]]);
    let anima = kit.open(engine.clone()).await;
    let turns = (0..60).map(|n| crate::home::conversation::Turn::human(format!("話 {n}"))).collect();
    anima.home().append_turns(&ThreadId::main(), turns).unwrap();
    let turn = anima.talk(say("続き")).await.unwrap();
    let events = all_events(&anima, &turn).await;
    assert!(events.contains(&LifeEvent::Compressing(true)) && events.contains(&LifeEvent::Compressing(false)));
    let conversation = anima.home().conversation(&ThreadId::main()).unwrap().conversation;
    assert_eq!(conversation.compressed_summary, "要約です");
    assert_eq!(conversation.turns.last().unwrap().content, "はい");
    assert!(
        matches!(&engine.requests()[1].prompt.messages[0], PromptMessage::User { text, .. } if text.contains("要約です"))
    );
}

#[tokio::test]
async fn shutting_down_lets_turns_finish_and_takes_no_more() {
    let kit = Kit::new();
    let (engine, mut hand) = puppet();
    let anima = Arc::new(kit.open(engine).await);
    let turn = anima.talk(say("話して")).await.unwrap();
    let run = hand.next_run().await;
    run.say("途中");
    kit.until_text(&anima, &turn, "途中").await;
    let ending = {
        let anima = anima.clone();
        async move { anima.shutdown(Duration::from_secs(5)).await }
    };
    let (over, ()) = tokio::join!(ending, kit.advance_slowly(8));
    over.unwrap();
    assert!(matches!(anima.talk(say("まだ？")).await, Err(AnimaError::Refused { code: "shutting_down", .. })));
    let report = ended(&anima, turn).await;
    assert_eq!((report.stop, report.text.as_str()), (StopKind::Interrupted, "途中"));
    assert!(anima.home().orphans().unwrap().is_empty());
}

#[tokio::test]
async fn one_process_holds_an_anima() {
    let kit = Kit::new();
    let anima = kit.open(ScriptedExecutor::default()).await;
    let second = DigitalAnima::open(kit.parts(Arc::new(ScriptedExecutor::default()))).await;
    assert!(matches!(second, Err(AnimaError::Held { holder, .. }) if holder == "test"));
    drop(anima);
}

#[tokio::test]
async fn unknown_turns_are_named_and_watching_may_begin_anywhere() {
    let kit = Kit::new();
    let anima = kit.open(ScriptedExecutor::saying(["あい"])).await;
    let unknown = TurnId::new("nobody").unwrap();
    assert!(matches!(anima.interrupt(Scope::Turn(unknown.clone())).await, Err(AnimaError::UnknownTurn { .. })));
    assert!(matches!(anima.watch(unknown, None).next().await, Some(Err(AnimaError::UnknownTurn { .. }))));
    let turn = anima.talk(say("x")).await.unwrap();
    let all = all_events(&anima, &turn).await;
    let late: Vec<_> = anima.watch(turn, Some(Seq(2))).collect().await;
    assert_eq!(late.len(), all.len() - 2);
}

#[tokio::test]
async fn another_model_takes_over_when_the_first_has_nothing_left() {
    let kit = Kit::new();
    let quota = ExecError::Quota { engine: "x".into(), detail: "none".into() };
    let mut parts = kit.parts(Arc::new(script(vec![Step::Fail(quota), Step::Run, Step::text("代わりです")])));
    let mut choice = parts.choices.choose(&Trigger::Bootstrap).unwrap();
    choice.fallbacks =
        vec![crate::ResolvedModel { id: crate::ModelId::new("test/other").unwrap(), ..choice.model.clone() }];
    parts.choices = Arc::new(Always(choice));
    let anima = DigitalAnima::open(parts).await.unwrap();
    let turn = anima.talk(say("どう？")).await.unwrap();
    let report = ended(&anima, turn).await;
    assert_eq!(
        (report.text.as_str(), report.model.as_ref().map(crate::ModelId::as_str)),
        ("代わりです", Some("test/other"))
    );
}

#[tokio::test]
async fn who_goes_away_while_speaking_is_answered_all_the_same() {
    let kit = Kit::new();
    let engine = ScriptedExecutor::saying(["はい"]);
    let anima = kit.open(engine.clone()).await;
    let message = say("聞こえる？");
    {
        let mut talking = Box::pin(anima.talk(message.clone()));
        assert!(futures_util::poll!(&mut talking).is_pending());
    }
    let turn = anima.talk(message).await.unwrap();
    assert_eq!(ended(&anima, turn).await.text, "はい");
    assert_eq!(engine.requests().len(), 1);
}

#[test]
fn the_files_say_which_model_and_who_is_around() {
    let dir = tempfile::tempdir().unwrap();
    let data = crate::DataDir::new(dir.path());
    for (name, status) in [
        ("kaede", r#"{"speciality": "営業"}"#),
        ("sakura", r#"{"model": "local/recall", "supervisor": "kaede", "enabled": true}"#),
    ] {
        let file = data.anima(&AnimaName::new(name).unwrap()).status();
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::write(file, status).unwrap();
    }
    let choices = FileChoices::new(data, AnimaName::new("sakura").unwrap());
    let choice = choices.choose(&Trigger::Bootstrap).unwrap();
    assert_eq!(choice.model.id.as_str(), "local/recall");
    let around = choices.surroundings().unwrap();
    let supervisor = around.supervisor.unwrap();
    assert_eq!((supervisor.name.as_str(), supervisor.speciality.as_str()), ("kaede", "営業"));
    assert!(choices.is_enabled().unwrap());
}

#[tokio::test]
async fn an_answer_is_checked_once_and_a_full_context_ends_after_a_tool() {
    let kit = Kit::new();
    let stop = || Step::Ask(Checkpoint::BeforeStop { draft: "済".into() });
    let after = || Step::Ask(Checkpoint::AfterTool(crate::CallId::new("c").unwrap()));
    let full = Step::Ask(Checkpoint::Context { used: 60, window: 100 });
    let engine =
        script(vec![after(), full, after(), stop(), stop(), Step::text("済"), Step::Run, stop(), Step::text("x")]);
    let anima = kit.open(engine).await;
    let turn = anima.talk(say("やって")).await.unwrap();
    assert_eq!(ended(&anima, turn).await.notes, ["Go", "Go", "EndForChain", "Remind", "Go"]);
    let round = anima.wake(Trigger::Heartbeat).await.unwrap();
    assert_eq!(ended(&anima, round).await.notes, ["Go"], "a round is not checked");
}

#[tokio::test]
async fn who_is_stopped_while_waiting_calls_no_model() {
    let kit = Kit::new();
    let (engine, mut hand) = puppet();
    let anima = kit.open(engine).await;
    anima.wake(Trigger::Heartbeat).await.unwrap();
    let first = hand.next_run().await;
    let waiting = anima.wake(Trigger::Cron { job: "日報".into() }).await.unwrap();
    anima.interrupt(Scope::Turn(waiting.clone())).await.unwrap();
    assert_eq!(ended(&anima, waiting).await.stop, StopKind::Interrupted);
    first.end();
    anima.interrupt(Scope::All).await.unwrap();
}
