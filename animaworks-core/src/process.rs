//! Child processes: one way to start, feed, limit and end them.
//!
//! Every child leads a process group of its own and starts with a clean
//! environment; ending it ends the whole group, and a grandchild that holds a pipe
//! cannot keep us waiting.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{ChildStderr, ChildStdin, ChildStdout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    error::{ErrorKind, Fault, ResultExt},
    tasks::Tasks,
};

/// How long a pipe may stay open after its child has ended.
pub const DRAIN: Duration = Duration::from_secs(2);

/// Environment variables a child may inherit: where programs, home and temp are, and the language.
pub const HARMLESS_ENV: &[&str] =
    &["PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TERM", "SHELL"];

/// A command to start. Data, so that a sandbox can put another one in front of it.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The program: a path, or a name looked up in the child's `PATH`.
    pub program: PathBuf,
    /// Its arguments. Never a secret: every user can read them.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// Its working directory; absolute.
    pub cwd: PathBuf,
    /// What it reads.
    pub stdin: Stdin,
    /// File descriptors that must stay open until it has started.
    pub keep: Vec<Arc<OwnedFd>>,
}

/// What a child reads.
#[derive(Debug, Clone, Default)]
pub enum Stdin {
    /// Nothing.
    #[default]
    Null,
    /// These bytes, then the end.
    Bytes(Bytes),
    /// Whatever [`Child::stdin`] is given.
    Pipe,
}

impl Spec {
    /// A command with an empty environment.
    pub fn new(program: impl Into<PathBuf>, cwd: &Path) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: cwd.to_owned(),
            stdin: Stdin::Null,
            keep: Vec::new(),
        }
    }

    /// The same with another argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// The same with more arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: Into<OsString>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The same with a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// The same with those of `from` that are in [`HARMLESS_ENV`].
    #[must_use]
    pub fn harmless_env(mut self, from: &BTreeMap<OsString, OsString>) -> Self {
        for name in HARMLESS_ENV {
            if let Some(value) = from.get(std::ffi::OsStr::new(name)) {
                self.env.insert(OsString::from(name), value.clone());
            }
        }
        self
    }

    /// The same with something to read.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Starts it.
    ///
    /// # Errors
    ///
    /// [`ProcessError::Missing`] when there is no such program.
    pub fn spawn(self) -> Result<Child, ProcessError> {
        let program = self.program.clone();
        #[allow(clippy::disallowed_methods, reason = "the one place that starts processes")]
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(&self.env)
            .current_dir(&self.cwd)
            .process_group(0)
            .stdin(if matches!(self.stdin, Stdin::Null) { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|source| match source.kind() {
            // a missing working directory looks the same to the kernel
            io::ErrorKind::NotFound if self.cwd.is_dir() => ProcessError::Missing { program: program.clone() },
            _ => ProcessError::Spawn { program: program.clone(), source },
        })?;
        let feeder = Tasks::new("child stdin");
        if let Stdin::Bytes(bytes) = &self.stdin
            && let Some(mut pipe) = child.stdin.take()
        {
            let bytes = bytes.clone();
            feeder.spawn("write", async move {
                // a child that does not want all of it closes the pipe, which is its right
                pipe.write_all(&bytes).await.ignore("the child need not read everything");
                pipe.shutdown().await.ignore("the child need not read everything");
            });
        }
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        drop(self.keep);
        Ok(Child { program, group, ended: None, feeder, inner: child })
    }

    /// Starts it by itself: a process group of its own that nobody ends or waits for, with nothing to read
    /// and no output. What it complains about goes where our own complaints go.
    ///
    /// # Errors
    ///
    /// As [`Spec::spawn`].
    pub fn detach(self) -> Result<u32, ProcessError> {
        use std::os::unix::process::CommandExt;
        #[allow(clippy::disallowed_methods, reason = "the one place that starts processes")]
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.args).env_clear().envs(&self.env).current_dir(&self.cwd).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let child = command.spawn().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound if self.cwd.is_dir() => ProcessError::Missing { program: self.program.clone() },
            _ => ProcessError::Spawn { program: self.program.clone(), source },
        })?;
        Ok(child.id())
    }

    /// Runs it to its end and returns what it printed.
    ///
    /// # Errors
    ///
    /// As [`Spec::spawn`]; a failing exit code, a time-out or a cancellation is not one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the whole process group.
    pub async fn output(self, limits: OutputLimits, cancel: &CancellationToken) -> Result<Finished, ProcessError> {
        let mut child = self.spawn()?;
        let readers = Tasks::new("child output");
        let stdout = Captured::collect(&readers, child.stdout(), limits.max_bytes);
        let stderr = Captured::collect(&readers, child.stderr(), limits.max_bytes);
        let end = tokio::select! {
            status = child.wait() => End::from(status?),
            () = tokio::time::sleep(limits.timeout) => {
                child.stop(limits.grace).await?;
                End::TimedOut
            }
            () = cancel.cancelled() => {
                child.stop(limits.grace).await?;
                End::Cancelled
            }
        };
        // the leader is gone; give its pipes a moment, then end whoever still holds them
        if tokio::time::timeout(DRAIN, readers.finished()).await.is_err() {
            child.signal(Signal::SIGKILL);
            tokio::time::timeout(DRAIN, readers.finished()).await.ignore("what was read so far is the output");
        }
        Ok(Finished { end, stdout: stdout.take(), stderr: stderr.take() })
    }
}

