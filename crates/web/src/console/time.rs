//! Times and numbers for people, in the workspace's time zone.

use jiff::{
    Zoned,
    civil::{Date, DateTime},
    tz::TimeZone,
};
use model::Timestamp;
use operations::{Error, Result};

/// A time as a page shows it.
#[derive(Clone, Debug, Default)]
pub(super) struct When {
    /// Machine-readable.
    pub(super) iso: String,
    /// A short date, or the time of day.
    pub(super) short: String,
    /// From now: "5 min ago", "Yesterday".
    pub(super) relative: String,
    /// Whether a minute later that is something else.
    pub(super) moving: bool,
    /// In full.
    pub(super) full: String,
}

/// A time zone, and the current time in it.
#[derive(Clone)]
pub(super) struct Zone {
    pub(super) name: String,
    rules: TimeZone,
    now: Zoned,
}

impl Zone {
    pub(super) fn new(name: &str, now: Timestamp) -> Self {
        let rules = TimeZone::get(name).unwrap_or(TimeZone::UTC);
        Self { name: name.to_owned(), now: instant(now).to_zoned(rules.clone()), rules }
    }

    /// A time as a page shows it.
    pub(super) fn when(&self, at: Timestamp) -> When {
        let there = instant(at).to_zoned(self.rules.clone());
        let short = if there.date() == self.now.date() {
            there.strftime("%H:%M").to_string()
        } else if there.year() == self.now.year() {
            there.strftime("%-d %b").to_string()
        } else {
            there.strftime("%-d %b %Y").to_string()
        };
        let (relative, moving) = self.relative(&there);
        When {
            iso: at.to_string(),
            relative: relative.unwrap_or_else(|| short.clone()),
            moving,
            short,
            full: there.strftime("%a %-d %b %Y, %H:%M %Z").to_string(),
        }
    }

    /// A time near now as people say it, and whether that changes by the minute.
    fn relative(&self, there: &Zoned) -> (Option<String>, bool) {
        let seconds = self.now.timestamp().as_second() - there.timestamp().as_second();
        let minutes = seconds.abs() / 60;
        let amount = if minutes < 60 { format!("{minutes} min") } else { format!("{} h", minutes / 60) };
        let days = self.now.date().since(there.date()).map_or(i32::MAX, |span| span.get_days());
        let named = match days {
            0 if minutes == 0 => return (Some("Just now".to_owned()), true),
            _ if minutes < 60 || days == 0 => {
                let text = if seconds < 0 { format!("in {amount}") } else { format!("{amount} ago") };
                return (Some(text), true);
            }
            1 => "Yesterday".to_owned(),
            -1 => "Tomorrow".to_owned(),
            2..=6 => there.strftime("%A").to_string(),
            _ => return (None, false),
        };
        (Some(named), false)
    }

    /// The value of an `<input type="datetime-local">`.
    pub(super) fn field(&self, at: Timestamp) -> String {
        instant(at).to_zoned(self.rules.clone()).strftime("%Y-%m-%dT%H:%M").to_string()
    }

    /// Reads the value of such an input.
    pub(super) fn parse(&self, text: &str) -> Result<Timestamp> {
        let wrong = || Error::invalid("scheduled_send_at", "choose a date and a time");
        let civil: DateTime = text.trim().parse().map_err(|_| wrong())?;
        let there = civil.to_zoned(self.rules.clone()).map_err(|_| wrong())?;
        Ok(Timestamp::from_micros(there.timestamp().as_microsecond()))
    }

    /// The first moment of a day in the form of an `<input type="date">`, and that of the day after it.
    pub(super) fn day(&self, field: &str, text: &str) -> Result<(Timestamp, Timestamp)> {
        let wrong = || Error::invalid(field, "choose a day");
        let day: Date = text.trim().parse().map_err(|_| wrong())?;
        let start = |day: Date| -> Result<Timestamp> {
            let there = day.to_zoned(self.rules.clone()).map_err(|_| wrong())?;
            Ok(Timestamp::from_micros(there.timestamp().as_microsecond()))
        };
        Ok((start(day)?, start(day.tomorrow().map_err(|_| wrong())?)?))
    }

