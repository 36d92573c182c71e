//! A house to attack: an organisation with two Animas, secrets beside it, and links that lead there.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::{Path, PathBuf},
    sync::Arc,
};

use animaworks_core::{
    AnimaName, DataDir, Locale, SystemClock, Tool, ToolContext, ToolError, ToolOutput,
    seams::{Enforced, Sandbox},
    test_support::context,
    trigger::TriggerKind,
};
use animaworks_tools::{
    KernelSandbox, OwnerPermissions, file_tools,
    permission::NoDescendants,
    shell::{Surroundings, Walls, bash_tool, judge},
};
use serde_json::json;

/// What must never be seen outside its own files.
pub(crate) const TOKEN: &str = "TOKEN-7f3a91";
/// What an attack prints when it got through in a way that leaves no other trace.
pub(crate) const THROUGH: &str = "TOKEN-CONNECTED";

pub(crate) struct House {
    _temp: tempfile::TempDir,
    root: PathBuf,
    pub(crate) own: PathBuf,
    pub(crate) permissions: Arc<OwnerPermissions>,
    bash: Arc<dyn Tool>,
    files: Vec<Arc<dyn Tool>>,
    port: std::net::TcpListener,
    _socket: UnixListener,
}

/// Paths with their mode and content; a link with where it leads.
pub(crate) type Snapshot = BTreeMap<PathBuf, String>;