/// When to stop a command and how much of it to keep.
#[derive(Debug, Clone, Copy)]
pub struct OutputLimits {
    /// The longest it may run.
    pub timeout: Duration,
    /// Between the polite signal and the other one.
    pub grace: Duration,
    /// At most this much of each stream is kept.
    pub max_bytes: usize,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(120), grace: Duration::from_secs(3), max_bytes: 10 << 20 }
    }
}

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How.
    pub end: End,
    /// What it printed.
    pub stdout: Captured,
    /// What it complained about.
    pub stderr: Captured,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It took too long and was ended.
    TimedOut,
    /// Somebody asked to stop.
    Cancelled,
}

impl From<ExitStatus> for End {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Code(-1),
        }
    }
}

/// The beginning of a stream, and how long all of it was.
#[derive(Debug, Clone, Default)]
pub struct Captured {
    /// The bytes that were kept.
    pub bytes: Vec<u8>,
    /// How many there were.
    pub total: u64,
}

impl Captured {
    /// As text; broken UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    fn collect<R: AsyncRead + Send + Unpin + 'static>(tasks: &Tasks, pipe: Option<R>, max: usize) -> Shared {
        let shared = Shared::default();
        if let Some(mut pipe) = pipe {
            let into = shared.clone();
            tasks.spawn("read", async move {
                let mut buffer = vec![0_u8; 16 << 10];
                while let Ok(n @ 1..) = pipe.read(&mut buffer).await {
                    let mut captured = into.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    captured.total += n as u64;
                    let room = max.saturating_sub(captured.bytes.len()).min(n);
                    captured.bytes.extend_from_slice(buffer.get(..room).unwrap_or_default());
                }
            });
        }
        shared
    }
}

/// What a reader has so far; readable even when the reader never ends.
#[derive(Debug, Clone, Default)]
struct Shared(Arc<std::sync::Mutex<Captured>>);

impl Shared {
    fn take(self) -> Captured {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// A running child. Dropping it ends its whole group at once.
#[derive(Debug)]
pub struct Child {
    program: PathBuf,
    group: Option<Pid>,
    ended: Option<ExitStatus>,
    feeder: Tasks,
    inner: tokio::process::Child,
}

impl Child {
    /// Its process id, which is also its group.
    pub fn pid(&self) -> Option<i32> {
        self.group.map(Pid::as_raw)
    }

    /// Its standard input, once, when it was started with [`Stdin::Pipe`].
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.inner.stdin.take()
    }

    /// Its standard output, once.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.inner.stdout.take()
    }

    /// Its standard error, once.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.inner.stderr.take()
    }

    /// Sends a signal to the whole group. Nobody being there any more is fine.
    pub fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            killpg(group, signal).ignore("the group may be gone already");
        }
    }

    /// Waits for the leader's end.
    ///
    /// # Errors
    ///
    /// When the operating system does not say.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn wait(&mut self) -> Result<ExitStatus, ProcessError> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        let waited = self.inner.wait().await;
        let status = waited.map_err(|source| ProcessError::Spawn { program: self.program.clone(), source })?;
        self.ended = Some(status);
        Ok(status)
    }

    /// Asks the group to end, and after `grace` makes it.
    ///
    /// # Errors
    ///
    /// As [`Child::wait`].
    ///
    /// # Cancel safety
    ///
    /// Safe; call it again, or drop the child.
    pub async fn stop(&mut self, grace: Duration) -> Result<ExitStatus, ProcessError> {
        self.signal(Signal::SIGTERM);
        if let Ok(status) = tokio::time::timeout(grace, self.wait()).await {
            self.signal(Signal::SIGKILL); // whoever of the group did not listen
            return status;
        }
        self.signal(Signal::SIGKILL);
        self.wait().await
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // the group outlives its leader when a grandchild stays behind
        self.signal(Signal::SIGKILL);
        self.feeder.cancel();
    }
}

