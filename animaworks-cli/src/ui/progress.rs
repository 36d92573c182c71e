//! Progress of long work; nothing is shown when nobody watches.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that counts to `total`.
pub(crate) fn bar(total: u64, message: &str) -> ProgressBar {
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {eta}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(message.to_owned());
    bar
}

/// A sign of life for work of unknown length.
pub(crate) fn spinner(message: &str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    spinner.set_message(message.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(120));
    spinner
}
