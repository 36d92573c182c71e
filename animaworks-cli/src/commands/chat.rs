//! `chat ANIMA [MESSAGE]`: one turn, or a conversation.

mod slash;

use std::io::{IsTerminal, Read};

use animaworks_core::{AnimaDir, AnimaName, ErrorKind, ThreadId, t};
use animaworks_server::{InProcess, Resident};

use super::conversation::Conversation;
use crate::{
    args::Chat,
    context::{Cx, block_on},
    error::{CliError, CliResult},
    ui::{
        self,
        repl::{Editor, Typed},
    },
};

/// The longest message, in bytes (server spec §2.3).
const MAX_MESSAGE_BYTES: u64 = 10 << 20;

pub(super) fn run(cx: &Cx, args: Chat) -> CliResult {
    let name = cx.anima(&args.anima)?;
    let thread = args.thread.map_or(Ok(ThreadId::main()), ThreadId::new)?;
    let from = args.from.unwrap_or_else(|| "human".to_owned());
    if !is_speaker(&from) {
        return Err(CliError::said(ErrorKind::InvalidRequest, t!(cx.locale, "cli.chat.bad_from"))
            .with_hint(t!(cx.locale, "cli.chat.bad_from_hint")));
    }
    let message = match args.message {
        Some(message) => Some(message),
        None if std::io::stdin().is_terminal() => None,
        None => Some(piped(cx)?),
    };
    cx.greet_python_home();
    block_on(async {
        let host = cx.host()?;
        let resident = host.resident(&name).await?;
        let ended = match message {
            Some(message) => once(cx, &resident, &from, thread, &message).await,
            None => talk(cx, &host, &resident, &from, thread).await,
        };
        resident.close().await?;
        ended
    })
}

/// Whether a person can be called so: the name is a line of the history and a directory of shared profiles.
fn is_speaker(name: &str) -> bool {
    let fits = name.trim() == name && (1..=64).contains(&name.chars().count());
    fits && !name.starts_with('.') && !name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\'))
}

/// All of standard input as one message.
fn piped(cx: &Cx) -> CliResult<String> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_MESSAGE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(CliError::Output)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliError::said(ErrorKind::InvalidRequest, t!(cx.locale, "cli.chat.not_utf8", at = at))
            .with_hint(t!(cx.locale, "cli.chat.not_utf8_hint"))
    })?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// A message that can be said at all.
fn checked<'a>(cx: &Cx, message: &'a str) -> CliResult<&'a str> {
    let bytes = message.len() as u64;
    if bytes > MAX_MESSAGE_BYTES {
        let said = t!(cx.locale, "cli.chat.too_long", bytes = bytes, limit = MAX_MESSAGE_BYTES);
        return Err(CliError::said(ErrorKind::InvalidRequest, said).with_hint(t!(cx.locale, "cli.chat.too_long_hint")));
    }
    if message.trim().is_empty() {
        return Err(CliError::said(ErrorKind::InvalidRequest, t!(cx.locale, "cli.chat.empty")));
    }
    Ok(message)
}

/// One turn, printed.
pub(super) async fn once(cx: &Cx, resident: &Resident, from: &str, thread: ThreadId, message: &str) -> CliResult {
    let message = checked(cx, message)?;
    let mut conversation = Conversation {
        anima: resident.anima.clone(),
        locale: cx.locale,
        from: from.to_owned(),
        thread,
        verbose: std::io::stderr().is_terminal() && !cx.json,
        streaming: !cx.json,
        last: None,
    };
    let turn = conversation.say(message).await?;
    if cx.json {
        ui::json(&turn.report)?;
    }
    conversation.outcome()
}

/// A conversation until somebody leaves it.
pub(super) async fn talk(cx: &Cx, host: &InProcess, resident: &Resident, from: &str, thread: ThreadId) -> CliResult {
    let name: &AnimaName = resident.anima.name();
    let dir: &AnimaDir = &resident.dir;
    let mut conversation = Conversation {
        anima: resident.anima.clone(),
        locale: cx.locale,
        from: from.to_owned(),
        thread,
        verbose: true,
        streaming: true,
        last: None,
    };
    ui::note(ui::style::Paint::stderr().dim(&t!(cx.locale, "cli.chat.welcome", name = name)));
    let mut editor = Editor::open(dir.run().join("chat_history"), cx.locale, name.as_str())?;
    let mut pressed_once = false;
    loop {
        resident.rest().await;
        let (back, typed) = editor.read().await?;
        editor = back;
        let line = match typed {
            Typed::Line(line) => line,
            Typed::Interrupt if pressed_once => break,
            Typed::Interrupt => {
                pressed_once = true;
                ui::note(t!(cx.locale, "cli.chat.again_to_leave"));
                continue;
            }
            Typed::End => break,
        };
        pressed_once = false;
        let said = if let Some(command) = line.trim().strip_prefix('/') {
            match slash::run(cx, host, resident, &conversation, command).await {
                Ok(slash::Then::GoOn) => Ok(()),
                Ok(slash::Then::Leave) => break,
                Err(error) => Err(error),
            }
        } else if line.trim().is_empty() {
            Ok(())
        } else {
            match checked(cx, &line) {
                Ok(line) => conversation.say(line).await.map(|_| ()).and_then(|()| conversation.outcome()),
                Err(error) => Err(error),
            }
        };
        match said {
            Ok(()) => {}
            Err(CliError::Output(error)) => return Err(CliError::Output(error)),
            // a conversation goes on after an error
            Err(error) => {
                error.report(&cx.voice());
            }
        }
    }
    ui::note(t!(cx.locale, "cli.chat.bye"));
    Ok(())
}
