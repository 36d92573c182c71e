//! The dashboard of the memory pack over real HTTP: who may ask what, and that nothing changes.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use animaworks_testkit::program::Program;
use serde_json::{Value, json};

/// The dashboard of a home, and the token its page has.
pub(crate) struct Page {
    child: Child,
    address: String,
    token: String,
}

impl Drop for Page {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The n-th id a session can have.
pub(crate) fn session_id(n: usize) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

impl Page {
    pub(crate) fn open(program: &Program) -> Self {
        Self::of(program.command(["--json", "pack", "dashboard"]))
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        while !said.ends_with("}\n") {
            assert!(out.read_line(&mut said).unwrap() > 0, "the dashboard ended: {said}");
        }
        let url: Value = serde_json::from_str(&said).unwrap();
        let address = url["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/').to_owned();
        assert!(address.starts_with("127.0.0.1:"));
        let mut page = Self { child, address, token: String::new() };
        let html = page.raw("GET", "/", &page.address.clone(), "").2;
        let token = html.split("name=\"token\" content=\"").nth(1).unwrap();
        token.split('"').next().unwrap().clone_into(&mut page.token);
        page
    }

    /// Sends a request line with a host and more headers (each with its line end); gives status, head and body.
    pub(crate) fn raw(&self, method: &str, path: &str, host: &str, more: &str) -> (u16, String, String) {
        self.send(method, path, host, more, "")
    }

    fn send(&self, method: &str, path: &str, host: &str, more: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{more}");
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        let (status, _, body) = self.raw("GET", path, &self.address, "");
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let more = format!(
            "content-type: application/json\r\nx-pack-token: {}\r\norigin: http://{}\r\n",
            self.token, self.address
        );
        let (status, _, body) = self.send("POST", path, &self.address, &more, &body.to_string());
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }
}

fn user(text: &str) -> String {
    json!({"type": "user", "cwd": "/work", "message": {"content": text}}).to_string() + "\n"
}

fn put(program: &Program, path: &str, text: &str) -> PathBuf {
    let path = program.home().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// Every file below a directory with its bytes, without what a memory keeps for itself.
fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != ".pack") {
            found.extend(tree(&path));
        } else if path.is_file() {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn only_this_machine_may_look_and_only_three_moves_are_taken() {
    let program = Program::new();
    put(&program, &format!(".claude/projects/-work/{}.jsonl", session_id(1)), &user("hello"));
    let page = Page::open(&program);
    let port = page.address.split(':').nth(1).unwrap().to_owned();
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "", "localhost@evil.example"]
    {
        assert_eq!(page.raw("GET", "/api/config", host, "").0, 403, "{host}");
    }
    assert_eq!(page.raw("GET", "/api/config", &page.address, "origin: https://evil.example\r\n").0, 403);
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), "localhost".to_owned()] {
        assert_eq!(page.raw("GET", "/api/config", &host, "").0, 200, "{host}");
    }
    let head = page.raw("HEAD", "/", &page.address, "");
    assert_eq!((head.0, head.2.as_str()), (200, ""));
    for part in ["default-src 'none'", "nosniff", "frame-ancestors 'none'", "no-store"] {
        assert!(head.1.contains(part), "{part}: {}", head.1);
    }
    for path in ["/", "/api/config", "/api/sessions", "/api/memory-file", "/nowhere", "/api/archive-session/"] {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let (status, _, body) = page.raw(method, path, &page.address, "");
            assert_eq!(status, 405, "{method} {path}");
            assert!(body.contains("read_only"), "{method} {path}: {body}");
        }
    }
    for path in ["/api/archive-session", "/api/restore-session", "/api/pin-session"] {
        assert_eq!(page.raw("GET", path, &page.address, "").0, 405, "{path}");
        assert_eq!(page.raw("DELETE", path, &page.address, "").0, 405, "{path}");
        // another page of this machine does not know the token
        let body = json!({"project": "-work", "id": session_id(1)}).to_string();
        let sent = page.send("POST", path, &page.address, "content-type: application/json\r\n", &body);
        assert_eq!(sent.0, 403, "{path}");
        assert_eq!(page.post(path, &json!({"id": 3})).0, 400);
        assert_eq!(page.post(path, &json!({"project": "x".repeat(20_000), "id": "y"})).0, 400);
    }
    assert_eq!(page.get("/nowhere").0, 404);
}

