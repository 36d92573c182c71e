//! A line of text from a person at a terminal: editing, history, wide characters.

use std::path::PathBuf;

use animaworks_core::{Locale, ResultExt, t};
use rustyline::{DefaultEditor, config::Config, error::ReadlineError};

use crate::error::{CliError, CliResult};

/// What a person did at the prompt.
#[derive(Debug)]
pub(crate) enum Typed {
    /// Wrote a line.
    Line(String),
    /// Pressed Ctrl-C.
    Interrupt,
    /// Closed the input.
    End,
}

/// The line editor and its history file.
pub(crate) struct Editor {
    lines: DefaultEditor,
    history: PathBuf,
    prompt: String,
}

impl Editor {
    /// Opens the editor; a history that cannot be read is an empty one.
    pub(crate) fn open(history: PathBuf, locale: Locale, name: &str) -> CliResult<Self> {
        let config = Config::builder().auto_add_history(true).max_history_size(1000).map_err(failed)?.build();
        let mut editor = DefaultEditor::with_config(config).map_err(failed)?;
        if history.exists() {
            editor.load_history(&history).log_err("read the history of the conversation");
        }
        Ok(Self { lines: editor, history, prompt: t!(locale, "cli.chat.prompt", name = name) })
    }

    /// Waits for a line. Blocks; the editor comes back with it.
    pub(crate) async fn read(mut self) -> CliResult<(Self, Typed)> {
        let read = move || {
            let typed = match self.lines.readline(&self.prompt) {
                Ok(line) => Typed::Line(line),
                Err(ReadlineError::Interrupted) => Typed::Interrupt,
                Err(ReadlineError::Eof) => Typed::End,
                Err(error) => return Err(failed(error)),
            };
            self.lines.save_history(&self.history).log_err("save the history of the conversation");
            Ok((self, typed))
        };
        tokio::task::spawn_blocking(read).await.map_err(|error| CliError::Output(std::io::Error::other(error)))?
    }
}

fn failed(error: ReadlineError) -> CliError {
    match error {
        ReadlineError::Io(error) => CliError::Output(error),
        other => CliError::Output(std::io::Error::other(other)),
    }
}
