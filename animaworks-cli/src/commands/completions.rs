//! `completions SHELL`: what a shell needs to complete our commands.

use clap_complete::generate;

use crate::{
    args::{Completions, Shell, localized},
    context::Cx,
    error::CliResult,
    ui,
};

pub(super) fn run(cx: &Cx, args: Completions) -> CliResult {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut localized(cx.locale), "animaworks", &mut script);
    ui::piece(&String::from_utf8_lossy(&script))
}
