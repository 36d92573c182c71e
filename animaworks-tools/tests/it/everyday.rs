//! A working day: useful commands pass the judge and work behind the walls.

use animaworks_core::seams::Enforced;

use crate::house::{House, TOKEN, lines};

const EVERYDAY: &str = include_str!("../everyday.txt");

#[tokio::test]
async fn everyday_commands_pass_and_work() {
    let house = House::new(None);
    if house.held() == Enforced::Not {
        println!("this kernel has no Landlock: only the judge is asked");
    }
    let (mut passed, mut worked, mut failed) = (0, 0, Vec::new());
    for line in lines(EVERYDAY) {
        let (only_judge, line) = match line.strip_prefix("judge:") {
            Some(line) => (true, line),
            None => (false, line),
        };
        let command = house.line(line);
        if let Err(refusal) = house.judge(&command) {
            failed.push(format!("refused ({refusal}): {line}"));
            continue;
        }
        passed += 1;
        if only_judge || house.held() == Enforced::Not || missing(&command) {
            continue;
        }
        match house.bash(&command).await {
            Ok(output) if output.text.starts_with("exit code: 0") => worked += 1,
            Ok(output) => failed.push(format!("{line}: {}", output.text)),
            Err(error) => failed.push(format!("{line}: {error}")),
        }
    }
    println!("everyday commands: {passed} pass, {worked} of them were run and worked");
    assert!(failed.is_empty(), "{} do not pass:\n{}", failed.len(), failed.join("\n"));
    assert!(passed >= 150, "{passed}");
}

/// Whether a program that a line needs is not on this machine.
fn missing(command: &str) -> bool {
    ["git", "jq", "python3", "perl", "file"].iter().any(|program| {
        let needed = command.split(|c: char| !c.is_alphanumeric()).any(|word| word == *program);
        needed
            && !["/usr/bin", "/bin", "/usr/local/bin"]
                .iter()
                .any(|dir| std::path::Path::new(dir).join(program).exists())
    })
}

#[tokio::test]
async fn a_list_of_commands_is_kept_to() {
    let house =
        House::new(Some("## Executable Commands\n- git, cat, find\n- cargo test\n## Denied Commands\nls, rm -r\n"));
    for allowed in [
        "git log | cat",
        "cat README.md",
        "cargo test --lib",
        "cd work && git status",
        "echo hi",
        "find . -name x -exec cat {} \\;",
    ] {
        assert_eq!(house.judge(allowed), Ok(()), "{allowed}");
    }
    for (refused, word) in [
        ("git log | less", "less"),
        ("cargo run", "cargo"),
        ("cat x | ls", "ls"),
        ("ls -la", "ls"),
        ("tools", "tools"),
        ("find . -exec wc {} +", "wc"),
        ("bash -c 'wc x'", "wc"),
        ("./git log", "git"),
        ("work/git log", "git"),
    ] {
        let said = house.judge(refused).unwrap_err();
        assert!(said.contains(word), "{refused}: {said}");
    }
    let house = House::new(Some("## Executable Commands\n- all\n## Denied Commands\nrm -r, docker\n"));
    for refused in ["rm -r work/x", "rm  -fr work/x", "rm --recursive work/x", "/bin/rm -rR work/x", "rm -R work/x"] {
        assert!(house.judge(refused).unwrap_err().starts_with("denied"), "{refused}");
    }
    assert_eq!(house.judge("rm work/x"), Ok(()));
}

#[tokio::test]
async fn a_command_inherits_no_secret_and_long_output_goes_to_a_file() {
    let house = House::new(None);
    if house.held() == Enforced::Not {
        println!("skipped: this kernel has no Landlock");
        return;
    }
    let output = house.bash("env").await.unwrap();
    assert!(!output.text.contains(TOKEN) && output.text.contains("HOME="), "{}", output.text);
    let long = house.bash("seq 1 5000").await.unwrap();
    assert!(long.text.contains("state/cmd_output/cmd_1.txt"), "{}", long.text);
    assert!(long.text.len() < 9_000 && long.text.trim_end().ends_with("5000"));
    let whole = fs_err::read_to_string(house.own.join("state/cmd_output/cmd_1.txt")).unwrap();
    assert_eq!(whole.lines().count(), 5000);
    let slow = house.bash("sleep 0.1; exit 3").await.unwrap();
    assert!(slow.text.starts_with("exit code: 3"), "{}", slow.text);
}

#[tokio::test]
async fn the_network_opens_as_far_as_the_owner_says() {
    let house = House::new(Some("## Executable Commands\n- all\n## Network\n- all\n"));
    if house.held() != Enforced::Kernel {
        println!("skipped: this kernel cannot hold single ports");
        return;
    }
    let run = async |code: &str| {
        let command = house.line(&format!("python3 -c \"import socket; {code}; print('in'+'side')\""));
        house.bash(&command).await.unwrap().text.contains("inside")
    };
    let connect = "socket.create_connection(('127.0.0.1',@PORT@),2)";
    let datagram = "socket.socket(socket.AF_INET,socket.SOCK_DGRAM)";
    let closed = [
        "socket.socket(socket.AF_UNIX).connect('@OUT@/sock')",
        "socket.socket(socket.AF_PACKET,socket.SOCK_RAW,0)",
        "socket.socket(socket.AF_INET,socket.SOCK_RAW,1)",
        "socket.socket(socket.AF_NETLINK,socket.SOCK_RAW,9)",
        "socket.socket(40,socket.SOCK_STREAM)",
        "socket.create_server(('127.0.0.1',@PORT@))",
    ];
    assert!(run(connect).await && run(datagram).await, "all of it");
    for code in closed {
        assert!(!run(code).await, "{code}");
    }
    fs_err::write(
        house.own.join("permissions.md"),
        house.line("## Executable Commands\n- all\n## Network\n- @PORT@\n"),
    )
    .unwrap();
    assert!(run(connect).await, "the port that is open");
    assert!(!run("socket.create_connection(('127.0.0.1',9),2)").await && !run(datagram).await);
    for code in closed {
        assert!(!run(code).await, "{code}");
    }
    fs_err::write(house.own.join("permissions.md"), "## Executable Commands\n- all\n").unwrap();
    assert!(!run(connect).await, "no section, no network");
}
