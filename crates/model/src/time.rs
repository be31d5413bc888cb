//! Points in time and calendar days, both UTC.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A point in time, kept in microseconds since 1970 and shown as ISO 8601 UTC with milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Microseconds in a second.
const SECOND: i64 = 1_000_000;

/// Seconds of the largest offset from UTC that a time can be written with, 23:59.
const FARTHEST_OFFSET: i32 = (23 * 60 + 59) * 60;

impl Timestamp {
    /// A time from microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }
    /// Microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }
    /// This time and `seconds` more.
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(SECOND)))
    }
    /// Whole seconds from this time until `later`, rounded up, never negative.
    pub fn seconds_until(self, later: Self) -> u64 {
        u64::try_from((later.0 - self.0 + SECOND - 1) / SECOND).unwrap_or(0)
    }
    /// The start of the fixed 60-second window that this time lies in.
    pub const fn minute(self) -> Self {
        Self(self.0 - self.0.rem_euclid(60 * SECOND))
    }
    /// The UTC calendar day.
    pub fn day(self) -> Day {
        Day(self.0.div_euclid(86_400 * SECOND))
    }
    /// The UTC calendar month, such as `2026-07`.
    pub fn month(self) -> String {
        let at = self.civil();
        format!("{:04}-{:02}", at.year(), at.month())
    }
    /// The start of the UTC calendar month.
    pub fn month_start(self) -> Self {
        let date = self.civil().date().first_of_month();
        Self::from_date(date)
    }
    /// The start of the next UTC calendar month.
    pub fn next_month_start(self) -> Self {
        let date = self.civil().date().last_of_month().tomorrow().unwrap_or(jiff::civil::Date::MAX);
        Self::from_date(date)
    }

    fn civil(self) -> jiff::civil::DateTime {
        let timestamp = jiff::Timestamp::from_microsecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        jiff::tz::Offset::UTC.to_datetime(timestamp)
    }
    fn from_date(date: jiff::civil::Date) -> Self {
        let midnight = date.to_datetime(jiff::civil::Time::midnight());
        jiff::tz::Offset::UTC.to_timestamp(midnight).map_or(Self(0), |at| Self(at.as_microsecond()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.civil();
        let year = u32::try_from(at.year()).map_err(|_| fmt::Error)?;
        // By hand: lists are full of times, and the formatter takes as long for one as for the rest of a row.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        put_digits(&mut text[0..4], year);
        let small = [(5, at.month()), (8, at.day()), (11, at.hour()), (14, at.minute()), (17, at.second())];
        for (start, number) in small {
            put_digits(&mut text[start..start + 2], u32::from(number.unsigned_abs()));
        }
        put_digits(&mut text[20..23], u32::from(at.millisecond().unsigned_abs()));
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

fn put_digits(place: &mut [u8], mut number: u32) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
}

impl FromStr for Timestamp {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected =
            || "expected an ISO 8601 time with its zone, such as 2026-07-14T09:00:00.000Z".to_owned();
        let parsed: jiff::Timestamp = text.parse().map_err(|_| expected())?;
        // The parser also takes offsets that no clock on earth has and no other reader of times does.
        let offset =
            jiff::fmt::temporal::Pieces::parse(text).ok().and_then(|pieces| pieces.to_numeric_offset());
        if offset.is_some_and(|offset| offset.seconds().abs() > FARTHEST_OFFSET) {
            return Err(expected());
        }
        Ok(Self(parsed.as_microsecond()))
    }
}
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Cow<'de, str> = Deserialize::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
impl JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time", "examples": ["2026-07-14T09:00:00.000Z"] })
    }
}

/// A UTC calendar day, kept as days since 1970 and shown as `YYYY-MM-DD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// A day from the number of days since 1970.
    pub const fn from_number(days: i64) -> Self {
        Self(days)
    }
    /// Days since 1970.
    pub const fn number(self) -> i64 {
        self.0
    }
    /// The day's first moment.
    pub const fn start(self) -> Timestamp {
        Timestamp(self.0 * 86_400 * SECOND)
    }
}
impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.start().civil();
        write!(f, "{:04}-{:02}-{:02}", at.year(), at.month(), at.day())
    }
}
impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl JsonSchema for Day {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Day".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date", "examples": ["2026-07-14"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_milliseconds_and_z() {
        let at: Timestamp = "2026-07-14T11:00:00.0015+02:00".parse().unwrap();
        assert_eq!(at.to_string(), "2026-07-14T09:00:00.001Z");
        assert_eq!(at.month_start().to_string(), "2026-07-01T00:00:00.000Z");
        assert_eq!(at.next_month_start().to_string(), "2026-08-01T00:00:00.000Z");
        assert_eq!(at.day().to_string(), "2026-07-14");
        assert_eq!(at.minute().to_string(), "2026-07-14T09:00:00.000Z");
    }

    /// rules: HTTP-13
    #[test]
    fn offsets_end_before_a_day() {
        for good in ["+23:59", "-23:59", "+00:00", "-00:00", "+05:45", "+14", "-1200", "Z", "z"] {
            assert!(format!("2026-07-14T09:00:00{good}").parse::<Timestamp>().is_ok(), "{good}");
        }
        for bad in
            ["+24:00", "-24:00", "+25:00", "-25:59", "+24", "+2400", "+25:59:59", "+23:59:01", "+99:00", ""]
        {
            assert!(format!("2026-07-14T09:00:00{bad}").parse::<Timestamp>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_year_ends_in_january() {
        let at: Timestamp = "2026-12-31T23:59:59Z".parse().unwrap();
        assert_eq!(at.next_month_start().to_string(), "2027-01-01T00:00:00.000Z");
        assert_eq!(at.seconds_until(at.next_month_start()), 1);
    }
}
