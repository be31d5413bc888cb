//! Lengths of CSS, as far as they can be known without laying a page out.

/// A length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Length {
    /// Pixels.
    Px(f32),
    /// A number without a unit: pixels in quirks mode, otherwise invalid except for `line-height`.
    Bare(f32),
    /// Multiples of the font size.
    Em(f32),
    /// A share of something, in percent.
    Percent(f32),
    /// A sum of all three.
    Mixed {
        /// Pixels.
        px: f32,
        /// Multiples of the font size.
        em: f32,
        /// A share of something, in percent.
        percent: f32,
    },
    /// Neither bounded nor moved: `auto`, `none`, `normal`.
    Auto,
}

impl Length {
    /// Reads a length in lower case that is written out: a keyword, or a number with its unit.
    pub(super) fn parse_plain(text: &str) -> Option<Self> {
        let text = text.trim();
        if matches!(text, "auto" | "none" | "normal" | "fit-content" | "max-content" | "min-content") {
            return Some(Self::Auto);
        }
        let unit_start = text.find(|c: char| c.is_ascii_alphabetic() || c == '%').unwrap_or(text.len());
        let (number, unit) = text.split_at_checked(unit_start)?;
        let (number, unit) = match unit.strip_prefix('e') {
            Some(exponent)
                if exponent.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+')) =>
            {
                let digits =
                    exponent.find(|c: char| c.is_ascii_alphabetic() || c == '%').unwrap_or(exponent.len());
                text.split_at_checked(unit_start + 1 + digits)?
            }
            _ => (number, unit),
        };
        let value: f32 = number.trim().parse().ok().filter(|value: &f32| value.is_finite())?;
        Some(match unit {
            "" if value.abs() >= f32::EPSILON => Self::Bare(value),
            "" | "px" => Self::Px(value),
            "em" => Self::Em(value),
            "ex" | "ch" => Self::Em(value / 2.0),
            "%" => Self::Percent(value),
            "rem" | "pc" | "lh" | "rlh" => Self::Px(value * 16.0),
            "pt" => Self::Px(value * 4.0 / 3.0),
            "in" => Self::Px(value * 96.0),
            "cm" => Self::Px(value * 37.8),
            "mm" => Self::Px(value * 3.78),
            "q" => Self::Px(value * 0.945),
            // A whole viewport away is invisible, whatever its size.
            unit if (unit.ends_with("vw") || unit.ends_with("vh")) && value >= 100.0 => {
                Self::Px(value * 100.0)
            }
            unit if unit.ends_with("vw") || unit.ends_with("vh") => Self::Px(value * 10.0),
            "vmin" | "vmax" | "vi" | "vb" => Self::Px(value * 10.0),
            _ => return None,
        })
    }

    /// The length in pixels; `None` where it is a share of something unknown.
    pub(super) fn px(self, font_size: f32) -> Option<f32> {
        match self {
            Self::Px(value) | Self::Bare(value) => Some(value),
            Self::Em(value) => Some(value * font_size),
            Self::Percent(value) if value.abs() < f32::EPSILON => Some(0.0),
            Self::Mixed { px, em, percent } if percent.abs() < f32::EPSILON => Some(px + em * font_size),
            Self::Mixed { .. } | Self::Percent(_) | Self::Auto => None,
        }
    }

    /// The length in pixels where the whole is known.
    pub(super) fn of(self, font_size: f32, whole: f32) -> Option<f32> {
        match self {
            Self::Percent(share) => Some(whole * share / 100.0),
            Self::Mixed { px, em, percent } => Some(px + em * font_size + whole * percent / 100.0),
            other => other.px(font_size),
        }
    }
}
