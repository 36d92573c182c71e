//! Help in the reader's language: every text is looked up by the path of its command and argument.

use animaworks_core::Locale;
use clap::{Arg, Command, CommandFactory};

/// The whole command line with its words.
pub(crate) fn localized(locale: Locale) -> Command {
    let command = super::Cli::command();
    let command = describe(command, "animaworks", locale, true);
    command
        .help_template("{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}{after-help}")
        .after_help(text(locale, "cli.help.after").unwrap_or_default())
}

/// The words that clap itself puts into a usage line.
pub(crate) fn usage_words(locale: Locale, help: &str) -> String {
    let heading = text(locale, "cli.help.heading.usage").unwrap_or("Usage:");
    let lines = help.split_inclusive('\n').map(|line| {
        let Some(usage) = line.strip_prefix("Usage:") else { return line.to_owned() };
        let usage = usage.replace("[OPTIONS]", text(locale, "cli.help.options").unwrap_or("[OPTIONS]"));
        let usage = usage.replace("COMMAND", text(locale, "cli.help.command").unwrap_or("COMMAND"));
        format!("{heading}{usage}")
    });
    lines.collect()
}

fn describe(command: Command, path: &str, locale: Locale, top: bool) -> Command {
    let own: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let mut command = command.mut_args(|arg| describe_argument(arg, path, locale));
    command = command.next_help_heading(text(locale, "cli.help.heading.options").unwrap_or_default());
    command = command
        .subcommand_help_heading(text(locale, "cli.help.heading.commands").unwrap_or_default())
        .disable_help_flag(true)
        .arg(
            Arg::new("help")
                .short('h')
                .long("help")
                .action(clap::ArgAction::Help)
                .global(false)
                .help(text(locale, "cli.arg.help").unwrap_or_default()),
        );
    if top {
        command = command.disable_version_flag(true).arg(
            Arg::new("version")
                .short('V')
                .long("version")
                .action(clap::ArgAction::Version)
                .help(text(locale, "cli.arg.version").unwrap_or_default()),
        );
    }
    if let Some(about) = text(locale, &key("cli.command", path, None)) {
        command = command.about(about);
    }
    for name in own {
        let sub = format!("{path} {name}");
        command = command.mut_subcommand(&name, |command| describe(command, &sub, locale, false));
    }
    command
}

fn describe_argument(arg: Arg, path: &str, locale: Locale) -> Arg {
    let id = arg.get_id().as_str().to_owned();
    let heading = if arg.is_positional() { "cli.help.heading.arguments" } else { "cli.help.heading.options" };
    let arg = arg.help_heading(text(locale, heading).unwrap_or_default());
    // an argument that many commands share is described once
    let found = text(locale, &key("cli.arg", path, Some(&id))).or_else(|| text(locale, &format!("cli.arg.{id}")));
    match found {
        Some(help) => arg.help(help),
        None => arg,
    }
}

/// `animaworks anima create` and `role` make `cli.arg.anima.create.role`.
fn key(prefix: &str, path: &str, argument: Option<&str>) -> String {
    let mut key = prefix.to_owned();
    for part in path.split(' ').skip(1).chain(argument) {
        key.push('.');
        key.push_str(part);
    }
    if key == prefix {
        key.push_str(".animaworks");
    }
    key
}

fn text(locale: Locale, key: &str) -> Option<&'static str> {
    locale.find(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &Command, path: &str, missing: &mut Vec<String>) {
        if command.get_about().is_none_or(|about| about.to_string().is_empty()) {
            missing.push(path.to_owned());
        }
        for arg in command.get_arguments() {
            if arg.get_help().is_none_or(|help| help.to_string().is_empty()) {
                missing.push(format!("{path} {}", arg.get_id()));
            }
        }
        for sub in command.get_subcommands() {
            check(sub, &format!("{path} {}", sub.get_name()), missing);
        }
    }

    #[test]
    fn every_command_and_argument_is_explained() {
        for locale in Locale::ALL {
            let mut missing = Vec::new();
            check(&localized(locale), "animaworks", &mut missing);
            assert!(missing.is_empty(), "{locale}: {missing:#?}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        localized(Locale::En).debug_assert();
    }
}
