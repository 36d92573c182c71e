//! From arguments to an exit code: environment, language, command, report.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use animaworks_core::{
    AnimaName, DataDir, ErrorKind, Fault, Locale,
    config::{Env, Models, Settings},
    creation::Shipped,
    gate::near,
    organisation, t,
};
use animaworks_server::InProcess;
use chrono::DateTime;
use chrono_tz::Tz;
use clap::FromArgMatches;

use crate::{
    args::{Cli, Global, localized},
    commands,
    error::{CliError, CliResult, Voice, usage},
    ui,
};

/// What every command is given.
pub(crate) struct Cx {
    pub(crate) env: Env,
    pub(crate) data: DataDir,
    pub(crate) locale: Locale,
    pub(crate) json: bool,
    /// `--data-dir DIR ` when it was given, for commands we tell people to type.
    pub(crate) flag: String,
}

/// Runs the program.
pub(crate) fn run(args: Vec<OsString>) -> ExitCode {
    let env = Env::from_process();
    let (lang, dir) = (early(&args, "--lang"), early(&args, "--data-dir"));
    let locale = language(&env, lang.as_ref().and_then(|lang| lang.to_str()), dir.as_ref().map(Path::new));
    let json = args.iter().any(|arg| arg == "--json");
    let flag = dir.as_ref().map(|dir| format!("--data-dir {} ", quoted(Path::new(dir)))).unwrap_or_default();
    let voice = Voice { locale, json, flag };
    let mut command = localized(locale);
    let cli = match command.try_get_matches_from_mut(args).and_then(|mut found| Cli::from_arg_matches_mut(&mut found)) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &voice),
    };
    let Cli { global, command: Some(chosen) } = cli else {
        return match ui::piece(&command.render_help().to_string()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => error.report(&voice),
        };
    };
    let cx = Cx::new(env, &global, locale);
    trace(&cx.env);
    match commands::run(&cx, chosen) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(&voice),
    }
}

impl Cx {
    fn new(env: Env, global: &Global, locale: Locale) -> Self {
        let data = env.data_dir(global.data_dir.as_deref());
        let flag = global.data_dir.as_ref().map(|dir| format!("--data-dir {} ", quoted(dir))).unwrap_or_default();
        Self { env, data, locale, json: global.json, flag }
    }

    /// The same over another data directory.
    pub(crate) fn over(&self, root: PathBuf) -> Self {
        Self {
            env: self.env.clone(),
            flag: format!("--data-dir {} ", quoted(&root)),
            data: DataDir::new(root),
            locale: self.locale,
            json: self.json,
        }
    }

    /// Fails with the next command to type when there is no organisation here.
    pub(crate) fn initialised(&self) -> CliResult {
        if self.data.config().is_file() {
            return Ok(());
        }
        let root = self.data.root().display();
        Err(CliError::said(ErrorKind::NotFound, t!(self.locale, "cli.not_initialised", path = root)).with_hint(t!(
            self.locale,
            "cli.not_initialised_hint",
            flag = self.flag
        )))
    }

    /// The shipped texts, in the language of this command.
    pub(crate) fn shipped(&self) -> Shipped {
        Shipped { locale: self.locale, directory: self.env.templates_dir() }
    }

    /// Now, in the organisation's zone.
    pub(crate) fn now(&self) -> CliResult<DateTime<Tz>> {
        let settings = Settings::load(&self.data)?;
        Ok(animaworks_server::now(&settings))
    }

    /// The organisation, run by this process.
    pub(crate) fn host(&self) -> CliResult<InProcess> {
        self.initialised()?;
        let host = InProcess::open(self.env.clone(), self.data.clone(), self.locale)?;
        // a program that cannot be found again cannot start itself as a helper; commands are refused then
        Ok(match std::env::current_exe() {
            Ok(program) => host.with_program(program),
            Err(error) => {
                tracing::warn!(%error, "commands cannot be confined");
                host
            }
        })
    }