#[test]
fn hostile_names_lead_nowhere() {
    let program = Program::new();
    put(&program, "secret.md", "## 2026-01-01 secret\nhidden\n");
    put(&program, ".claude/memory/a.md", "## 2026-01-01 a\nb\n");
    put(&program, ".claude/memory/.pack/x.md", "own\n");
    put(&program, &format!(".claude/projects/-work/{}.jsonl", session_id(1)), &user("hello"));
    put(&program, &format!(".claude/{}.jsonl", session_id(2)), &user("outside"));
    std::os::unix::fs::symlink("../../secret.md", program.home().join(".claude/memory/link.md")).unwrap();
    std::os::unix::fs::symlink(program.home().join(".claude"), program.home().join(".claude/projects/up")).unwrap();
    let before = tree(program.home());
    let page = Page::open(&program);
    assert_eq!(page.get("/api/memory-file?dir=0&source=a.md").1["text"], "## 2026-01-01 a\nb\n");
    for source in
        ["../../secret.md", "/etc/passwd", "link.md", ".pack/x.md", "a.md%00", "..%2F..%2Fsecret.md", "", "%2e%2e/x.md"]
    {
        assert_eq!(page.get(&format!("/api/memory-file?dir=0&source={source}")).0, 404, "{source}");
    }
    assert_eq!(page.get("/api/memory-file?dir=9&source=a.md").0, 404);
    for path in ["/../secret.md", "/%2e%2e/secret.md", "/shared/../../secret.md", "//etc/passwd", "/shared/"] {
        assert_eq!(page.get(path).0, 404, "{path}");
    }
    let id = session_id(2);
    for project in ["..", ".", "up", "%2e%2e", "-work%2F..%2F..", "/", "", "nowhere"] {
        assert_eq!(page.get(&format!("/api/session?project={project}&id={id}")).0, 404, "{project}");
        let key = json!({"project": project, "id": id});
        for path in ["/api/archive-session", "/api/restore-session", "/api/pin-session"] {
            assert_eq!(page.post(path, &key).0, 404, "{project} {path}");
        }
    }
    for id in ["..", "x", "../../x", "%2e%2e"] {
        assert_eq!(page.get(&format!("/api/session?project=-work&id={id}")).0, 400, "{id}");
    }
    assert_eq!(tree(program.home()), before, "nothing has changed");
}

