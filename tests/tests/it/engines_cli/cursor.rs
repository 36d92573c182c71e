//! Mode D: Cursor Agent is in no registry, so the kit plays it from its documented arguments and stream.
//! The MCP client in it is a real one.

use std::{
    io::{BufRead, BufReader},
    path::Path,
};

use animaworks_testkit::program::Program;

use super::{interrupt, lantern, memory, organisation};

fn sakura() -> Program {
    let program = organisation("cursor/composer-2", "cursor", "http://127.0.0.1:9");
    program.offer("cursor-agent", &Path::new(env!("CARGO_MANIFEST_DIR")).join("kit/cursor_agent.py"));
    program
}

#[test]
fn it_remembers_with_our_tools_and_goes_on_after_a_restart() {
    let program = sakura();
    let ask = format!("call write_memory_file {}\ncall search_memory {{\"query\": \"lantern\"}}\nNoted.", lantern());
    let told = program.ok(["chat", "sakura", &ask]);
    assert!(told.starts_with("fresh:") && told.contains("Noted."), "{told}");
    assert!(told.contains("knowledge/lantern.md#L"), "what was written is found at once: {told}");
    assert!(memory(&program, "knowledge/lantern.md").contains("The lantern stands in the hall."));
    let again = program.ok(["chat", "sakura", "Where is the lantern?"]);
    assert_eq!(again, "resumed: Where is the lantern?\n");
}

#[test]
fn what_was_said_before_an_interrupt_was_streamed_and_is_kept() {
    let program = sakura();
    let mut child = program.command(["chat", "sakura", "wait"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut heard = Vec::new();
    out.read_until(b',', &mut heard).unwrap();
    assert_eq!(String::from_utf8_lossy(&heard), "I am thinking,");
    interrupt(&program, child, &mut out);
    assert!(memory(&program, "state/conversation.json").contains("I am thinking,"));
}
