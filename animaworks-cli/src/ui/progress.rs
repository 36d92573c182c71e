//! Progress of long work; nothing is shown when nobody watches.

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

/// A bar of bytes whose number becomes known later.
pub(crate) fn bytes(message: &str) -> ProgressBar {
    let bar = bar(0, message);
    if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {bytes}/{total_bytes} {eta}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