#[test]
fn moves_undo_one_another_and_looking_changes_nothing() {
    let program = Program::new();
    put(&program, ".claude/memory/a.md", "## 2026-01-01 Lantern\nIt stands in the hall.\n");
    for n in 1..=3 {
        put(&program, &format!(".claude/projects/-work/{}.jsonl", session_id(n)), &user(&format!("question {n}")));
    }
    let before = tree(program.home());
    let page = Page::open(&program);
    for path in [
        "/api/health",
        "/api/config",
        "/api/words?lang=ja",
        "/api/agents",
        "/api/start-command",
        "/api/projects",
        "/api/sessions",
        "/api/archive",
        "/api/memory",
        "/api/memory-search?q=lantern",
        "/api/memory-report",
        "/api/tasks",
        "/api/session-search?q=question",
    ] {
        let (status, body) = page.get(path);
        assert_eq!(status, 200, "{path}");
        assert!(body["generatedAt"].is_string(), "{path}");
    }
    assert_eq!(page.get("/api/memory-search?q=%20").0, 400);
    assert_eq!(page.get("/api/session-search").0, 400);
    assert_eq!(page.get("/api/memory-search?q=lantern").1["hits"][0]["heading"], "2026-01-01 Lantern");
    assert_eq!(tree(program.home()), before);
    let key = |n| json!({"project": "-work", "id": session_id(n)});
    let listed = |path: &str| page.get(path).1["total"].as_u64().unwrap();
    assert_eq!(page.post("/api/archive-session", &key(2)).0, 200);
    assert_eq!((listed("/api/sessions"), listed("/api/archive")), (2, 1));
    let archived = page.get(&format!("/api/session?archived=true&project=-work&id={}", session_id(2))).1;
    assert_eq!(archived["said"][0]["text"], "question 2");
    assert_eq!(page.post("/api/archive-session", &key(2)).0, 404);
    assert_eq!(page.post("/api/restore-session", &key(2)).0, 200);
    assert_eq!(page.post("/api/restore-session", &key(2)).0, 404);
    assert_eq!(tree(program.home()), before);
    assert_eq!(page.post("/api/pin-session", &key(1)).0, 200);
    let rows = page.get("/api/sessions").1;
    assert_eq!(
        (&rows["sessions"][0]["sessionId"], &rows["sessions"][0]["pinned"]),
        (&session_id(1).into(), &true.into())
    );
    let unpin = json!({"project": "-work", "id": session_id(1), "pinned": false});
    assert_eq!(page.post("/api/pin-session", &unpin).0, 200);
    assert!(!page.get("/api/sessions").1.to_string().contains("\"pinned\":true"));
    assert_eq!(tree(program.home()), before);
}

#[test]
fn text_is_told_as_text_and_the_page_never_reads_markup() {
    let program = Program::new();
    let hostile = "<img src=x onerror=alert(1)></script><script>alert(2)</script>";
    put(&program, ".claude/memory/a.md", &format!("## 2026-01-01 {hostile}\n{hostile} lantern\n"));
    put(&program, &format!(".claude/projects/-work/{}.jsonl", session_id(1)), &user(&format!("lantern {hostile}")));
    put(
        &program,
        ".claude/memory/.pack/config.json",
        &json!({"dashboard": {"team_name": hostile, "start_command": "touch ~/ran; echo $(touch ~/ran)"}}).to_string(),
    );
    let page = Page::open(&program);
    for path in ["/api/memory-search?q=lantern", "/api/sessions", "/api/config", "/api/memory-file?dir=0&source=a.md"] {
        let (status, head, body) = page.raw("GET", path, &page.address, "");
        assert_eq!(status, 200);
        assert!(head.contains("content-type: application/json") && head.contains("nosniff"), "{head}");
        assert!(body.contains("onerror"), "told as it is, in JSON: {body}");
    }
    let config = page.get("/api/config").1;
    assert_eq!(config["startCommand"], "touch ~/ran; echo $(touch ~/ran)");
    assert!(config.get("tasks").is_none() && config.get("transcripts").is_none(), "paths stay on the server");
    page.get("/api/agents");
    page.get("/api/start-command");
    assert!(!program.home().join("ran").exists());
    let html = page.raw("GET", "/", &page.address, "").2;
    assert!(!html.contains("onerror") && !html.contains("<script>"), "{html}");
    for name in ["/pack.js", "/shared/dom.js"] {
        let script = page.raw("GET", name, &page.address, "").2;
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("] {
            assert!(!script.contains(way), "{name}: {way}");
        }
    }
}

