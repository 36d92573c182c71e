//! `demo`: the sample organisation and a conversation with its leader.

use std::{
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use animaworks_core::{
    ErrorKind, ModelId, ThreadId,
    config::{ConfigFile, Credentials},
    creation,
    fs::FileError,
    t,
};
use animaworks_server::demo;

use crate::{
    args::Demo,
    context::{Cx, block_on},
    error::{CliError, CliResult},
    ui,
};

/// Where a local Ollama listens.
const OLLAMA: ([u8; 4], u16) = ([127, 0, 0, 1], 11434);

/// An engine and the reason it was taken.
struct Engine {
    model: String,
    credential: Option<&'static str>,
    why: String,
}

pub(super) fn run(cx: &Cx, args: Demo) -> CliResult {
    let chosen = cx.data_dir_was_given();
    let cx = &if chosen {
        cx.over(cx.data.root().to_owned())
    } else {
        cx.over(demo::default_dir(&cx.env).root().to_owned())
    };
    converse(cx, &args).map_err(|error| CliError::Over { flag: cx.flag.clone(), error: Box::new(error) })
}

fn converse(cx: &Cx, args: &Demo) -> CliResult {
    may_be_used(cx, args.reset)?;
    if args.reset && demo::is_demo(&cx.data) {
        let root = cx.data.root();
        fs_err::remove_dir_all(root).map_err(|error| FileError::io("remove", root, error))?;
    }
    let fresh = !cx.data.config().is_file();
    let locale = cx.locale;
    block_on(async {
        let engine = engine(cx, args)?;
        if fresh {
            demo::build(&cx.data, locale, cx.now()?, &engine.model)?;
        }
        let host = cx.host()?;
        let leader = demo::leader(host.locale())?;
        creation::set_model(&cx.data, &leader, &ModelId::new(&engine.model)?, engine.credential)?;
        if let Some(("anthropic", url)) = engine.credential.map(|name| (name, ANTHROPIC_COMPATIBLE)) {
            ConfigFile::set(&cx.data, "credentials.anthropic.base_url", url)?;
        }
        if !cx.json {
            ui::note(ui::style::Paint::stderr().dim(&t!(
                locale,
                "cli.demo.engine",
                model = engine.model,
                why = engine.why
            )));
        }
        let resident = host.resident(&leader).await?;
        let ended = match &args.once {
            Some(question) => super::chat::once(cx, &resident, "human", ThreadId::main(), question).await,
            None if ui::is_interactive() => {
                ui::note(t!(locale, "cli.demo.welcome", path = cx.data.root().display(), name = leader));
                super::chat::talk(cx, &host, &resident, "human", ThreadId::main()).await
            }
            None => Err(CliError::said(ErrorKind::InvalidRequest, t!(locale, "cli.demo.no_terminal"))
                .with_hint(t!(locale, "cli.demo.no_terminal_hint"))),
        };
        resident.close().await?;
        ended
    })
}

/// Fails unless the directory is empty or the sample's own: the sample may be removed as a whole, other things never.
fn may_be_used(cx: &Cx, reset: bool) -> CliResult {
    let root = cx.data.root();
    if demo::is_demo(&cx.data) {
        if reset || demo::is_whole(&cx.data)? {
            return Ok(());
        }
        return Err(CliError::said(ErrorKind::Conflict, t!(cx.locale, "cli.demo.unfinished", path = root.display()))
            .with_hint(t!(cx.locale, "cli.demo.unfinished_hint", flag = cx.flag)));
    }
    let empty = match fs_err::read_dir(root) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if empty {
        return Ok(());
    }
    Err(CliError::said(ErrorKind::Conflict, t!(cx.locale, "cli.demo.not_a_demo", path = root.display()))
        .with_hint(t!(cx.locale, "cli.demo.not_a_demo_hint")))
}

/// The endpoint of Anthropic that speaks the OpenAI dialect.
const ANTHROPIC_COMPATIBLE: &str = "https://api.anthropic.com/v1";

/// The first engine that can answer: a key (asked about once), a local server, a model on disk, memory alone.
fn engine(cx: &Cx, args: &Demo) -> CliResult<Engine> {
    if let Some(model) = &args.engine {
        // a hub id that is not here yet is fetched first
        let id = model.strip_prefix("local/").filter(|id| id.contains('/') && !id.starts_with('/'));
        if id.is_some_and(|id| !cx.data.weights().join(id.split(':').next().unwrap_or(id)).is_dir()) {
            super::models::fetch(cx, model)?;
        }
        return Ok(Engine { model: model.clone(), credential: None, why: t!(cx.locale, "cli.demo.why_asked") });
    }
    let settings = animaworks_core::config::Settings::load(&cx.data)?;
    let credentials = Credentials::load(&cx.data, &settings, &cx.env)?;
    for (credential, model) in [("openai", "openai/gpt-4.1"), ("anthropic", "openai/claude-sonnet-4-6")] {
        let Some(found) = credentials.model(credential).key else { continue };
        let source = found.source.to_string();
        let granted = args.yes
            || (ui::is_interactive() && args.once.is_none())
                && ui::prompt::confirm(&t!(cx.locale, "cli.demo.spend", source = source, model = model), false)?;
        if granted {
            let why = t!(cx.locale, "cli.demo.why_key", source = source);
            return Ok(Engine { model: model.to_owned(), credential: Some(credential), why });
        }
        ui::note(ui::style::Paint::stderr().dim(&t!(cx.locale, "cli.demo.key_unused", source = source)));
    }
    if TcpStream::connect_timeout(&SocketAddr::from(OLLAMA), Duration::from_millis(200)).is_ok() {
        return Ok(Engine {
            model: "ollama/qwen3:14b".to_owned(),
            credential: None,
            why: t!(cx.locale, "cli.demo.why_ollama"),
        });
    }
    if let Some(model) = local_model(cx)? {
        return Ok(Engine { why: t!(cx.locale, "cli.demo.why_local"), model, credential: None });
    }
    Ok(Engine { model: "local/recall".to_owned(), credential: None, why: t!(cx.locale, "cli.demo.why_recall") })
}

/// The first GGUF model on disk, by name.
fn local_model(cx: &Cx) -> CliResult<Option<String>> {
    let weights = cx.data.weights();
    let entries = match fs_err::read_dir(&weights) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::io("list", &weights, error).into()),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| FileError::io("list", &weights, error))?;
        if let Some(name) = entry.file_name().to_str().and_then(|name| name.strip_suffix(".gguf")) {
            names.push(format!("local/{name}"));
        }
    }
    names.sort();
    Ok(names.into_iter().next())
}