    /// Suggested times: the label and the input's value.
    pub(super) fn suggestions(&self) -> Vec<(String, String)> {
        let at = |day: Zoned, hour: i8| {
            let there = day.with().hour(hour).minute(0).second(0).subsec_nanosecond(0).build().ok()?;
            Some((
                there.strftime("%a %-d %b, %H:%M").to_string(),
                there.strftime("%Y-%m-%dT%H:%M").to_string(),
            ))
        };
        let tomorrow = self.now.tomorrow().ok();
        let monday = self.now.nth_weekday(1, jiff::civil::Weekday::Monday).ok();
        let evening = (self.now.hour() < 17).then(|| at(self.now.clone(), 18)).flatten();
        let named = |name: &str, found: Option<(String, String)>| {
            found.map(|(text, value)| (format!("{name} · {text}"), value))
        };
        [
            named("This evening", evening),
            named("Tomorrow morning", tomorrow.and_then(|day| at(day, 8))),
            named("Monday morning", monday.and_then(|day| at(day, 8))),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn instant(at: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(at.as_micros()).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

/// A number with thousands separators.
pub(super) fn number(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if value < 0 { format!("−{text}") } else { text }
}

/// A size in bytes, for people.
pub(super) fn size(bytes: i64) -> String {
    let bytes = u64::try_from(bytes).unwrap_or_default();
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    for (unit, scale) in [("kB", 1_000_u64), ("MB", 1_000_000), ("GB", 1_000_000_000)] {
        if bytes < scale * 1000 || unit == "GB" {
            let tenths = bytes * 10 / scale;
            let (whole, part) = (tenths / 10, tenths % 10);
            return if whole >= 10 || part == 0 {
                format!("{whole} {unit}")
            } else {
                format!("{whole}.{part} {unit}")
            };
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_and_in_their_zone() {
        let now: Timestamp = "2026-07-14T09:00:00Z".parse().unwrap();
        let zone = Zone::new("Europe/Berlin", now);
        assert_eq!(zone.when(now).short, "11:00");
        assert_eq!(zone.when("2026-02-01T23:30:00Z".parse().unwrap()).short, "2 Feb");
        assert_eq!(zone.when("2024-02-01T12:30:00Z".parse().unwrap()).short, "1 Feb 2024");
        assert_eq!(zone.parse("2026-07-15T08:00").unwrap().to_string(), "2026-07-15T06:00:00.000Z");
        for (at, said) in [
            ("2026-07-14T08:59:30Z", "Just now"),
            ("2026-07-14T08:55:00Z", "5 min ago"),
            ("2026-07-14T05:10:00Z", "3 h ago"),
            ("2026-07-13T12:00:00Z", "Yesterday"),
            ("2026-07-13T22:30:00Z", "10 h ago"),
            ("2026-07-13T21:30:00Z", "Yesterday"),
            ("2026-07-10T12:00:00Z", "Friday"),
            ("2026-07-07T12:00:00Z", "7 Jul"),
            ("2026-07-14T09:10:00Z", "in 10 min"),
            ("2026-07-15T12:00:00Z", "Tomorrow"),
            ("2026-07-18T12:00:00Z", "18 Jul"),
            ("2025-07-18T12:00:00Z", "18 Jul 2025"),
        ] {
            let when = zone.when(at.parse().unwrap());
            assert_eq!(when.relative, said, "{at}");
            assert_eq!(when.moving, said.contains("min") || said.contains(" h") || said == "Just now");
        }
        assert_eq!(zone.when(now).full, "Tue 14 Jul 2026, 11:00 CEST");
        assert!(zone.parse("soon").is_err());
        assert_eq!(zone.field(now), "2026-07-14T11:00");
        assert_eq!(zone.suggestions().len(), 3);
    }

    #[test]
    fn numbers_and_sizes() {
        assert_eq!(number(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!((number(12), number(-1000)), ("12".to_owned(), "−1\u{202f}000".to_owned()));
        assert_eq!(
            (size(12), size(1500), size(25_000_000)),
            ("12 B".into(), "1.5 kB".into(), "25 MB".into())
        );
    }
}
