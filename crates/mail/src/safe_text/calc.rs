//! The arithmetic of CSS: `calc()`, `min()`, `max()` and `clamp()` over lengths, in one pass over their text.
//!
//! Lengths of either kind are read here, those that are written out and those that have to be computed.

use super::brackets::{closing, split_outside};
use super::length::Length;

/// Maximum nesting of brackets; deeper expressions are not evaluated.
const MAX_DEPTH: usize = 16;

/// The most arguments of `min()` and `max()` that are compared.
const MAX_ARGUMENTS: usize = 64;

/// Larger than anything on a page: the result of a division by zero.
const ENDLESS: f32 = 1e9;

/// Assumed pixels of one percent where lengths are compared with percentages.
const PERCENT: f32 = 10.0;

/// A sum of a number, pixels, multiples of the font size, and percents.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    number: f32,
    px: f32,
    em: f32,
    percent: f32,
}

impl Sum {
    fn of(length: Length) -> Option<Self> {
        let none = Self::default();
        Some(match length {
            Length::Px(px) => Self { px, ..none },
            Length::Bare(number) => Self { number, ..none },
            Length::Em(em) => Self { em, ..none },
            Length::Percent(percent) => Self { percent, ..none },
            Length::Mixed { px, em, percent } => Self { px, em, percent, ..none },
            Length::Auto => return None,
        })
    }

    /// A number or a length in an expression.
    fn parse(word: &str) -> Option<Self> {
        let number = match word {
            "infinity" => Ok(ENDLESS),
            "-infinity" => Ok(-ENDLESS),
            _ => word.parse::<f32>(),
        };
        match number {
            Ok(number) => number.is_finite().then_some(Self { number, ..Self::default() }),
            Err(_) => Self::of(Length::parse_plain(word)?),
        }
    }

    fn map(self, change: impl Fn(f32) -> f32) -> Self {
        // NaN counts as zero, as it does in browsers.
        let bounded = |value: f32| {
            let value = change(value);
            if value.is_nan() { 0.0 } else { value.clamp(-ENDLESS, ENDLESS) }
        };
        Self {
            number: bounded(self.number),
            px: bounded(self.px),
            em: bounded(self.em),
            percent: bounded(self.percent),
        }
    }

    fn plus(self, other: Self, sign: f32) -> Self {
        Self {
            number: self.number + sign * other.number,
            px: self.px + sign * other.px,
            em: self.em + sign * other.em,
            percent: self.percent + sign * other.percent,
        }
        .map(|value| value)
    }

    fn is_number(self) -> bool {
        [self.px, self.em, self.percent].iter().all(|part| part.abs() < f32::EPSILON)
    }

    /// Only one factor may be a length.
    fn times(self, other: Self) -> Option<Self> {
        match (self.is_number(), other.is_number()) {
            (_, true) => Some(self.map(|value| value * other.number)),
            (true, false) => Some(other.map(|value| value * self.number)),
            (false, false) => None,
        }
    }

    fn divided_by(self, other: Self) -> Option<Self> {
        other
            .is_number()
            .then(|| self.map(|value| if value.abs() < f32::EPSILON { 0.0 } else { value / other.number }))
    }

    /// An estimate in pixels, to compare several.
    fn about(self) -> f32 {
        self.number + self.px + self.em * 16.0 + self.percent * PERCENT
    }

    fn length(self) -> Length {
        let some = |part: f32| part.abs() >= f32::EPSILON;
        if self.is_number() && some(self.number) {
            return Length::Bare(self.number);
        }
        let px = self.number + self.px;
        match (some(self.em), some(self.percent)) {
            (false, false) => Length::Px(px),
            (true, false) if !some(px) => Length::Em(self.em),
            (false, true) if !some(px) => Length::Percent(self.percent),
            _ => Length::Mixed { px, em: self.em, percent: self.percent },
        }
    }
}

impl Length {
    /// Reads a length in lower case, whether it is written out or has to be computed.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.ends_with(')') { parse(text) } else { Self::parse_plain(text) }
    }
}

