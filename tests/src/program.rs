//! The real binary, in a home of its own, with nothing of the machine's environment.

#![allow(clippy::expect_used, reason = "a kit that cannot do its part fails the test that uses it")]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// The longest any command of a test may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The `animaworks` binary over a home directory that goes away with it.
#[derive(Debug)]
pub struct Program {
    home: TempDir,
    lang: &'static str,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; -1 after a signal.
    pub code: i32,
    /// What it printed.
    pub out: String,
    /// What it said besides.
    pub err: String,
}

impl Default for Program {
    fn default() -> Self {
        Self::new()
    }
}

impl Program {
    /// An empty home, in English.
    pub fn new() -> Self {
        Self { home: tempfile::tempdir().expect("a temporary directory"), lang: "en_US.UTF-8" }
    }

    /// An empty home, in Japanese.
    pub fn japanese() -> Self {
        Self { lang: "ja_JP.UTF-8", ..Self::new() }
    }

    /// The home directory.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.home().join(".animaworks")
    }

    /// Puts a program into a directory that comes first in the `PATH` of every command from now on.
    pub fn offer(&self, name: &str, program: &Path) {
        std::fs::create_dir_all(self.offered()).expect("a directory for programs");
        std::os::unix::fs::symlink(program, self.offered().join(name)).expect("a link to a program");
    }

    fn offered(&self) -> PathBuf {
        self.home().join("bin")
    }

    /// Where programs are: those that were offered, and the machine's own.
    fn path(&self) -> String {
        if self.offered().is_dir() {
            format!("{}:/usr/bin:/bin", self.offered().display())
        } else {
            "/usr/bin:/bin".to_owned()
        }
    }

    /// The binary: `ANIMAWORKS_BIN`, or the one that was built beside this test.
    pub fn binary() -> PathBuf {
        if let Some(path) = std::env::var_os("ANIMAWORKS_BIN") {
            return PathBuf::from(path);
        }
        let test = std::env::current_exe().expect("the path of this test");
        let path = test.ancestors().nth(2).expect("target/profile").join("animaworks");
        assert!(path.exists(), "{} is missing: cargo build -p animaworks-cli first", path.display());
        path
    }

    /// The command, ready to be started.
    pub fn command<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(&self, args: I) -> Command {
        let mut command = Command::new(Self::binary());
        command
            .args(args)
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", self.path())
            .env("LANG", self.lang)
            .current_dir(self.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub fn run<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(&self, args: I) -> Ended {
        finish(self.command(args).spawn().expect("the program starts"))
    }

    /// Runs it with something to read.
    pub fn run_with<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(&self, args: I, stdin: &[u8]) -> Ended {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().expect("the program starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        let stdin = stdin.to_vec();
        let feeder = std::thread::spawn(move || {
            // the program may refuse before it has read everything
            if let Err(error) = pipe.write_all(&stdin) {
                assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
            }
        });
        let ended = finish(child);
        feeder.join().expect("the feeder ends");
        ended
    }

    /// Runs it and expects success; gives what it printed.
    pub fn ok<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(&self, args: I) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "{ended:#?}");
        ended.out
    }
}

/// Waits for a child, but not for ever.
pub fn finish(mut child: Child) -> Ended {
    let (mut out, mut err) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
    let read = |pipe: &mut dyn std::io::Read| {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a readable pipe");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    std::thread::scope(|scope| {
        let out = scope.spawn(move || read(&mut out));
        let err = scope.spawn(move || read(&mut err));
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if start.elapsed() > PATIENCE {
                child.kill().expect("a child that can be ended");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        Ended {
            code: status.code().unwrap_or(-1),
            out: out.join().expect("a reader"),
            err: err.join().expect("a reader"),
        }
    })
}
