//! Parts of a line that have the shape of a code.

use std::ops::Range;

/// A piece of a line that could be a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// What would be typed in.
    pub(super) value: String,
    /// Its range in the line.
    pub(super) place: Range<usize>,
    /// What it is made of.
    pub(super) shape: Shape,
}

/// What a candidate is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Digits only.
    Digits,
    /// Digits behind a short prefix, such as `G-123456`.
    Prefixed,
    /// Letters and digits.
    Mixed,
    /// Capital letters only.
    Letters,
}

/// Prepares a line for searching: addresses become spaces, full-width digits ASCII ones. Ranges refer to the prepared
/// line.
pub(super) fn prepare(line: &str) -> String {
    let mut prepared = String::with_capacity(line.len());
    for (number, chunk) in line.split(' ').enumerate() {
        if number > 0 {
            prepared.push(' ');
        }
        let is_address =
            chunk.contains("://") || chunk.contains('@') || chunk.contains("www.") || chunk.contains(".com/");
        if is_address {
            // In scripts without spaces text may be attached to an address; the text before it is kept.
            let start = chunk.find("http").or_else(|| chunk.find("www.")).unwrap_or(0);
            prepared.push_str(chunk.get(..start).unwrap_or_default());
        } else {
            prepared.extend(chunk.chars().map(|c| match c {
                '０'..='９' => char::from_u32(u32::from(c) - 0xff10 + 0x30).unwrap_or(c),
                '：' => ':',
                other => other,
            }));
        }
    }
    prepared
}

/// Finds what has the shape of a code.
pub(super) fn find(line: &str) -> Vec<Candidate> {
    let tokens = tokens(line);
    let mut found = Vec::new();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        if let Some((candidate, used)) = joined_digits(line, tokens.get(index..).unwrap_or_default()) {
            found.push(candidate);
            index += used;
            continue;
        }
        found.extend(single(line, token.clone()));
        index += 1;
    }
    found
}

/// Runs of Latin letters, digits and hyphens.
fn tokens(line: &str) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    let mut start = None;
    for (place, c) in line.char_indices().chain([(line.len(), ' ')]) {
        let belongs = c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match (belongs, start) {
            (true, None) => start = Some(place),
            (false, Some(begin)) => {
                tokens.push(begin..place);
                start = None;
            }
            _ => {}
        }
    }
    tokens
}

fn text<'a>(line: &'a str, place: &Range<usize>) -> &'a str {
    line.get(place.clone()).unwrap_or_default()
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Digits in equal groups: `123 456`, `12 34 56`, `1 2 3 4`, also in cells of a table.
fn joined_digits(line: &str, tokens: &[Range<usize>]) -> Option<(Candidate, usize)> {
    let first = text(line, tokens.first()?);
    let size = first.len();
    if !all_digits(first) || size > 4 {
        return None;
    }
    let mut used = 1;
    while let (Some(previous), Some(next)) = (tokens.get(used - 1), tokens.get(used)) {
        let between = line.get(previous.end..next.start).unwrap_or_default();
        let joins =
            matches!(between, " " | "\u{b7}" | " - ") || (size == 1 && matches!(between, " | " | " · "));
        if !joins || !all_digits(text(line, next)) || text(line, next).len() != size {
            break;
        }
        used += 1;
    }
    let place = tokens.first()?.start..tokens.get(used - 1)?.end;
    let longer = tokens.get(used).is_some_and(|next| {
        line.get(place.end..next.start) == Some(" ")
            && text(line, next).bytes().all(|byte| byte.is_ascii_digit())
    });
    let digits = size * used;
    let fits = used >= 2 && (4..=10).contains(&digits) && !longer && stands_alone(line, &place);
    let value = text(line, &place).chars().filter(char::is_ascii_digit).collect();
    // Two groups of four may be two years; they are given as one code only when nothing else speaks against it.
    fits.then_some((Candidate { value, place, shape: Shape::Digits }, used))
}

