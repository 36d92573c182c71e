//! A failure as a person at a terminal sees it: one sentence, one hint, one exit code.

use std::process::ExitCode;

use animaworks_core::{ErrorKind, Fault, Locale, t};
use clap::error::{ContextKind, ErrorKind as ClapKind};

/// How errors are told.
#[derive(Debug, Clone)]
pub(crate) struct Voice {
    pub(crate) locale: Locale,
    pub(crate) json: bool,
    /// `--data-dir DIR ` when it was given: what we tell people to type must work as typed.
    pub(crate) flag: String,
}

impl Voice {
    /// A hint whose commands name the data directory that this command was given.
    pub(crate) fn typed(&self, hint: &str) -> String {
        let command = format!("animaworks {}", self.flag);
        if hint.contains(&command) { hint.to_owned() } else { hint.replace("animaworks ", &command) }
    }
}

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
    /// An error about another data directory than the one the command was given: what it tells people to type
    /// names that one.
    Over {
        /// `--data-dir DIR `.
        flag: String,
        /// The error itself.
        error: Box<CliError>,
    },
    /// Writing to the terminal failed; nobody is left to tell.
    Output(std::io::Error),
}

impl CliError {
    pub(crate) fn said(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Said { kind, message: message.into(), hint: None }
    }

    /// Somebody pressed Ctrl-C.
    pub(crate) fn cancelled(locale: Locale) -> Self {
        Self::said(ErrorKind::Cancelled, t!(locale, "cli.cancelled"))
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Said { kind, message, .. } => Self::Said { kind, message, hint: Some(hint.into()) },
            other => other,
        }
    }

    /// Prints it on standard error and gives the exit code.
    pub(crate) fn report(self, voice: &Voice) -> ExitCode {
        let (kind, code, message, hint) = match self {
            Self::Over { flag, error } => return error.report(&Voice { flag, ..voice.clone() }),
            // a reader that has seen enough is not an error (STYLE E7)
            Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Self::Output(error) => (ErrorKind::Internal, "output".to_owned(), error.to_string(), None),
            Self::Said { kind, message, hint } => (kind, kind.as_str().to_owned(), message, hint),
            Self::Fault(fault) => {
                tracing::debug!(error = %animaworks_core::error::chain(fault.as_ref()), "command failed");
                let said = fault.explain(voice.locale);
                (fault.kind(), fault.code().to_owned(), said.message, said.hint)
            }
        };
        let hint = hint.map(|hint| voice.typed(&hint));
        crate::ui::complain(voice.locale, voice.json, &code, &message, hint.as_deref());
        ExitCode::from(kind.exit_code())
    }
}

impl<F: Fault + 'static> From<F> for CliError {
    fn from(fault: F) -> Self {
        Self::Fault(Box::new(fault))
    }
}

pub(crate) type CliResult<T = ()> = Result<T, CliError>;

/// Arguments that cannot be understood, in the reader's language; help and version are not errors.
pub(crate) fn usage(error: &clap::Error, voice: &Voice) -> ExitCode {
    let locale = voice.locale;
    if matches!(error.kind(), ClapKind::DisplayHelp | ClapKind::DisplayVersion) {
        return match crate::ui::piece(&crate::args::usage_words(locale, &error.render().to_string())) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => error.report(voice),
        };
    }
    let part = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let (arg, value) = (part(ContextKind::InvalidArg), part(ContextKind::InvalidValue));
    let message = match error.kind() {
        ClapKind::UnknownArgument => t!(locale, "cli.usage.unknown_argument", arg = arg),
        ClapKind::InvalidSubcommand => {
            t!(locale, "cli.usage.unknown_command", command = part(ContextKind::InvalidSubcommand))
        }
        ClapKind::MissingRequiredArgument => t!(locale, "cli.usage.missing_argument", arg = arg),
        ClapKind::MissingSubcommand | ClapKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            t!(locale, "cli.usage.missing_command")
        }
        ClapKind::InvalidValue | ClapKind::ValueValidation if value.is_empty() => {
            t!(locale, "cli.usage.missing_value", arg = arg)
        }
        ClapKind::ValueValidation => t!(locale, "cli.usage.unfit_value", arg = arg, value = value),
        ClapKind::InvalidValue => {
            t!(locale, "cli.usage.invalid_value", arg = arg, value = value, valid = part(ContextKind::ValidValue))
        }
        ClapKind::ArgumentConflict => {
            t!(locale, "cli.usage.conflict", arg = arg, other = part(ContextKind::PriorArg))
        }
        ClapKind::TooManyValues | ClapKind::TooFewValues | ClapKind::WrongNumberOfValues => {
            t!(locale, "cli.usage.value_count", arg = arg)
        }
        _ => t!(locale, "cli.usage.other"),
    };
    let suggested = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let near = suggested.into_iter().map(part).find(|text| !text.is_empty());
    let hint = match near {
        Some(near) => t!(locale, "cli.usage.near", near = near),
        None => t!(locale, "cli.usage.see_help"),
    };
    CliError::said(ErrorKind::InvalidRequest, message).with_hint(hint).report(voice)
}