/// Whether a process with this id is running, whoever's it is.
pub fn is_running(pid: i32) -> bool {
    // 0 and below mean groups
    pid > 0 && !matches!(nix::sys::signal::kill(Pid::from_raw(pid), None), Err(nix::errno::Errno::ESRCH))
}

/// What can go wrong when starting a process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// There is no such program.
    #[error("no program {}", .program.display())]
    Missing {
        /// What was looked for.
        program: PathBuf,
    },
    /// It could not be started or waited for.
    #[error("cannot run {}", .program.display())]
    Spawn {
        /// Which.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Fault for ProcessError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing { .. } => ErrorKind::NotInstalled,
            Self::Spawn { .. } => ErrorKind::Internal,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "program_missing",
            Self::Spawn { .. } => "program_spawn",
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Missing { program } => vec![("program", program.display().to_string())],
            Self::Spawn { program, source } => {
                vec![("program", program.display().to_string()), ("cause", source.to_string())]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Spec {
        Spec::new("/bin/sh", Path::new("/")).args(["-c", script]).env("PATH", "/usr/bin:/bin")
    }

    async fn run(spec: Spec, timeout: Duration) -> Finished {
        let limits = OutputLimits { timeout, grace: Duration::from_millis(100), max_bytes: 1000 };
        spec.output(limits, &CancellationToken::new()).await.unwrap()
    }

    #[tokio::test]
    async fn returns_what_was_printed_and_the_code() {
        let spec = sh("cat; echo bad >&2; exit 3").stdin(Stdin::Bytes(Bytes::from_static("こんにちは".as_bytes())));
        let finished = run(spec, Duration::from_secs(20)).await;
        assert_eq!(finished.end, End::Code(3));
        assert_eq!(finished.stdout.text(), "こんにちは");
        assert_eq!(finished.stderr.text(), "bad\n");
    }

    #[test]
    fn what_was_detached_is_in_a_group_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let note = dir.path().join("note");
        let script = format!("read x; ps -o pgid= -p $$ > {0}.tmp; mv {0}.tmp {0}", note.display());
        let id = sh(&script).detach().unwrap();
        let group = loop {
            if let Ok(text) = fs_err::read_to_string(&note) {
                break text.trim().parse::<u32>().unwrap();
            }
            std::thread::yield_now();
        };
        assert_eq!(group, id);
        assert!(matches!(Spec::new("/no/such", Path::new("/")).detach(), Err(ProcessError::Missing { .. })));
    }

    #[tokio::test]
    async fn a_grandchild_that_holds_the_pipe_does_not_hold_us() {
        let finished = run(sh("sleep 60 & echo here"), Duration::from_secs(20)).await;
        assert_eq!((finished.end, finished.stdout.text().as_str()), (End::Code(0), "here\n"));
    }

    #[tokio::test]
    async fn a_child_that_ignores_the_signal_is_ended_anyway() {
        let finished = run(sh("trap '' TERM; while :; do sleep 1; done"), Duration::from_millis(200)).await;
        assert_eq!(finished.end, End::TimedOut);
    }

    #[tokio::test]
    async fn keeps_the_beginning_and_counts_the_rest() {
        let finished = run(sh("head -c 5000 /dev/zero"), Duration::from_secs(20)).await;
        assert_eq!((finished.stdout.bytes.len(), finished.stdout.total), (1000, 5000));
    }

    #[tokio::test]
    async fn a_child_can_be_spoken_to_while_it_runs() {
        let mut child = sh("read line; echo \"heard $line\"").stdin(Stdin::Pipe).spawn().unwrap();
        let (mut input, mut output) = (child.stdin().unwrap(), child.stdout().unwrap());
        input.write_all(b"you\n").await.unwrap();
        let mut heard = String::new();
        output.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "heard you\n");
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let error = Spec::new("no-such-program-here", Path::new("/")).spawn().unwrap_err();
        assert!(matches!(error, ProcessError::Missing { .. }), "{error}");
    }
}
