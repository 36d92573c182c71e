//! What the parser takes and refuses.

use super::*;

fn table(text: &str) -> EffectiveTable {
    parse(text, Some(Path::new("/home/someone"))).unwrap().0
}

fn wrong(text: &str) -> (usize, Problem) {
    let error = parse(text, None).unwrap_err();
    (error.line, error.problem)
}

const JA: &str = "# Permissions: sakura\n## ファイル操作\n- /home/me/projects/app: 読み書き可\n- /var/log: 読み取りのみ\n\
    - `/srv/data` 読み取りのみ\n- 自分のディレクトリ: 読み書き\n## コマンド実行\n- git: バージョン管理\n- python3, npm\n\
    ## 実行できないコマンド\ndocker, rm -r\n## 外部ツール\n- web_search: OK\n- slack: OK\n- slack_send: yes\n- gmail: no\n\
    ## ツール作成\n- 個人ツール: yes\n- 共有ツール: no\n";

const EN: &str = "# Permissions: sakura\n## File Operations\n- /home/me/projects/app: read and write\n- /var/log: read only\n\
    - `/srv/data` read-only\n- own directory: everything\n## Command Execution\n- git: versions\n- python3, npm\n\
    ## Denied Commands\ndocker, rm -r\n## External Tools\n- web_search: OK\n- slack: OK\n- slack-send: yes\n- gmail: no\n\
    ## Tool Creation\n- personal: yes\n- shared: no\n";

#[test]
fn both_languages_say_the_same() {
    assert_eq!(table(JA), table(EN));
    let table = table(JA);
    let files: Vec<_> = table.files.iter().map(|rule| (rule.path.to_str().unwrap(), rule.access)).collect();
    assert_eq!(
        files,
        [("/home/me/projects/app", Access::ReadWrite), ("/var/log", Access::ReadOnly), ("/srv/data", Access::ReadOnly)]
    );
    let words = |rules: &[CommandRule]| rules.iter().map(|rule| rule.words.join(" ")).collect::<Vec<_>>();
    assert_eq!(words(&table.commands), ["git", "python3", "npm"]);
    assert_eq!(words(&table.denied_commands), ["docker", "rm -r"]);
    assert!(table.external("slack", "slack_send").is_ok());
    assert!(table.external("slack", "slack_read").is_ok());
    assert_eq!(table.external("gmail", "gmail_read").unwrap_err(), Some(&Source::Line { file: MARKDOWN, line: 16 }));
    assert_eq!(table.external("github", "github_issues").unwrap_err(), None);
    assert!(table.personal_tools.is_some() && table.shared_tools.is_none() && table.network.is_none());
    assert_eq!(table.commands[1].source, Source::Line { file: MARKDOWN, line: 9 });
}

#[test]
fn an_unknown_line_is_named() {
    assert_eq!(wrong("## ファイル操作\n/srv: rw"), (2, Problem::Line));
    assert_eq!(wrong("## Secrets\n"), (1, Problem::Section));
    assert_eq!(wrong("hello\n## Network\n"), (1, Problem::Line));
    assert_eq!(wrong("## File Operations\n\n- srv/app: read only"), (3, Problem::Path));
    assert_eq!(wrong("## File Operations\n- /srv/../etc: read only"), (2, Problem::Path));
    assert_eq!(wrong("## External Tools\n- slack: perhaps"), (2, Problem::Value));
    assert_eq!(wrong("## External Tools\n- slack"), (2, Problem::Value));
    assert_eq!(wrong("## Executable Commands\n- git; rm"), (2, Problem::Command));
    assert_eq!(wrong("## Executable Commands\n- git 状況"), (2, Problem::Command));
    assert_eq!(wrong("## Network\n- 99999"), (2, Problem::Line));
    assert_eq!(wrong("<!-- never\n## Executable Commands\n- all\n"), (1, Problem::Comment));
    assert_eq!(parse("## Tool Creation\n- 他: yes", None).unwrap_err().text, "- 他: yes");
}

#[test]
fn nothing_is_granted_that_is_not_said() {
    let silent = table("# title\n> a note\n<!-- a comment\n## Executable Commands\n- all\n-->\n");
    assert_eq!(silent, EffectiveTable::default());
    // a description without a word for writing is reading
    assert_eq!(table("## File Operations\n- /srv: the app").files[0].access, Access::ReadOnly);
    assert_eq!(table("## 書ける場所\n- /srv: 禁止").files[0].access, Access::Denied);
    assert_eq!(table("## File Operations\n- ~/x: writable").files[0].path, Path::new("/home/someone/x"));
    assert!(table("## Executable Commands\n- git: 禁止").commands.is_empty());
}

#[test]
fn the_python_file_counts_only_by_an_explicit_line() {
    assert!(!parse(JA, None).unwrap().1);
    assert!(parse("## 引き継ぎ\n- permissions.json\n", None).unwrap().1);
    let full = parse_json(
        r#"{"version":1,"file_roots":["/"],"commands":{"allow_all":true,"deny":["rm -r"]},"external_tools":{"allow":["slack"]}}"#,
    )
    .unwrap();
    assert!(full.all_commands.is_some() && full.files.len() == 1 && full.denied_commands.len() == 1);
    // what Python takes for granted is not
    let empty = parse_json(r#"{"version":1}"#).unwrap();
    assert_eq!(empty, EffectiveTable::default());
    assert!(parse_json(r#"{"version":1,"commandz":{}}"#).is_err());
    assert!(parse_json(r#"{"file_roots":["srv"]}"#).is_err());
}

proptest::proptest! {
    #[test]
    fn no_text_panics_and_noise_grants_nothing(text in "\\PC{0,200}") {
        if let Ok((table, _)) = parse(&text, None) {
            proptest::prop_assert_eq!(table, EffectiveTable::default());
        }
        parse_json(&text).map(drop).unwrap_or_default();
    }
}

#[test]
fn every_shipped_file_can_be_understood() {
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../templates");
    let mut found = 0;
    for entry in ignore::Walk::new(templates).map(Result::unwrap).filter(|entry| entry.file_name() == MARKDOWN) {
        let text = fs_err::read_to_string(entry.path()).unwrap();
        let parsed = parse(&text, Some(Path::new("/home/someone")));
        assert!(parsed.is_ok(), "{}: {}", entry.path().display(), parsed.unwrap_err());
        found += 1;
    }
    assert!(found > 0);
}
