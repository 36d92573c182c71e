//! The table in front of the gate.

use animaworks_core::{
    AnimaName, CallId, DataDir, Tool, ToolCall,
    gate::Gate,
    test_support::{FakeTool, context},
    trigger::TriggerKind,
};
use serde_json::json;

use super::{super::NoDescendants, *};

fn house(permissions: Option<&str>) -> (tempfile::TempDir, Arc<OwnerPermissions>) {
    let temp = tempfile::tempdir().unwrap();
    let dir = DataDir::new(temp.path()).anima(&AnimaName::new("sakura").unwrap());
    fs_err::create_dir_all(dir.root()).unwrap();
    if let Some(text) = permissions {
        fs_err::write(dir.file("permissions.md"), text).unwrap();
    }
    (temp, Arc::new(OwnerPermissions::new(dir, None, Arc::new(NoDescendants), Enforced::Kernel)))
}

fn may(permissions: &OwnerPermissions, tool: &str, effect: Effect, args: &Value) -> Result<(), Reason> {
    check_call(&permissions.files(), Enforced::Kernel, &ToolName::new(tool).unwrap(), Some(effect), args)
        .map_err(|refusal| refusal.reason)
}

#[test]
fn every_reason_has_its_words() {
    for locale in Locale::ALL {
        for reason in Reason::ALL {
            let said = Refusal::new(*reason, "X").say(locale);
            assert!(!said.starts_with("tools."), "{locale}: {said}");
        }
    }
}

#[test]
fn no_file_means_own_directory_commands_and_nothing_outside() {
    let (_temp, permissions) = house(None);
    assert_eq!(may(&permissions, "Read", Effect::Reads, &json!({"path": "a.md"})), Ok(()));
    assert_eq!(may(&permissions, "Bash", Effect::Acts, &json!({"command": "ls"})), Ok(()));
    assert_eq!(may(&permissions, "search_memory", Effect::Reads, &json!({})), Ok(()));
    assert_eq!(may(&permissions, "web_search", Effect::Reads, &json!({})), Err(Reason::NotGranted));
    assert_eq!(may(&permissions, "slack_send", Effect::External, &json!({})), Err(Reason::NotGranted));
    assert_eq!(may(&permissions, "odd_tool", Effect::Acts, &json!({})), Err(Reason::NotGranted));
    assert!(permissions.table().network.is_none());
}

#[test]
fn the_right_to_a_service_is_not_the_right_to_change_it() {
    let (_temp, permissions) = house(Some("## External Tools\n- all: yes\n"));
    assert_eq!(may(&permissions, "github_issues", Effect::External, &json!({})), Ok(()));
    assert_eq!(may(&permissions, "github_create_issue", Effect::External, &json!({})), Err(Reason::NotGranted));
    let (_temp, permissions) = house(Some("## External Tools\n- github_create_issue: yes\n"));
    assert_eq!(may(&permissions, "github_create_issue", Effect::External, &json!({})), Ok(()));
    assert_eq!(may(&permissions, "github_create_pr", Effect::External, &json!({})), Err(Reason::NotGranted));
}

#[test]
fn who_may_search_may_read_and_one_of_them_can_be_forbidden() {
    let (_temp, permissions) = house(Some("## External Tools\n- web_search: OK\n"));
    assert_eq!(may(&permissions, "web_fetch", Effect::External, &json!({})), Ok(()));
    let (_temp, permissions) = house(Some("## External Tools\n- web_search: OK\n- web_fetch: no\n"));
    assert_eq!(may(&permissions, "web_fetch", Effect::External, &json!({})), Err(Reason::Denied));
    assert_eq!(may(&permissions, "web_search", Effect::External, &json!({})), Ok(()));
}

#[test]
fn only_granted_services_are_shown() {
    let (_temp, permissions) = house(Some("## External Tools\n- web_search: OK\n"));
    let tools = ["web_search", "web_fetch", "github_issues"].map(|name| FakeTool::new(name, Effect::External));
    let gate = Gate::new(tools.map(|tool| Arc::new(tool) as Arc<dyn Tool>), permissions);
    let offered = gate.offered(TriggerKind::Chat);
    assert_eq!(offered.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["web_fetch", "web_search"]);
}

#[test]
fn a_missing_section_is_denied() {
    let (_temp, permissions) = house(Some("## External Tools\n- slack: OK\n- slack_send: no\n"));
    assert_eq!(may(&permissions, "Bash", Effect::Acts, &json!({"command": "ls"})), Err(Reason::NotListed));
    assert_eq!(may(&permissions, "slack_read", Effect::Reads, &json!({})), Ok(()));
    assert_eq!(may(&permissions, "slack_send", Effect::External, &json!({})), Err(Reason::Denied));
    let call = json!({"tool_name": "slack", "action": "send"});
    assert_eq!(may(&permissions, "use_tool", Effect::External, &call), Err(Reason::Denied));
}

#[tokio::test]
async fn a_broken_file_stops_tools_and_not_talk_until_it_is_mended() {
    let (temp, permissions) = house(Some("## External Tools\n- slack: OK\nhello\n"));
    let read = FakeTool::new("Read", Effect::Reads);
    let talk = FakeTool::new("send_message", Effect::Communicates);
    let tools = [Arc::new(read) as Arc<dyn Tool>, Arc::new(talk)];
    let gate = Gate::new(tools, permissions.clone());
    let call = |name: &str| ToolCall {
        id: CallId::new("c1").unwrap(),
        name: ToolName::new(name).unwrap(),
        args: json!({"path": "a.md"}),
    };
    let cx = context(TriggerKind::Chat);
    let refused = gate.call(call("Read"), &cx).await.unwrap();
    assert!(refused.is_error && refused.text.contains("permissions.md:3"), "{}", refused.text);
    assert!(!gate.call(call("send_message"), &cx).await.unwrap().is_error);
    let file = temp.path().join("animas/sakura/permissions.md");
    fs_err::write(&file, "## External Tools\n- slack: OK\n").unwrap();
    assert!(!gate.call(call("Read"), &cx).await.unwrap().is_error);
}

#[test]
fn the_table_is_told_with_its_sources() {
    let (_temp, permissions) = house(Some("## コマンド実行\n- git\n## ネットワーク\n- 443\n"));
    let lines = permissions.table().describe(Locale::En);
    assert!(lines.contains(&("command git: allowed".to_owned(), "permissions.md:2".to_owned())), "{lines:?}");
    assert!(
        lines.contains(&("TCP port 443 for commands: allowed".to_owned(), "permissions.md:4".to_owned())),
        "{lines:?}"
    );
    let json = serde_json::to_value(permissions.table()).unwrap();
    assert_eq!(json["commands"][0]["source"]["line"], 2);
}
