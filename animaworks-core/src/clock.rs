//! Time, as a thing that is handed in.
//!
//! Nothing in the workspace asks the machine for the time except [`SystemClock`];
//! a month of heartbeats is then a test that takes a second.

use std::{
    fmt::Debug,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, SecondsFormat, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use futures_util::future::BoxFuture;

/// Wall time and monotonic time.
pub trait Clock: Debug + Send + Sync {
    /// Now.
    fn now(&self) -> DateTime<Utc>;

    /// Time since some fixed moment; never goes back.
    fn elapsed(&self) -> Duration;

    /// Waits until `at`; returns at once when that has passed.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    fn sleep_until(&self, at: DateTime<Utc>) -> BoxFuture<'static, ()>;

    /// Keeps simulated time from running on while somebody works. Real time does not care.
    fn hold(&self) -> Hold;
}

impl dyn Clock + '_ {
    /// Waits for a span of time.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        match chrono::Duration::from_std(span).ok().and_then(|span| self.now().checked_add_signed(span)) {
            Some(at) => self.sleep_until(at),
            None => Box::pin(std::future::pending()),
        }
    }

    /// Now, in a zone.
    pub fn now_in(&self, zone: Tz) -> DateTime<Tz> {
        self.now().with_timezone(&zone)
    }
}

/// A share in standing time; dropping it lets simulated time go on.
#[derive(Debug, Default)]
pub struct Hold(#[allow(dead_code, reason = "held for its drop")] Option<Arc<dyn Debug + Send + Sync>>);

impl Hold {
    /// A hold that keeps `guard` alive.
    pub fn new(guard: Arc<dyn Debug + Send + Sync>) -> Self {
        Self(Some(guard))
    }
}

/// The machine's clock.
#[derive(Debug, Clone)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// The machine's clock, with `elapsed` counted from here.
    #[allow(clippy::disallowed_methods, reason = "the one place that asks the machine")]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[allow(clippy::disallowed_methods, reason = "the one place that asks the machine")]
impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep_until(&self, at: DateTime<Utc>) -> BoxFuture<'static, ()> {
        let span = (at - Utc::now()).to_std().unwrap_or_default();
        Box::pin(tokio::time::sleep(span))
    }

    fn hold(&self) -> Hold {
        Hold::default()
    }
}

/// Writes a moment the way the files have it: numeric offset, microseconds, no fraction when it is zero
/// (memory spec, conventions).
pub fn timestamp<Z: TimeZone>(at: &DateTime<Z>) -> String
where
    Z::Offset: std::fmt::Display,
{
    let format = if at.nanosecond() / 1000 == 0 { SecondsFormat::Secs } else { SecondsFormat::Micros };
    at.to_rfc3339_opts(format, false)
}

/// Reads a moment as any version wrote it: with or without fraction, `Z`, or no
/// offset at all (then `zone` is meant), or a bare date (its midnight).
pub fn parse_timestamp(text: &str, zone: FixedOffset) -> Option<DateTime<FixedOffset>> {
    let text = text.trim();
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at);
    }
    let naive = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
        .or_else(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0))?;
    zone.from_local_datetime(&naive).single()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_reads_back_as_written() {
        let zone = FixedOffset::east_opt(9 * 3600).unwrap();
        for (text, same) in [
            ("2026-03-31T09:15:02.481937+09:00", "2026-03-31T09:15:02.481937+09:00"),
            ("2026-03-31T09:15:02+09:00", "2026-03-31T09:15:02+09:00"),
            ("2026-03-31T09:15:02", "2026-03-31T09:15:02+09:00"),
            ("2026-03-31T00:15:02Z", "2026-03-31T00:15:02+00:00"),
            ("2026-03-31T09:15:02.481", "2026-03-31T09:15:02.481000+09:00"),
        ] {
            assert_eq!(timestamp(&parse_timestamp(text, zone).unwrap()), same);
        }
        assert_eq!(parse_timestamp("yesterday", zone), None);
    }
}