impl House {
    pub(crate) fn new(permissions: Option<&str>) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let data = DataDir::new(root.join("data"));
        let (own, peer, out) = (root.join("data/animas/sakura"), root.join("data/animas/peer"), root.join("outside"));
        let put = |path: PathBuf, text: &str| {
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        for place in ["state/plans", "knowledge", "episodes", "run/tmp", "index", "activity_log", "work", "資料"] {
            fs_err::create_dir_all(own.join(place)).unwrap();
        }
        put(own.join("README.md"), "# Project\nold words about deploy\nfoo TODO\n\nlast\n");
        put(own.join("knowledge/deploy.md"), "# deploy\nold way\n");
        put(own.join("knowledge/team.md"), "# team\n");
        put(own.join("data.csv"), "a,1\nb,2\n");
        put(own.join("data.json"), r#"{"items":[{"name":"a"},{"name":"b"}]}"#);
        put(own.join("identity.md"), "sakura");
        put(own.join("status.json"), "{}");
        put(own.join("activity_log/2026-01-01.jsonl"), "{}\n");
        put(own.join("run/min_trust_seen.s1"), "untrusted");
        put(own.join("list.txt"), "/\n");
        put(own.join("work/script.py"), "import sys\nprint('args', sys.argv[1:])\n");
        put(own.join("work/hello.sh"), "#!/bin/sh\necho hello\n");
        let evil = "import os\nfor p in ['@OUT@/secret.txt','@PEER@/identity.md','@DATA@/auth.json']:\n  try: print(open(p).read())\n  except OSError as e: print(e.errno)\n  try: open(p,'w').write('x')\n  except OSError as e: print(e.errno)\n";
        let race = "import os,threading\ndef swap():\n  for i in range(300):\n    for t in ['../knowledge','@OUT@']:\n      try: os.symlink(t,'work/t%d'%i); os.rename('work/t%d'%i,'work/racing')\n      except OSError: pass\nt=threading.Thread(target=swap); t.start()\nfor i in range(2000):\n  try: print(open('work/racing/secret.txt').read())\n  except OSError: pass\n  try: open('work/racing/new.txt','w').write('x')\n  except OSError: pass\nt.join()\n";
        let fill = |text: &str| {
            text.replace("@OUT@", out.to_str().unwrap())
                .replace("@PEER@", peer.to_str().unwrap())
                .replace("@DATA@", data.root().to_str().unwrap())
        };
        put(own.join("work/evil.py"), &fill(evil));
        put(own.join("work/race.py"), &fill(race));
        put(peer.join("identity.md"), TOKEN);
        put(peer.join("knowledge/private.md"), TOKEN);
        put(peer.join("cron.md"), TOKEN);
        put(out.join("secret.txt"), TOKEN);
        put(out.join("秘密.txt"), TOKEN);
        put(data.root().join("auth.json"), &format!("{{\"key\":\"{TOKEN}\"}}"));
        put(data.root().join("config.json"), &format!("{{\"key\":\"{TOKEN}\"}}"));
        put(data.root().join("shared/credentials.json"), &format!("{{\"key\":\"{TOKEN}\"}}"));
        put(data.root().join("shared/inbox/peer/1.json"), TOKEN);
        put(data.root().join("shared/common_knowledge/we.md"), "ours");
        put(data.root().join("common_knowledge/guide.md"), "guide");
        put(data.root().join("company/vision.md"), "vision");
        std::os::unix::fs::symlink(&out, own.join("work/link")).unwrap();
        std::os::unix::fs::symlink(&peer, own.join("work/peer")).unwrap();
        std::os::unix::fs::symlink(out.join("secret.txt"), own.join("work/file")).unwrap();
        std::os::unix::fs::symlink(out.join("nothing"), own.join("work/dangling")).unwrap();
        if let Some(text) = permissions {
            put(own.join("permissions.md"), text);
        } else {
            put(own.join("permissions.md"), "## Executable Commands\n- all\n");
        }
        let socket = UnixListener::bind(out.join("sock")).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let sandbox: Arc<dyn Sandbox> = Arc::new(KernelSandbox::new(env!("CARGO_BIN_EXE_animaworks-confine")));
        let dir = data.anima(&AnimaName::new("sakura").unwrap());
        let permissions = Arc::new(OwnerPermissions::new(dir, None, Arc::new(NoDescendants), sandbox.strength()));
        let path = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"].join(":");
        let env = BTreeMap::from([
            (OsString::from("PATH"), OsString::from(path)),
            (OsString::from("LANG"), OsString::from("C.UTF-8")),
            (OsString::from("SECRET_KEY"), OsString::from(TOKEN)),
        ]);
        let surroundings = Surroundings {
            permissions: permissions.clone(),
            sandbox,
            env,
            allow_unenforced: false,
            clock: Arc::new(SystemClock::new()),
        };
        let bash = bash_tool(surroundings, Locale::En);
        let files = file_tools(&permissions, Locale::En);
        Self { _temp: temp, root, own, permissions, bash, files, port, _socket: socket }
    }

    pub(crate) fn held(&self) -> Enforced {
        self.permissions.held()
    }

    /// A line of a data file with the places of this house.
    pub(crate) fn line(&self, line: &str) -> String {
        let text = match line.strip_prefix("json:") {
            Some(json) => serde_json::from_str(json).unwrap(),
            None => line.to_owned(),
        };
        text.replace("@OUT@", self.root.join("outside").to_str().unwrap())
            .replace("@PEER@", self.root.join("data/animas/peer").to_str().unwrap())
            .replace("@OWN@", self.own.to_str().unwrap())
            .replace("@DATA@", self.root.join("data").to_str().unwrap())
            .replace("@PORT@", &self.port.local_addr().unwrap().port().to_string())
            .replace("@TESTPID@", &std::process::id().to_string())
    }

    pub(crate) fn judge(&self, command: &str) -> Result<(), String> {
        let files = self.permissions.files();
        judge(command, &Walls::new(&files, self.held())).map(drop).map_err(|refusal| refusal.to_string())
    }

    pub(crate) async fn bash(&self, command: &str) -> Result<ToolOutput, ToolError> {
        self.bash.call(json!({ "command": command, "timeout": 20 }), &Self::surroundings()).await
    }

    pub(crate) async fn file_tool(&self, name: &str, args: serde_json::Value) -> Result<ToolOutput, ToolError> {
        let tool = self.files.iter().find(|tool| tool.spec().name.as_str() == name).unwrap();
        tool.call(args, &Self::surroundings()).await
    }

    fn surroundings() -> ToolContext {
        context(TriggerKind::Task)
    }

    /// Everything that no attack may change.
    pub(crate) fn canary(&self) -> Snapshot {
        let mut found = Snapshot::new();
        for place in ["outside", "data/animas/peer", "data/shared", "data/common_knowledge", "data/company"] {
            look(&self.root.join(place), &mut found);
        }
        for file in ["data/auth.json", "data/config.json"] {
            look(&self.root.join(file), &mut found);
        }
        for file in ["identity.md", "permissions.md", "status.json", "activity_log", "run/min_trust_seen.s1", "index"] {
            look(&self.own.join(file), &mut found);
        }
        // names only: what may be in these, and nothing else
        for place in [self.root.clone(), self.root.join("data"), self.root.join("data/animas")] {
            let mut names: Vec<_> = fs_err::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            found.insert(place, format!("{names:?}"));
        }
        found
    }

    /// Connections that were made to our ports.
    pub(crate) fn was_called(&self) -> bool {
        self.port.set_nonblocking(true).unwrap();
        self.port.accept().is_ok()
    }
}

fn look(path: &Path, into: &mut Snapshot) {
    let Ok(metadata) = fs_err::symlink_metadata(path) else {
        into.insert(path.to_owned(), "gone".to_owned());
        return;
    };
    let mode = metadata.permissions().mode();
    let content = if metadata.is_file() {
        String::from_utf8_lossy(&fs_err::read(path).unwrap()).into_owned()
    } else if metadata.is_symlink() {
        fs_err::read_link(path).unwrap().display().to_string()
    } else {
        String::new()
    };
    into.insert(path.to_owned(), format!("{mode:o} {content}"));
    if metadata.is_dir() {
        for entry in fs_err::read_dir(path).unwrap() {
            look(&entry.unwrap().path(), into);
        }
    }
}

/// The lines of a data file, without comments.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("# "))
}
