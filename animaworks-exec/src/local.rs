//! Engines that live in this process: no key, no network.

mod recall;

pub use recall::{LocalRecall, REMEMBERED};
