//! Failures of services in words a model can act on.

use animaworks_core::{Fault, Locale, ToolError, ToolName, fs::FileError, seams::PostError};

/// A failure of letters, boards or tasks: what the model can mend goes back to it, the rest ends the turn.
pub(crate) fn post(error: PostError, locale: Locale) -> ToolError {
    let error_type = match &error {
        PostError::UnknownBoard { .. } => "FileNotFound",
        PostError::NotAMember { .. } => "PermissionDenied",
        PostError::UnknownRecipient { .. } => "UnknownRecipient",
        PostError::Task { code: "task_transition" | "task_exists", .. } => "StateError",
        PostError::Task { .. } => "ValidationError",
        _ => return ToolError::Host(Box::new(error)),
    };
    let said = (&error as &dyn Fault).explain(locale);
    ToolError::Failed { error_type, message: said.message, suggestion: said.hint }
}

/// A file of ours that cannot be used ends the turn.
pub(crate) fn file(error: FileError) -> ToolError {
    ToolError::Host(Box::new(error))
}

/// Something the model can mend, with what to do instead.
pub(crate) fn failed(error_type: &'static str, message: String, suggestion: String) -> ToolError {
    ToolError::Failed { error_type, message, suggestion: Some(suggestion) }
}

/// Arguments that do not fit, in the model's language.
pub(crate) fn invalid(tool: &'static str, problem: String) -> ToolError {
    match ToolName::new(tool) {
        Ok(tool) => ToolError::InvalidArguments { tool, problem },
        Err(name) => ToolError::Host(Box::new(name)),
    }
}
