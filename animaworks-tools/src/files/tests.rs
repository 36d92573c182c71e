//! Reading, writing and finding, as a model does it.

use animaworks_core::{AnimaName, DataDir, seams::Enforced, test_support::context, trigger::TriggerKind};
use serde_json::{Value, json};

use super::*;
use crate::permission::{Descendants, NoDescendants};

struct Hands {
    temp: tempfile::TempDir,
    tools: Vec<Arc<dyn Tool>>,
}

fn hands(org: Arc<dyn Descendants>) -> Hands {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::new(temp.path()).anima(&AnimaName::new("sakura").unwrap());
    fs_err::create_dir_all(dir.root().join("knowledge")).unwrap();
    let permissions = Arc::new(OwnerPermissions::new(dir, None, org, Enforced::Kernel));
    Hands { tools: file_tools(&permissions, Locale::En), temp }
}

impl Hands {
    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join("animas/sakura").join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        fs_err::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs_err::write(self.path(name), bytes).unwrap();
    }

    async fn call(&self, name: &str, args: Value) -> Result<ToolOutput, ToolError> {
        let tool = self.tools.iter().find(|tool| tool.spec().name.as_str() == name).unwrap();
        tool.call(args, &context(TriggerKind::Task)).await
    }
}

#[tokio::test]
async fn a_file_is_read_before_it_is_replaced() {
    let hands = hands(Arc::new(NoDescendants));
    hands.put("a.md", b"one\r\ntwo\r\n");
    let error = hands.call("Write", json!({"path": "a.md", "content": "x\n"})).await.unwrap_err();
    assert!(matches!(error, ToolError::Failed { error_type: "StateError", .. }), "{error}");
    let read = hands.call("Read", json!({"path": "a.md", "offset": 2})).await.unwrap();
    assert!(read.text.contains("2|two") && !read.text.contains("1|one"), "{}", read.text);
    assert_eq!(read.trust, Trust::Medium);
    hands.call("Write", json!({"path": "a.md", "content": "x\ny\n"})).await.unwrap();
    assert_eq!(fs_err::read(hands.path("a.md")).unwrap(), b"x\r\ny\r\n", "line ends are kept");
    // what somebody else changed meanwhile is not lost
    hands.put("a.md", b"theirs");
    assert!(hands.call("Write", json!({"path": "a.md", "content": "mine"})).await.is_err());
    hands.call("Write", json!({"path": "深い/場所/b.md", "content": "new"})).await.unwrap();
    assert_eq!(fs_err::read_to_string(hands.path("深い/場所/b.md")).unwrap(), "new");
}

#[tokio::test]
async fn odd_files_are_said_and_not_harmed() {
    let hands = hands(Arc::new(NoDescendants));
    hands.put("sjis.txt", b"\x93\xfa\x96\x7b\n");
    let read = hands.call("Read", json!({"path": "sjis.txt"})).await.unwrap();
    assert!(read.text.contains("not UTF-8"), "{}", read.text);
    assert!(hands.call("Edit", json!({"path": "sjis.txt", "old_string": "a", "new_string": "b"})).await.is_err());
    hands.put("image.bin", b"\x00\x01\x02");
    assert!(hands.call("Read", json!({"path": "image.bin"})).await.unwrap().text.contains("not a text file"));
    let missing = hands.call("Read", json!({"path": "image.bim"})).await.unwrap_err();
    let ToolError::Failed { suggestion, .. } = missing else { panic!("{missing}") };
    assert!(suggestion.unwrap().contains("image.bin"));
    hands.put("long.txt", "line\n".repeat(5_000).as_bytes());
    let long = hands.call("Read", json!({"path": "long.txt"})).await.unwrap();
    assert!(long.text.contains("offset=2001"), "{}", long.text.lines().last().unwrap());
    assert!(hands.call("Read", json!({"path": "knowledge"})).await.is_err());
}

#[tokio::test]
async fn searching_finds_only_what_may_be_read() {
    let hands = hands(Arc::new(NoDescendants));
    hands.put("knowledge/会議.md", "東京駅で会議\n".as_bytes());
    hands.put("knowledge/b.md", b"nothing\n");
    fs_err::create_dir_all(hands.temp.path().join("animas/peer")).unwrap();
    fs_err::write(hands.temp.path().join("animas/peer/x.md"), "東京駅").unwrap();
    std::os::unix::fs::symlink(hands.temp.path().join("animas/peer"), hands.path("friend")).unwrap();
    let found = hands.call("Grep", json!({"pattern": "東京.", "glob": "*.md"})).await.unwrap();
    assert_eq!(found.text, "knowledge/会議.md:1:東京駅で会議");
    let named = hands.call("Glob", json!({"pattern": "**/*.md"})).await.unwrap();
    assert_eq!(named.text, "knowledge/b.md\nknowledge/会議.md");
    assert!(hands.call("Grep", json!({"pattern": "x", "path": "friend"})).await.is_err());
    assert!(hands.call("Grep", json!({"pattern": "("})).await.is_err());
    let listed = hands.call("list_directory", json!({})).await.unwrap();
    assert_eq!(listed.text, "friend@\nknowledge/");
}

#[derive(Debug)]
struct Boss;

impl Descendants for Boss {
    fn descendants(&self, _: &AnimaName) -> Vec<AnimaName> {
        vec![AnimaName::new("rin").unwrap()]
    }
}

#[tokio::test]
async fn a_supervisor_sets_a_status_but_no_privileged_key() {
    let hands = hands(Arc::new(Boss));
    let status = hands.temp.path().join("animas/rin/status.json");
    fs_err::create_dir_all(status.parent().unwrap()).unwrap();
    fs_err::write(&status, r#"{"model":"a","supervisor":"sakura"}"#).unwrap();
    hands.call("Read", json!({"path": "animas/rin/status.json"})).await.unwrap();
    for bad in
        [r#"{"model":"b","supervisor":"rin"}"#, r#"{"supervisor":"sakura","debug_superuser":true}"#, "no json", "[]"]
    {
        assert!(hands.call("Write", json!({"path": "animas/rin/status.json", "content": bad})).await.is_err(), "{bad}");
    }
    let good = r#"{"model":"b","supervisor":"sakura"}"#;
    hands.call("Write", json!({"path": "animas/rin/status.json", "content": good})).await.unwrap();
    assert_eq!(fs_err::read_to_string(&status).unwrap(), good);
}
