//! Write: a whole file. One that is there has to be read first.

use std::path::Path;

use animaworks_core::{Locale, ThreadId, ToolContext, ToolError, ToolOutput, TypedTool, t, tool::Effect};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Desk, allowed, bytes_of, for_model, is_crlf, pinned, surroundings, with_line_ends};
use crate::permission::{FileAccess, Reason, Refusal, Want};

/// The longest text that is written at once.
const MAX_BYTES: usize = 4 << 20;

/// Keys of a colleague's `status.json` that a supervisor may not set: they start programs, open accounts or
/// change who works for whom.
const PRIVILEGED: &[&str] = &["debug_superuser", "mode_s_auth", "extra_mcp_servers", "supervisor", "credential", "env"];

/// What `Write` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    path: String,
    content: String,
}

#[derive(Debug)]
pub(super) struct Write(pub(super) Desk);

impl TypedTool for Write {
    const NAME: &'static str = "Write";
    const EFFECT: Effect = Effect::Acts;
    type Args = Args;

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let desk = self.0.clone();
        let (thread, locale) = surroundings(cx);
        self.0
            .at(move |files| {
                let real = allowed(files, &args.path, Want::Write, Self::NAME, locale)?;
                let old = bytes_of(&real, &args.path, locale)?;
                let mut text = args.content;
                if let Some(old) = &old {
                    if !desk.knows(&thread, &real, old) {
                        return Err(unread(&args.path, locale));
                    }
                    if !text.contains('\r') {
                        text = with_line_ends(&text, is_crlf(&String::from_utf8_lossy(old)));
                    }
                }
                let change =
                    Change { files, desk: &desk, thread: &thread, given: &args.path, locale, tool: Self::NAME };
                change.put(&real, old.as_deref(), &text)?;
                let said = t!(locale, "tools.write.done", path = args.path, bytes = text.len());
                Ok(ToolOutput::text(said)
                    .with_data(json!({ "path": args.path, "bytes": text.len(), "new": old.is_none() })))
            })
            .await
    }
}

fn unread(path: &str, locale: Locale) -> ToolError {
    ToolError::failed("StateError", t!(locale, "tools.write.read_first", path = path))
}

/// A change of one file that has been allowed.
pub(super) struct Change<'a> {
    pub(super) files: &'a FileAccess,
    pub(super) desk: &'a Desk,
    pub(super) thread: &'a ThreadId,
    pub(super) given: &'a str,
    pub(super) locale: Locale,
    pub(super) tool: &'static str,
}

impl Change<'_> {
    pub(super) fn put(&self, real: &Path, old: Option<&[u8]>, text: &str) -> Result<(), ToolError> {
        if text.len() > MAX_BYTES {
            let said = t!(self.locale, "tools.file.too_large", path = self.given, bytes = text.len());
            return Err(ToolError::failed("InvalidArguments", said));
        }
        if self.files.is_colleague_status(real) {
            self.status(old, text)?;
        }
        pinned::write(real, text.as_bytes()).map_err(|error| for_model(error, self.given, self.locale))?;
        self.desk.note(self.thread, real, text.as_bytes());
        Ok(())
    }

    /// A colleague's status keeps its privileged keys as they are.
    fn status(&self, old: Option<&[u8]>, new: &str) -> Result<(), ToolError> {
        let object = |bytes: &[u8]| match serde_json::from_slice(bytes) {
            Ok(Value::Object(object)) => Some(object),
            _ => None,
        };
        let Some(new) = object(new.as_bytes()) else {
            return Err(ToolError::failed(
                "ValidationError",
                t!(self.locale, "tools.write.no_json", path = self.given),
            ));
        };
        let old = old.and_then(object).unwrap_or_default();
        match PRIVILEGED.iter().find(|key| old.get(**key) != new.get(**key)) {
            Some(key) => {
                Err(Refusal::new(Reason::Protected, format!("{}: {key}", self.given)).for_model(self.tool, self.locale))
            }
            None => Ok(()),
        }
    }
}
