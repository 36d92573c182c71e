//! Sheets as people write them.

use proptest::prelude::*;

use super::*;

const JA: &str = "\u{feff}# Character: sakura

> メモ

## 基本情報

| 項目 | 設定 |
|------|------|
| 英名 | Sakura |
| 日本語名 | さくら |
| 上司 | (なし) |
| ロール | `engineer` |
| モデル | claude-sonnet-4-6 |
| 実行モード | S |
| credential | --- |

## 人格（→ identity.md）

落ち着いた人。

```
## これは見出しではない
```

## 役割・行動方針

- 直す。

## 権限

### コマンド実行
- git

## 定期業務

### 朝の確認
schedule: 0 9 * * 1-5

## 外見

黒い髪。
";

#[test]
fn a_japanese_sheet_is_taken_apart() {
    let sheet = Sheet::parse(JA).unwrap();
    assert_eq!(sheet.title.as_deref(), Some("sakura"));
    assert_eq!(sheet.name.as_deref(), Some("sakura"));
    assert_eq!(sheet.supervisor, Named::Nobody);
    assert_eq!(sheet.role.as_deref(), Some("engineer"));
    assert_eq!((sheet.model.as_deref(), sheet.execution_mode.as_deref()), (Some("claude-sonnet-4-6"), Some("S")));
    assert_eq!(sheet.credential, None);
    assert!(sheet.identity.contains("## これは見出しではない") && sheet.identity.contains("## 外見\n\n黒い髪。"));
    assert!(sheet.identity.contains("| 日本語名 | さくら |") && !sheet.identity.contains("直す"));
    assert!(sheet.identity.contains("## 人格\n"), "{}", sheet.identity);
    assert_eq!(sheet.injection, "## 役割・行動方針\n\n- 直す。");
    assert_eq!(sheet.permissions.as_deref(), Some("## コマンド実行\n- git"));
    assert_eq!(sheet.cron.as_deref(), Some("## 朝の確認\nschedule: 0 9 * * 1-5"));
    assert_eq!(sheet.heartbeat, None);
}

#[test]
fn an_english_sheet_may_be_a_list() {
    let sheet = Sheet::parse(
        "# Character: Wren Alder\r\n\r\n## basic information\r\n- **Name**: wren\r\n- Supervisor： alder\r\n- Execution Mode: A\r\n\r\n\
         ## Personality\r\nCurious.\r\n\r\n## Role & Guidelines → injection.md\r\nRepairs.\r\n\r\n## Heartbeat\r\n### Checklist\r\n- tools\r\n",
    )
    .unwrap();
    assert_eq!(sheet.title.as_deref(), Some("Wren Alder"));
    assert_eq!((sheet.name.as_deref(), sheet.supervisor), (Some("wren"), Named::Is("alder".into())));
    assert_eq!(sheet.execution_mode.as_deref(), Some("A"));
    assert_eq!(sheet.injection, "## Role & Guidelines\n\nRepairs.");
    assert_eq!(sheet.heartbeat.as_deref(), Some("## Checklist\n- tools"));
}

#[test]
fn everything_that_is_missing_is_said_at_once() {
    for (text, missing) in [
        ("", vec![Part::Basic, Part::Personality, Part::Role]),
        ("# x\n\n## 人格\n\nすなお。\n", vec![Part::Basic, Part::Role]),
        ("## 基本情報\n| 英名 | x |\n## 人格\n## 役割\nする。\n", vec![Part::Personality]),
    ] {
        match Sheet::parse(text) {
            Err(CreateError::Incomplete(parts)) => assert_eq!(parts, missing, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn nobody_has_many_names() {
    for none in ["", "なし", "(なし)", "（なし）", "None", "-", "---", "ー", "—"] {
        assert_eq!(said(none), None, "{none}");
    }
    assert_eq!(said("rin").as_deref(), Some("rin"));
    assert_eq!(supervisor_in("# x\n| 上司 | rin |\n").as_deref(), Some("rin"));
    assert_eq!(supervisor_in("no table"), None);
}

#[test]
fn the_shipped_sheets_can_be_read() {
    for locale in crate::Locale::ALL {
        for (name, text) in crate::templates::list(locale, "demo/characters") {
            let sheet = Sheet::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(sheet.name.as_deref(), name.strip_suffix(".md"), "{name}");
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        drop(Sheet::parse(&text));
    }

    #[test]
    fn no_markdown_makes_it_panic(lines in prop::collection::vec(
        prop::sample::select(vec![
            "## 基本情報", "## 人格", "## 役割", "##", "# ", "#", "### x", "| 英名 |", "|", "||", "| 上司 | |", "- :", "- 上司：", "```", "~~~",
            "## → cron.md", "---", "\u{3000}", "## \u{3000}", "schedule:", "x\r",
        ]), 0..24)
    ) {
        if let Ok(sheet) = Sheet::parse(&lines.join("\n")) {
            prop_assert!(!sheet.identity.is_empty() && !sheet.injection.is_empty());
        }
    }
}
