//! Commands: read with a real grammar, judged word by word, run behind walls (exec spec §5.2).
//!
//! A command passes two walls. The first reads it: what the grammar does not
//! understand is refused, every simple command at any depth is judged by its words
//! after the shell's own unquoting, and redirections count as reading and writing
//! files. The second is the kernel, which holds whatever the first has missed.

mod danger;
mod grammar;
mod judge;
mod paths;
mod run;
mod wrap;

pub use judge::{Judged, Walls, judge};
pub use run::{Bash, Surroundings, bash_tool};

/// Whether a character cannot be seen, or changes the order of those that can.
pub(crate) fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // variation selectors of emoji change nothing but their look
        '\u{fe0e}' | '\u{fe0f}' => false,
        _ if c.is_control() => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}'
        | '\u{ffa0}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}