/// Parses a mathematical function; `None` for an unknown or invalid one.
fn parse(text: &str) -> Option<Length> {
    let mut reader = Reader { rest: text, depth: 0 };
    let sum = reader.factor()?;
    reader.rest.trim().is_empty().then(|| sum.length())
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn sum(&mut self) -> Option<Sum> {
        let mut total = self.product()?;
        loop {
            let (before, rest) = (self.rest, self.rest.trim_start());
            let sign = match rest.chars().next() {
                Some('+') => 1.0,
                Some('-') => -1.0,
                _ => return Some(total),
            };
            self.rest = rest.get(1..)?;
            // Without white space on both sides browsers refuse it.
            if !before.starts_with(' ') || !self.rest.starts_with(' ') {
                return None;
            }
            total = total.plus(self.product()?, sign);
        }
    }

    fn product(&mut self) -> Option<Sum> {
        let mut total = self.factor()?;
        loop {
            let rest = self.rest.trim_start();
            if let Some(after) = rest.strip_prefix('*') {
                self.rest = after;
                total = total.times(self.factor()?)?;
            } else if let Some(after) = rest.strip_prefix('/') {
                self.rest = after;
                total = total.divided_by(self.factor()?)?;
            } else {
                return Some(total);
            }
        }
    }

    /// A number, a length, brackets or a function.
    fn factor(&mut self) -> Option<Sum> {
        self.rest = self.rest.trim_start();
        let end = self.word_length();
        let (word, after) = self.rest.split_at_checked(end)?;
        let Some(inside) = after.strip_prefix('(') else {
            self.rest = after;
            return Sum::parse(word);
        };
        let (inside, after) = inside.split_at_checked(closing(inside)?)?;
        self.rest = after.strip_prefix(')')?;
        if self.depth >= MAX_DEPTH {
            return None;
        }
        let depth = self.depth + 1;
        let value = |text: &str| {
            let mut reader = Reader { rest: text, depth };
            let sum = reader.sum()?;
            reader.rest.trim().is_empty().then_some(sum)
        };
        match word {
            "" | "calc" | "-webkit-calc" | "-moz-calc" => value(inside),
            "min" | "max" | "clamp" => {
                let all: Option<Vec<Sum>> =
                    split_outside(inside, ',').take(MAX_ARGUMENTS).map(value).collect();
                choose(word, &all?)
            }
            _ => None,
        }
    }

    /// How long the number with its unit, or the name of a function, at the beginning is.
    fn word_length(&self) -> usize {
        let mut before = ' ';
        for (place, c) in self.rest.char_indices() {
            let is_sign = matches!(c, '+' | '-') && (place == 0 || before == 'e');
            if !(c.is_ascii_alphanumeric() || matches!(c, '.' | '%') || is_sign || is_hyphen(c, before)) {
                return place;
            }
            before = c;
        }
        self.rest.len()
    }
}

/// Whether a hyphen continues a name such as `-webkit-calc`.
fn is_hyphen(c: char, before: char) -> bool {
    c == '-' && (before.is_ascii_alphabetic() || before == '-')
}

fn choose(name: &str, all: &[Sum]) -> Option<Sum> {
    let by = |one: &&Sum, other: &&Sum| one.about().total_cmp(&other.about());
    match (name, all) {
        ("min", _) => all.iter().min_by(by).copied(),
        ("max", _) => all.iter().max_by(by).copied(),
        ("clamp", [least, wanted, most]) => {
            let bounded = [wanted, most].into_iter().min_by(by)?;
            [bounded, least].into_iter().max_by(by).copied()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rules: SAFE-6
    #[test]
    fn expressions_come_to_lengths() {
        let mixed = |px, em, percent| Length::Mixed { px, em, percent };
        let cases = [
            ("calc(0px * 1)", Some(Length::Px(0.0))),
            ("calc(-1 * 9999px)", Some(Length::Px(-9999.0))),
            ("calc(2px + 3px * 4 - (1px - 2px))", Some(Length::Px(15.0))),
            ("calc(1em / 2)", Some(Length::Em(0.5))),
            ("calc(100% - 20px)", Some(mixed(-20.0, 0.0, 100.0))),
            ("calc(50% + 50%)", Some(Length::Percent(100.0))),
            ("calc(100% - 100%)", Some(Length::Px(0.0))),
            ("calc(0.5 * 0)", Some(Length::Px(0.0))),
            ("calc(1e1px)", Some(Length::Px(10.0))),
            ("calc(1px / 0)", Some(Length::Px(ENDLESS))),
            ("calc(-1px / 0)", Some(Length::Px(-ENDLESS))),
            ("calc(infinity * -1px)", Some(Length::Px(-ENDLESS))),
            ("min(0px, 1em)", Some(Length::Px(0.0))),
            ("max(1px, calc(2px * 3), 1em)", Some(Length::Em(1.0))),
            ("clamp(5px, 1px, 9px)", Some(Length::Px(5.0))),
            ("clamp(5px, 99px, 9px)", Some(Length::Px(9.0))),
            ("clamp(9px, 1px, 5px)", Some(Length::Px(9.0))),
            ("calc(1px * 1px)", None),
            ("calc(1px", None),
            ("calc(1px 2px)", None),
            ("calc(1px -1px)", None),
            ("calc(1px+ 1px)", None),
            ("calc()", None),
            ("foo(1px)", None),
            ("env(safe)", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
        let deep = format!("calc({}1px{})", "(".repeat(5_000), ")".repeat(5_000));
        assert_eq!(parse(&deep), None);
        assert_eq!(parse(&format!("calc({}1px)", "1px + ".repeat(5_000))), Some(Length::Px(5001.0)));
    }
}
