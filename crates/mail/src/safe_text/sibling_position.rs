//! Positions of elements among their siblings, and the `an+b` notation of selectors.

/// The position of an element among its siblings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SiblingPosition {
    /// Which child of its parent it is, from 1; of all, and of those with its name.
    pub(super) first: [u32; 2],
    /// The same, counted from the end. 0 where that was not counted.
    pub(super) last: [u32; 2],
    /// Whether it has no content.
    pub(super) is_empty: bool,
}

/// Reads `odd`, `3`, `2n+1`.
pub(super) fn parse_nth(text: &str) -> Option<(i64, i64)> {
    let text = text.trim().to_ascii_lowercase();
    match text.as_str() {
        "odd" => return Some((2, 1)),
        "even" => return Some((2, 0)),
        _ => {}
    }
    // White space is allowed around the sign in the middle only.
    let (before, after) = match text.split_once('n') {
        Some((step, rest)) => (Some(step), rest.trim()),
        None => (None, text.as_str()),
    };
    let whole = |number: &str| {
        let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number
            .then(|| number.strip_prefix('+').unwrap_or(number).parse::<i64>().unwrap_or(i64::from(u32::MAX)))
    };
    let step = match before {
        None => return whole(after).map(|position| (0, position)),
        Some("" | "+") => 1,
        Some("-") => -1,
        Some(step) => whole(step)?,
    };
    let offset = match after.chars().next() {
        None => 0,
        Some(sign @ ('+' | '-')) => {
            let digits = after.get(1..)?.trim();
            digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
            whole(&format!("{sign}{digits}"))?
        }
        Some(_) => return None,
    };
    Some((step, offset))
}

/// Whether `an+b` gives a position for some n ≥ 0.
pub(super) fn matches_nth((step, offset): (i64, i64), position: i64) -> bool {
    let distance = position.saturating_sub(offset);
    match step {
        _ if position < 1 => false,
        0 => distance == 0,
        step => distance % step == 0 && distance.signum() * step.signum() >= 0,
    }
}