/// One token that has the shape of a code.
fn single(line: &str, place: Range<usize>) -> Option<Candidate> {
    let token = text(line, &place);
    if !stands_alone(line, &place) || token.contains('_') {
        return None;
    }
    let groups: Vec<&str> = token.split('-').collect();
    let (shape, value) = match groups.as_slice() {
        [one] => (single_shape(one)?, (*one).to_owned()),
        [prefix, digits]
            if (1..=3).contains(&prefix.len())
                && prefix.bytes().all(|byte| byte.is_ascii_uppercase())
                && all_digits(digits)
                && (4..=8).contains(&digits.len()) =>
        {
            (Shape::Prefixed, token.to_owned())
        }
        many => grouped_shape(many)?,
    };
    Some(Candidate { value, place, shape })
}

fn single_shape(token: &str) -> Option<Shape> {
    let length = token.len();
    if all_digits(token) {
        return (4..=10).contains(&length).then_some(Shape::Digits);
    }
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    let upper = token.bytes().filter(u8::is_ascii_uppercase).count();
    if digits == 0 {
        return (upper == length && (5..=8).contains(&length)).then_some(Shape::Letters);
    }
    let lower = length - digits - upper;
    let is_ordinal =
        digits + lower == length && token.ends_with(|c: char| c.is_ascii_lowercase()) && lower <= 3;
    ((5..=12).contains(&length) && !is_ordinal).then_some(Shape::Mixed)
}

/// `123-456`, `ABCD-1234`, `AB12-CD34-EF56`.
fn grouped_shape(groups: &[&str]) -> Option<(Shape, String)> {
    let size = groups.first()?.len();
    let equal = groups.iter().all(|group| group.len() == size) && (2..=6).contains(&size);
    if groups.iter().all(|group| all_digits(group)) {
        let value = groups.concat();
        return (equal && (4..=10).contains(&value.len())).then_some((Shape::Digits, value));
    }
    let upper_or_digit = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let plain =
        groups.iter().all(|group| (3..=6).contains(&group.len()) && group.bytes().all(upper_or_digit));
    let has_digit = groups.iter().any(|group| group.bytes().any(|byte| byte.is_ascii_digit()));
    let shape = if has_digit { Shape::Mixed } else { Shape::Letters };
    (plain && groups.len() <= 5 && (has_digit || equal)).then(|| (shape, groups.join("-")))
}

/// Whether no adjacent character makes a candidate part of something else: a price, a time, a date, a decimal number, a
/// colour, a word.
fn stands_alone(line: &str, place: &Range<usize>) -> bool {
    let before: Vec<char> = line.get(..place.start).unwrap_or_default().chars().rev().take(3).collect();
    let mut after = line.get(place.end..).unwrap_or_default().chars();
    let (next, second) = (after.next().unwrap_or(' '), after.next().unwrap_or(' '));
    let glued_before = match before.as_slice() {
        [
            '#' | '+' | '/' | '$' | '€' | '£' | '¥' | '₹' | '₽' | '₺' | '=' | '&' | '\'' | '©' | '%' | '\\'
            | '№',
            ..,
        ]
        | [' ', '$' | '€' | '£' | '¥' | '₹' | '₽' | '₺' | '©' | '№' | '#' | '+', ..] => true,
        ['.' | ',' | ':', digit, ..] | [' ', ')', digit, ..] => digit.is_ascii_digit(),
        [first, ..] => is_letter(*first),
        [] => false,
    };
    let glued_after = match next {
        '%' | '$' | '€' | '£' | '¥' | '₹' | '₽' | '₺' | '/' | '=' | '°' | '&' | '秒' | '分' | '초' | '분'
        | '元' | '円' | '원' | '年' | '년' => true,
        '.' | ',' | ':' | '\'' => second.is_ascii_digit(),
        ' ' => matches!(second, '€' | '$' | '£' | '¥' | '₽' | '₺' | '%' | '円' | '元'),
        other => is_letter(other),
    };
    !glued_before && !glued_after
}

/// Characters that would make a number part of a word; those of scripts without spaces do not.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() && c < '\u{2000}'
}
