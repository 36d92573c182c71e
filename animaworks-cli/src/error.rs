//! A failure as a person at a terminal sees it: one sentence, one hint, one exit code.

use std::process::ExitCode;

use animaworks_core::{ErrorKind, Fault, Locale};

/// What ended a command.
#[derive(Debug)]
pub(crate) enum CliError {
    /// An error that explains itself.
    Fault(Box<dyn Fault>),
    /// A sentence of ours.
    Said {
        /// What sort of trouble.
        kind: ErrorKind,
        /// The sentence.
        message: String,
        /// What to do next.
        hint: Option<String>,
    },
    /// Writing to the terminal failed; nobody is left to tell.
    Output(std::io::Error),
}

impl CliError {
    pub(crate) fn said(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Said { kind, message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Said { kind, message, .. } => Self::Said { kind, message, hint: Some(hint.into()) },
            other => other,
        }
    }

    /// Prints it on standard error and gives the exit code.
    pub(crate) fn report(self, locale: Locale, json: bool) -> ExitCode {
        let (kind, code, message, hint) = match self {
            // a reader that has seen enough is not an error (STYLE E7)
            Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Self::Output(error) => (ErrorKind::Internal, "output".to_owned(), error.to_string(), None),
            Self::Said { kind, message, hint } => (kind, kind.as_str().to_owned(), message, hint),
            Self::Fault(fault) => {
                tracing::debug!(error = %animaworks_core::error::chain(fault.as_ref()), "command failed");
                let said = fault.explain(locale);
                (fault.kind(), fault.code().to_owned(), said.message, said.hint)
            }
        };
        crate::ui::complain(locale, json, &code, &message, hint.as_deref());
        ExitCode::from(kind.exit_code())
    }
}

impl<F: Fault + 'static> From<F> for CliError {
    fn from(fault: F) -> Self {
        Self::Fault(Box::new(fault))
    }
}

pub(crate) type CliResult<T = ()> = Result<T, CliError>;