    /// Whether somebody said where the data is.
    pub(crate) fn data_dir_was_given(&self) -> bool {
        !self.flag.is_empty() || self.env.var("ANIMAWORKS_DATA_DIR").is_some()
    }

    /// Whether the Python version made this directory and nobody has used it with this one yet.
    pub(crate) fn is_python_home(&self) -> bool {
        self.data.config().is_file() && !self.data.root().join(".templates.json").exists()
    }

    /// Says once per command that a directory of the Python version was opened as it is.
    pub(crate) fn greet_python_home(&self) {
        if self.is_python_home() && !self.json {
            ui::note(t!(self.locale, "cli.python_home", flag = self.flag));
        }
    }

    /// How errors of a conversation are told.
    pub(crate) fn voice(&self) -> Voice {
        Voice { locale: self.locale, json: false, flag: self.flag.clone() }
    }

    /// `config.json`.
    pub(crate) fn settings(&self) -> CliResult<Settings> {
        self.initialised()?;
        Ok(Settings::load(&self.data)?)
    }

    /// `models.json` over `settings`.
    pub(crate) fn models(&self, settings: &Settings) -> Models {
        Models::load(&self.data, settings)
    }

    /// The Animas of the organisation, by name.
    pub(crate) fn names(&self) -> CliResult<Vec<AnimaName>> {
        Ok(organisation::names(&self.data)?)
    }

    /// The Anima of a name that somebody typed.
    pub(crate) fn anima(&self, typed: &str) -> CliResult<AnimaName> {
        self.initialised()?;
        let names = self.names()?;
        if let Some(name) = names.iter().find(|name| name.as_str() == typed) {
            return Ok(name.clone());
        }
        let near = near(typed, names.iter().map(AnimaName::as_str), 3);
        let hint = match near.first() {
            Some(first) => t!(self.locale, "cli.unknown_anima_hint_near", flag = self.flag, name = first),
            None if names.is_empty() => t!(self.locale, "cli.unknown_anima_hint_none", flag = self.flag),
            None => t!(self.locale, "cli.unknown_anima_hint", flag = self.flag),
        };
        let unknown = animaworks_core::AnimaError::UnknownAnima { name: typed.to_owned(), near };
        Err(CliError::said(ErrorKind::NotFound, (&unknown as &dyn Fault).explain(self.locale).message).with_hint(hint))
    }
}

/// Runs asynchronous work to its end, on this thread.
pub(crate) fn block_on(work: impl Future<Output = CliResult>) -> CliResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(CliError::Output)?.block_on(work)
}

/// The language, before the arguments are understood: errors in them are told in it, too.
fn language(env: &Env, flag: Option<&str>, dir: Option<&Path>) -> Locale {
    let flag = flag.and_then(|lang| lang.parse().ok());
    if flag.is_some() {
        return env.locale(flag, None);
    }
    // a broken configuration is told about by the command that needs it
    let configured = animaworks_core::fs::read_json::<serde_json::Value>(&env.data_dir(dir).config());
    let configured = configured.ok().and_then(|config| config.get("locale")?.as_str()?.parse().ok());
    env.locale(None, configured)
}

/// The value of a global option, wherever it stands.
fn early(args: &[OsString], name: &str) -> Option<OsString> {
    let mut args = args.iter().take_while(|arg| *arg != "--");
    while let Some(arg) = args.next() {
        if arg == name {
            return args.next().cloned();
        }
        if let Some(value) = arg.to_str().and_then(|arg| arg.strip_prefix(name)?.strip_prefix('=')) {
            return Some(value.into());
        }
    }
    None
}

/// Logs go to standard error; warnings always, more when the environment asks for it.
fn trace(env: &Env) {
    let filter = tracing_subscriber::EnvFilter::new(env.log_level("warn"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).compact().without_time();
    let log = log.with_ansi(ui::style::Paint::stderr().is_on());
    if let Err(error) = log.try_init() {
        ui::note(error.to_string());
    }
}

/// A path as it can be typed in a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-~".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