#[test]
fn both_languages_have_every_word_the_page_uses() {
    let program = Program::japanese();
    let page = Page::open(&program);
    let script = page.raw("GET", "/pack.js", &page.address, "").2;
    let html = page.raw("GET", "/", &page.address, "").2;
    assert!(html.contains("<html lang=\"ja\">"));
    let mut used: Vec<&str> = script.split("say(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    used.extend(html.split("data-say=\"").skip(1).filter_map(|rest| rest.split('"').next()));
    used.extend(html.split("data-hint=\"").skip(1).filter_map(|rest| rest.split('"').next()));
    used.extend(script.split("nothing(\"").skip(1).filter_map(|rest| rest.split('"').next()));
    assert!(used.len() > 30, "{used:?}");
    let words: Vec<Value> =
        ["ja", "en"].iter().map(|lang| page.get(&format!("/api/words?lang={lang}")).1["words"].clone()).collect();
    for key in used {
        assert!(words.iter().all(|words| words[key].is_string()), "{key}");
        assert_ne!(words[0][key], words[1][key], "{key}");
    }
}

#[test]
fn twenty_thousand_sessions_are_listed_without_being_read() {
    let program = Program::new();
    for n in 0..20_000 {
        let text = if n == 12_345 { user("the lantern of the north") } else { user("something else") };
        put(&program, &format!(".claude/projects/-project-{:02}/{}.jsonl", n % 40, session_id(n)), &text);
    }
    let begun = Instant::now();
    let page = Page::open(&program);
    let listing = page.get("/api/sessions").1;
    let first = begun.elapsed();
    assert_eq!((listing["total"].as_u64(), listing["sessions"].as_array().unwrap().len()), (Some(20_000), 60));
    assert_eq!(listing["projects"].as_array().unwrap().len(), 40);
    assert!(first < Duration::from_secs(10), "{first:?}");
    assert_eq!(page.get("/api/sessions?project=-project-03&limit=500").1["sessions"].as_array().unwrap().len(), 200);
    let (mut from, mut hits, mut asked) = (0, Vec::new(), 0);
    while from < 20_000 {
        let found = page.get(&format!("/api/session-search?q=lantern%20north&offset={from}")).1;
        hits.extend(found["hits"].as_array().unwrap().clone());
        from = found["searched"].as_u64().unwrap();
        asked += 1;
        assert!(asked < 100, "every search comes further");
    }
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0]["sessionId"], session_id(12_345));
}

#[test]
fn the_panes_of_a_session_are_shown_and_nothing_is_typed_into_them() {
    let program = Program::new();
    let sockets = program.home().join("tmux");
    fs::create_dir_all(&sockets).unwrap();
    let tmux = |args: &[&str]| {
        let mut command = Command::new("tmux");
        command
            .args(["-f", "/dev/null"])
            .args(args)
            .env_clear()
            .env("HOME", program.home())
            .env("PATH", "/usr/bin:/bin");
        command.env("TMUX_TMPDIR", &sockets).env("LANG", "C.UTF-8").env("TERM", "xterm").stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    put(&program, ".claude/memory/.pack/config.json", &json!({"dashboard": {"tmux_session": "team"}}).to_string());
    let open = |dir: &Path| {
        let mut command = program.command(["--json", "pack", "dashboard"]);
        command.env("TMUX_TMPDIR", dir);
        command
    };
    let page = Page::of(open(&sockets));
    assert_eq!(page.get("/api/agents").1["agents"], json!([]), "no server, no agents");
    let script = "printf '\\033]2;sakura\\033\\\\'; echo 'lamp <b>on</b>'; exec sleep 600";
    if !tmux(&["new-session", "-d", "-s", "team", "-x", "80", "-y", "24", script]) {
        println!("skipped: this machine has no tmux");
        return;
    }
    assert!(tmux(&["new-session", "-d", "-s", "team2", "exec sleep 600"]), "a session that is nobody's business");
    let begun = Instant::now();
    let agents = loop {
        let agents = page.get("/api/agents").1["agents"].clone();
        if agents[0]["screen"].as_str().is_some_and(|screen| screen.contains("lamp")) {
            break agents;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{agents}");
    };
    let ended = tmux(&["kill-server"]);
    assert_eq!(agents.as_array().unwrap().len(), 1, "{agents}");
    assert_eq!((&agents[0]["command"], &agents[0]["screen"]), (&"sleep".into(), &"lamp <b>on</b>".into()));
    assert!(ended);
}
