//! The Date header: RFC 5322 with its obsolete forms, and common deviations of real programs.

/// The longest value that is read as a date.
const MAX_DATE: usize = 200;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The time in microseconds since 1970, UTC.
pub(super) fn read(value: &[u8]) -> Option<i64> {
    let text = without_comments(value.get(..MAX_DATE).unwrap_or(value));
    // The day of the week says nothing new, and some programs stick it to the day.
    let text = text.split_once(',').map_or(text.as_str(), |(_, rest)| rest);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let mut words = words.iter().copied().skip_while(|word| !word.starts_with(|c: char| c.is_ascii_digit()));
    let first = words.next()?;
    let (day, month, year) = match first.split('-').collect::<Vec<_>>().as_slice() {
        [day, month, year] => (*day, *month, *year),
        _ => (first, words.next()?, words.next()?),
    };
    let day: i64 = number(day, 1, 31)?;
    let month = month_number(month)?;
    let year = full_year(year)?;
    let (hour, minute, second) = clock(words.next().unwrap_or("0:00"))?;
    let offset = words.next().map_or(Some(0), zone)?;
    if day > days_in_month(year, month) {
        return None;
    }
    let days = days_since_epoch(year, month, day);
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset * 60;
    Some(seconds * 1_000_000)
}

/// The text outside of comments.
fn without_comments(value: &[u8]) -> String {
    let mut text = String::with_capacity(value.len());
    let mut depth = 0_usize;
    for &byte in value {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && byte.is_ascii() => text.push(char::from(byte)),
            _ => {}
        }
    }
    text
}

/// A number of at most four digits within bounds.
fn number(text: &str, least: i64, most: i64) -> Option<i64> {
    let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|value| is_number && (least..=most).contains(value))
}

fn month_number(name: &str) -> Option<i64> {
    let name = name.get(..3)?.to_ascii_lowercase();
    let index = MONTHS.iter().position(|month| *month == name)?;
    i64::try_from(index + 1).ok()
}

/// A year; two and three digits as RFC 5322, section 4.3 says.
fn full_year(text: &str) -> Option<i64> {
    let year = number(text, 0, 9999)?;
    match text.len() {
        2 if year < 50 => Some(year + 2000),
        2 | 3 => Some(year + 1900),
        4 if year >= 1900 => Some(year),
        _ => None,
    }
}

/// Hours, minutes and seconds; a leap second counts as the one before it.
fn clock(text: &str) -> Option<(i64, i64, i64)> {
    let mut parts = text.split([':', '.']);
    let hour = number(parts.next()?, 0, 23)?;
    let minute = number(parts.next()?, 0, 59)?;
    let second = parts.next().map_or(Some(0), |second| number(second, 0, 60))?;
    Some((hour, minute, second.min(59)))
}

/// Minutes east of UTC. Unknown zones count as UTC, as RFC 5322 advises.
fn zone(text: &str) -> Option<i64> {
    let digits = text.trim_start_matches(['+', '-']).replace(':', "");
    if text.starts_with(['+', '-']) {
        let hours = number(digits.get(..2)?, 0, 23)?;
        let minutes = number(digits.get(2..).filter(|rest| !rest.is_empty()).unwrap_or("0"), 0, 59)?;
        let offset = hours * 60 + minutes;
        return Some(if text.starts_with('-') { -offset } else { offset });
    }
    let hours = match text.to_ascii_uppercase().as_str() {
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        "BST" | "CET" | "MET" => 1,
        "CEST" | "MEST" | "EET" => 2,
        "EEST" | "MSK" => 3,
        "JST" | "KST" => 9,
        _ => 0,
    };
    Some(hours * 60)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01, counting years from March so that a leap day comes last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}
