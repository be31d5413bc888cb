//! Understanding the value of a term; a message says what the field takes.

use jiff::civil::Date;
use mail::address::Address;

use super::expression::{AddressField, AddressPattern, FIELDS, MARK_TERMS, Term, fold};

/// The field of that name, in any case.
pub(super) fn field_named(word: &str) -> Option<&'static str> {
    FIELDS.into_iter().find(|field| field.eq_ignore_ascii_case(word))
}

/// Makes a term of one of [`FIELDS`] and its value.
pub(super) fn read_term(field: &str, value: &str) -> Result<Term, String> {
    match field {
        "from" => Ok(Term::Address(AddressField::From, read_address(value)?)),
        "to" => Ok(Term::Address(AddressField::To, read_address(value)?)),
        "cc" => Ok(Term::Address(AddressField::Cc, read_address(value)?)),
        "subject" => Ok(Term::Subject(fold(value))),
        "body" => Ok(Term::Body(fold(value))),
        "category" => Ok(Term::Category(fold(value))),
        "label" => Ok(Term::Label(fold(value))),
        "before" => read_day(value).map(Term::Before).ok_or_else(|| day_expected(field)),
        "after" => read_day(value).map(Term::After).ok_or_else(|| day_expected(field)),
        "larger" => read_size(value).map(Term::Larger).ok_or_else(|| size_expected(field)),
        "smaller" => read_size(value).map(Term::Smaller).ok_or_else(|| size_expected(field)),
        _ => read_mark(field, value),
    }
}

fn read_address(value: &str) -> Result<AddressPattern, String> {
    if let Some(domain) = value.strip_prefix('@') {
        return match Address::parse(&format!("any@{domain}")) {
            Ok(address) => Ok(AddressPattern::Domain(address.domain().to_owned())),
            Err(_) => Err("expected a domain such as @example.com".to_owned()),
        };
    }
    let is_part = !value.contains('@') || value.ends_with('@');
    if is_part {
        return Ok(AddressPattern::Contains(fold(value)));
    }
    match Address::parse(value) {
        Ok(address) => Ok(AddressPattern::Exact(address.as_str().to_owned())),
        Err(_) => Err("expected an address such as name@example.com".to_owned()),
    }
}

fn read_mark(field: &str, value: &str) -> Result<Term, String> {
    let of_field = || MARK_TERMS.into_iter().filter(|term| term.field == field);
    if let Some(term) = of_field().find(|term| term.word.eq_ignore_ascii_case(value)) {
        return Ok(Term::Mark(term));
    }
    let words: Vec<&str> = of_field().map(|term| term.word).collect();
    Err(format!("expected one of {} after \"{field}:\"", words.join(", ")))
}

fn day_expected(field: &str) -> String {
    format!("expected a date such as 2026-01-31 after \"{field}:\"")
}

/// Reads `YYYY-MM-DD` and nothing looser: the many other date forms would each be read differently by
/// someone.
fn read_day(value: &str) -> Option<Date> {
    let mut parts = value.split('-');
    let year = read_digits(parts.next()?, 4)?;
    let month = read_digits(parts.next()?, 2)?;
    let day = read_digits(parts.next()?, 2)?;
    if parts.next().is_some() {
        return None;
    }
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

fn read_digits(text: &str, count: usize) -> Option<i16> {
    let all_digits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| text.parse().ok()).flatten()
}

fn size_expected(field: &str) -> String {
    format!("expected a size such as 100kb or 5mb after \"{field}:\"")
}

fn read_size(value: &str) -> Option<u64> {
    let unit_at = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(unit_at);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}
