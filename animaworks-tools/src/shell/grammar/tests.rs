//! What the grammar makes of a script.

use super::*;

fn words(script: &str) -> Vec<Vec<String>> {
    let script = read(script).unwrap_or_else(|refusal| panic!("{script}: {refusal}"));
    let text = |word: &Word| if word.known().is_some() { word.text.clone() } else { format!("{}…", word.text) };
    script.commands.iter().map(|command| command.words.iter().map(text).collect()).collect()
}

#[test]
fn quoting_is_undone_as_the_shell_does() {
    for spelling in ["r''m -rf /", r"r\m -rf /", "\"rm\" '-rf' /", r"$'r\155' -rf $'\x2f'", "r\"m\" -r''f \"/\""] {
        assert_eq!(words(spelling), [["rm", "-rf", "/"]], "{spelling}");
    }
    assert_eq!(words(r#"echo "a \"b\" \$c \\ d" 'e "f"' g\ h"#), [["echo", "a \"b\" $c \\ d", "e \"f\"", "g h"]]);
    assert_eq!(words("echo \" lead $x tail \""), [["echo", " lead …"]]);
    assert_eq!(words("mkdir -p src/{a,b}"), [["mkdir", "-p", "src/a", "src/b"]]);
    assert_eq!(words("ls *.md ~/x ~"), [["ls", "*.md…", "~/x…", "~…"]]);
}

#[test]
fn every_command_at_any_depth_is_found() {
    let names = |script: &str| -> Vec<String> {
        words(script).into_iter().filter_map(|words| words.into_iter().next()).collect()
    };
    assert_eq!(names("a | b && c || d; e & f"), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(names("x \"$(a \"$(b)\")\" `c` <(d) >(e)"), ["b", "a", "c", "d", "e", "x"]);
    assert_eq!(names("if a; then b; elif c; then d; else e; fi"), ["a", "b", "c", "d", "e"]);
    assert_eq!(names("while a; do b; done; until c; do d; done"), ["a", "b", "c", "d"]);
    assert_eq!(names("for i in $(a); do b; done"), ["a", "b"]);
    assert_eq!(names("case $(a) in x) b;; y|z) c; d;; esac"), ["a", "b", "c", "d"]);
    assert_eq!(names("(a; { b; }); ! c"), ["a", "b", "c"]);
    assert_eq!(names("x=$(a) b; y=`c`"), ["a", "b", "c"]);
    assert_eq!(names("echo ${x:-$(a)} $((1 + $(b)))"), ["a", "b", "echo"]);
    assert_eq!(names("[[ -n $(a) ]] && b"), ["a", "b"]);
    assert_eq!(names("cat <<EOF\n$(a)\nEOF"), ["a", "cat"]);
    assert_eq!(names("cat <<'EOF' | b\n$(a)\nEOF"), ["b", "cat"]);
    assert_eq!(names("cat <<< \"$(a)\""), ["a", "cat"]);
}

#[test]
fn redirections_are_noted() {
    let noted = |script: &str| -> Vec<(String, bool)> {
        read(script).unwrap().redirects.into_iter().map(|to| (to.target.text, to.writes)).collect()
    };
    assert_eq!(
        noted("a > x 2>> y < z 2>&1 &> w"),
        [("x".to_owned(), true), ("y".to_owned(), true), ("z".to_owned(), false), ("w".to_owned(), true)]
    );
    assert_eq!(noted("> x"), [("x".to_owned(), true)]);
    assert_eq!(noted("{ a; b; } > x"), [("x".to_owned(), true)]);
    assert_eq!(noted("echo $(< x)"), [("x".to_owned(), false)]);
}

#[test]
fn what_is_not_understood_is_refused() {
    for script in [
        "",
        "   ",
        "f() { ls; }",
        "function f { ls; }",
        "echo \"",
        "ls )",
        "select x in a b; do ls; done",
        "echo ${!x}",
        "echo ${x@P}",
        "for ((i=0;i<3;i++)); do ls; done",
        "ls |",
        "$\"translated\"",
        "a\u{200b}b",
        "ls\r\nls",
        "ls\u{3000}x",
    ] {
        assert!(read(script).is_err(), "{script:?}");
    }
    assert!(read("git commit -m \"会議　メモ\"").is_ok(), "a wide space in quotes is text");
    assert_eq!(read(&format!("echo {}", "a".repeat(40_000))).unwrap_err().reason, Reason::TooLong);
    assert!(read(&format!("{}ls{}", "(".repeat(500), ")".repeat(500))).is_err());
    assert!(read(&format!("echo {}x{}", "$(echo ".repeat(300), ")".repeat(300))).is_err());
}
