//! Quiet hours: a time of every day, on the clocks of a time zone, in which messages do not leave by themselves.

use std::{borrow::Cow, fmt, str::FromStr};

use garde::Validate;
use jiff::{civil, tz::TimeZone};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{Timestamp, emails::named, workspaces::known_timezone};

/// Minutes of a day.
const DAY: i64 = 24 * 60;

named! {
    /// What happens to a message in quiet hours.
    QuietAction {
        /// It leaves when they end.
        Schedule "schedule",
        /// A person decides about it.
        Review "review",
    }
}

/// A time of every day in which messages do not leave by themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct QuietHours {
    /// The time zone of the clocks, an IANA name.
    #[garde(custom(known_timezone))]
    pub timezone: String,
    /// When they begin.
    pub from: ClockTime,
    /// When they end: the next day, if that is not later than they begin.
    #[garde(custom(other_than(self.from)))]
    pub to: ClockTime,
    /// What happens to a message in quiet hours.
    #[serde(default = "schedule")]
    pub then: QuietAction,
}

const fn schedule() -> QuietAction {
    QuietAction::Schedule
}

fn other_than(from: ClockTime) -> impl FnOnce(&ClockTime, &()) -> garde::Result {
    move |to, ()| {
        if *to == from {
            return Err(garde::Error::new("quiet hours must end at another time than they begin"));
        }
        Ok(())
    }
}

impl QuietHours {
    /// When the quiet hours that a time lies in end; `None` if it lies in none.
    pub fn end_of(&self, now: Timestamp) -> Option<Timestamp> {
        let zone = TimeZone::get(&self.timezone).ok()?;
        let here = jiff::Timestamp::from_microsecond(now.as_micros()).ok()?.to_zoned(zone.clone());
        let minute = i64::from(here.hour()) * 60 + i64::from(here.minute());
        if !self.contains_minute(minute) {
            return None;
        }
        let is_tomorrow = self.to.0 <= minute;
        let date = if is_tomorrow { here.date().tomorrow().ok()? } else { here.date() };
        // A time that the clocks skip is the next one that they show.
        let end = date.to_datetime(self.to.civil()).to_zoned(zone).ok()?;
        Some(Timestamp::from_micros(end.timestamp().as_microsecond()))
    }

    fn contains_minute(&self, minute: i64) -> bool {
        let (from, to) = (self.from.0, self.to.0);
        if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to }
    }

    /// Whether these quiet hours begin or end within others that they do not contain. With other clocks, as these are set
    /// on a day without a change.
    pub(crate) fn crosses(&self, other: &Self, now: Timestamp) -> bool {
        let (own, its) = (self.minutes(now), other.minutes(now));
        own.iter().any(|minute| its.contains(minute)) && !its.iter().all(|minute| own.contains(minute))
    }

    /// The minutes of a day in UTC.
    fn minutes(&self, now: Timestamp) -> Vec<i64> {
        let offset = TimeZone::get(&self.timezone).ok().and_then(|zone| {
            let at = jiff::Timestamp::from_microsecond(now.as_micros()).ok()?;
            Some(i64::from(zone.to_offset(at).seconds()) / 60)
        });
        let offset = offset.unwrap_or(0);
        let own = (0..DAY).filter(|minute| self.contains_minute(*minute));
        let mut minutes: Vec<i64> = own.map(|minute| (minute - offset).rem_euclid(DAY)).collect();
        minutes.sort_unstable();
        minutes
    }
}

/// A time of a day to the minute, such as `22:00`. Kept in minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockTime(i64);

impl ClockTime {
    fn civil(self) -> civil::Time {
        let part = |number: i64| i8::try_from(number).unwrap_or_default();
        civil::Time::new(part(self.0 / 60), part(self.0 % 60), 0, 0).unwrap_or_default()
    }
}

impl FromStr for ClockTime {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |digits: &str, below: i64| {
            let is_plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<i64>().ok().filter(|number| is_plain && *number < below)
        };
        let parsed = text
            .split_once(':')
            .and_then(|(hours, minutes)| Some(number(hours, 24)? * 60 + number(minutes, 60)?));
        parsed.map(Self).ok_or_else(|| "expected a time such as 22:00".to_owned())
    }
}

impl fmt::Display for ClockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl Serialize for ClockTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ClockTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: Cow<'de, str> = Deserialize::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for ClockTime {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ClockTime".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$", "examples": ["22:00"] })
    }
}

#[cfg(test)]
mod tests {
    use super::{QuietAction, QuietHours};
    use crate::Timestamp;

    fn hours(timezone: &str, from: &str, to: &str) -> QuietHours {
        QuietHours {
            timezone: timezone.to_owned(),
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            then: QuietAction::Schedule,
        }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    // rules: POLICY-8
    #[test]
    fn a_night_ends_in_the_morning_of_its_zone() {
        let night = hours("Europe/Berlin", "22:00", "07:00");
        let end = |now: &str| night.end_of(at(now)).map(|end| end.to_string());
        assert_eq!(end("2026-07-14T19:59:59Z"), None);
        assert_eq!(end("2026-07-14T20:00:00Z").as_deref(), Some("2026-07-15T05:00:00.000Z"));
        assert_eq!(end("2026-07-15T04:59:59Z").as_deref(), Some("2026-07-15T05:00:00.000Z"));
        assert_eq!(end("2026-07-15T05:00:00Z"), None);
        // The clocks go back in this night, and forward in that.
        assert_eq!(end("2026-10-24T22:30:00Z").as_deref(), Some("2026-10-25T06:00:00.000Z"));
        assert_eq!(end("2026-03-28T22:30:00Z").as_deref(), Some("2026-03-29T05:00:00.000Z"));
        let noon = hours("UTC", "12:00", "13:00");
        assert_eq!(noon.end_of(at("2026-07-14T12:30:00Z")), Some(at("2026-07-14T13:00:00Z")));
        assert_eq!(noon.end_of(at("2026-07-14T13:00:00Z")), None);
    }

    // rules: POLICY-8
    #[test]
    fn an_end_that_the_clocks_skip_is_the_next_time_they_show() {
        let night = hours("Europe/Berlin", "22:00", "02:30");
        let end = night.end_of(at("2026-03-29T00:30:00Z"));
        assert_eq!(end, Some(at("2026-03-29T01:30:00Z")));
    }

    // rules: POLICY-4
    #[test]
    fn quiet_hours_that_overlap_without_containing_cross() {
        let now = at("2026-07-14T12:00:00Z");
        let night = hours("UTC", "22:00", "07:00");
        let crosses = |from: &str, to: &str| hours("UTC", from, to).crosses(&night, now);
        assert!(crosses("23:00", "08:00") && crosses("21:00", "23:00") && crosses("01:00", "02:00"));
        assert!(!crosses("22:00", "07:00") && !crosses("20:00", "08:00") && !crosses("12:00", "13:00"));
        let elsewhere = hours("Europe/Berlin", "00:00", "09:00");
        assert!(!elsewhere.crosses(&night, now), "the same hours by another clock");
    }
}
