//! CSS colours and those of old HTML attributes, and whether text in one is visible on another.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Two colours closer than this in every channel look the same.
const SAME_BY_CHANNEL: f32 = 20.0;

/// Two colours with less contrast than this look the same if their tint is the same.
const SAME_BY_CONTRAST: f32 = 1.05;

/// How far channels may differ for the same tint.
const SAME_TINT: f32 = 48.0;

/// A colour below this opacity is invisible.
const MIN_ALPHA: f32 = 0.1;

/// A colour; channels from 0 to 255, opacity from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Colour {
    red: f32,
    green: f32,
    blue: f32,
    /// How opaque it is.
    pub(super) alpha: f32,
}

impl Colour {
    pub(super) const BLACK: Self = Self::opaque(0.0, 0.0, 0.0);
    pub(super) const WHITE: Self = Self::opaque(255.0, 255.0, 255.0);
    /// The browser default of links.
    pub(super) const LINK: Self = Self::opaque(0.0, 0.0, 238.0);
    /// The browser default of buttons.
    pub(super) const BUTTON: Self = Self::opaque(239.0, 239.0, 239.0);
    pub(super) const YELLOW: Self = Self::opaque(255.0, 255.0, 0.0);
    pub(super) const TRANSPARENT: Self = Self { red: 0.0, green: 0.0, blue: 0.0, alpha: 0.0 };

    const fn opaque(red: f32, green: f32, blue: f32) -> Self {
        Self { red, green, blue, alpha: 1.0 }
    }

    /// Reads a colour of CSS in lower case; `None` for notations that are not known.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(digits) = text.strip_prefix('#') {
            return Self::from_hex(digits);
        }
        if let Some((function, arguments)) = text.strip_suffix(')').and_then(|call| call.split_once('(')) {
            return Self::from_function(function.trim(), arguments);
        }
        match text {
            "transparent" => Some(Self::TRANSPARENT),
            "canvas" | "window" | "field" => Some(Self::WHITE),
            "canvastext" | "windowtext" | "fieldtext" => Some(Self::BLACK),
            name => NAMED.get(name).and_then(|digits| Self::from_hex(digits)),
        }
    }

    /// Reads a colour of an old attribute, where the `#` may be missing.
    pub(super) fn parse_attribute(text: &str) -> Option<Self> {
        let lower = text.trim().to_ascii_lowercase();
        Self::parse(&lower).or_else(|| Self::from_hex(&lower))
    }

    fn from_hex(digits: &str) -> Option<Self> {
        let values: Option<Vec<u32>> = digits.chars().take(9).map(|c| c.to_digit(16)).collect();
        let bytes: Vec<u32> = match values?.as_slice() {
            short @ ([_, _, _] | [_, _, _, _]) => short.iter().map(|digit| digit * 17).collect(),
            long if matches!(long.len(), 6 | 8) => {
                long.chunks(2).map(|pair| pair.iter().fold(0, |value, digit| value * 16 + digit)).collect()
            }
            _ => return None,
        };
        let channel =
            |index: usize| bytes.get(index).and_then(|byte| u8::try_from(*byte).ok()).map(f32::from);
        let alpha = channel(3).map_or(1.0, |alpha| alpha / 255.0);
        Some(Self { red: channel(0)?, green: channel(1)?, blue: channel(2)?, alpha })
    }

    fn from_function(name: &str, arguments: &str) -> Option<Self> {
        let parts: Vec<&str> =
            arguments.split([',', ' ', '/']).map(str::trim).filter(|part| !part.is_empty()).take(5).collect();
        let alpha = parts.get(3).map_or(Some(1.0), |part| scaled(part, 1.0))?.clamp(0.0, 1.0);
        let (first, second, third) = (parts.first()?, parts.get(1)?, parts.get(2)?);
        match name {
            "rgb" | "rgba" => {
                let channel = |part: &str| scaled(part, 255.0).map(|value| value.clamp(0.0, 255.0));
                Some(Self { red: channel(first)?, green: channel(second)?, blue: channel(third)?, alpha })
            }
            "hsl" | "hsla" => {
                let hue = first.trim_end_matches("deg").parse().ok()?;
                let (saturation, lightness) = (percentage(second)?, percentage(third)?);
                Some(Self { alpha, ..Self::from_hsl(hue, saturation, lightness) })
            }
            _ => None,
        }
    }

    fn from_hsl(hue: f32, saturation: f32, lightness: f32) -> Self {
        let reach = saturation * lightness.min(1.0 - lightness);
        let channel = |offset: f32| {
            let place = (offset + hue.rem_euclid(360.0) / 30.0) % 12.0;
            let level = lightness - reach * (place - 3.0).min(9.0 - place).clamp(-1.0, 1.0);
            level * 255.0
        };
        Self::opaque(channel(0.0), channel(8.0), channel(4.0))
    }

    /// The visible colour when this one is painted over another.
    pub(super) fn over(self, below: Self) -> Self {
        let mix = |top: f32, bottom: f32| top * self.alpha + bottom * (1.0 - self.alpha);
        Self::opaque(mix(self.red, below.red), mix(self.green, below.green), mix(self.blue, below.blue))
    }

    /// Whether text in this colour is invisible on a background.
    pub(super) fn vanishes_on(self, background: Self) -> bool {
        if self.alpha < MIN_ALPHA {
            return true;
        }
        let ink = self.over(background);
        let apart = ink.distance(background);
        apart <= SAME_BY_CHANNEL || (apart <= SAME_TINT && ink.contrast(background) < SAME_BY_CONTRAST)
    }

    /// The largest difference in a channel.
    fn distance(self, other: Self) -> f32 {
        let (red, green, blue) = (self.red - other.red, self.green - other.green, self.blue - other.blue);
        red.abs().max(green.abs()).max(blue.abs())
    }

    /// The contrast ratio of WCAG 2, from 1 to 21.
    fn contrast(self, other: Self) -> f32 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    fn luminance(self) -> f32 {
        let linear = |channel: f32| {
            let share = channel / 255.0;
            if share <= 0.04 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.red) + 0.7152 * linear(self.green) + 0.0722 * linear(self.blue)
    }
}

/// A number, or a percentage of a whole.
fn scaled(text: &str, whole: f32) -> Option<f32> {
    match text.strip_suffix('%') {
        Some(share) => share.parse::<f32>().ok().map(|share| share / 100.0 * whole),
        None if text == "none" => Some(0.0),
        None => text.parse().ok(),
    }
    .filter(|value: &f32| value.is_finite())
}

fn percentage(text: &str) -> Option<f32> {
    let share: f32 = text.trim_end_matches('%').parse().ok()?;
    Some((share / 100.0).clamp(0.0, 1.0))
}

static NAMED: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let mut words = NAMES.split_ascii_whitespace();
    std::iter::from_fn(|| Some((words.next()?, words.next()?))).collect()
});

/// The colour names of CSS.
const NAMES: &str = "\
    aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc \
    bisque ffe4c4 black 000000 blanchedalmond ffebcd blue 0000ff blueviolet 8a2be2 brown a52a2a \
    burlywood deb887 cadetblue 5f9ea0 chartreuse 7fff00 chocolate d2691e coral ff7f50 \
    cornflowerblue 6495ed cornsilk fff8dc crimson dc143c cyan 00ffff darkblue 00008b darkcyan 008b8b \
    darkgoldenrod b8860b darkgray a9a9a9 darkgreen 006400 darkgrey a9a9a9 darkkhaki bdb76b \
    darkmagenta 8b008b darkolivegreen 556b2f darkorange ff8c00 darkorchid 9932cc darkred 8b0000 \
    darksalmon e9967a darkseagreen 8fbc8f darkslateblue 483d8b darkslategray 2f4f4f \
    darkslategrey 2f4f4f darkturquoise 00ced1 darkviolet 9400d3 deeppink ff1493 deepskyblue 00bfff \
    dimgray 696969 dimgrey 696969 dodgerblue 1e90ff firebrick b22222 floralwhite fffaf0 \
    forestgreen 228b22 fuchsia ff00ff gainsboro dcdcdc ghostwhite f8f8ff gold ffd700 goldenrod daa520 \
    gray 808080 green 008000 greenyellow adff2f grey 808080 honeydew f0fff0 hotpink ff69b4 \
    indianred cd5c5c indigo 4b0082 ivory fffff0 khaki f0e68c lavender e6e6fa lavenderblush fff0f5 \
    lawngreen 7cfc00 lemonchiffon fffacd lightblue add8e6 lightcoral f08080 lightcyan e0ffff \
    lightgoldenrodyellow fafad2 lightgray d3d3d3 lightgreen 90ee90 lightgrey d3d3d3 lightpink ffb6c1 \
    lightsalmon ffa07a lightseagreen 20b2aa lightskyblue 87cefa lightslategray 778899 \
    lightslategrey 778899 lightsteelblue b0c4de lightyellow ffffe0 lime 00ff00 limegreen 32cd32 \
    linen faf0e6 magenta ff00ff maroon 800000 mediumaquamarine 66cdaa mediumblue 0000cd \
    mediumorchid ba55d3 mediumpurple 9370db mediumseagreen 3cb371 mediumslateblue 7b68ee \
    mediumspringgreen 00fa9a mediumturquoise 48d1cc mediumvioletred c71585 midnightblue 191970 \
    mintcream f5fffa mistyrose ffe4e1 moccasin ffe4b5 navajowhite ffdead navy 000080 oldlace fdf5e6 \
    olive 808000 olivedrab 6b8e23 orange ffa500 orangered ff4500 orchid da70d6 palegoldenrod eee8aa \
    palegreen 98fb98 paleturquoise afeeee palevioletred db7093 papayawhip ffefd5 peachpuff ffdab9 \
    peru cd853f pink ffc0cb plum dda0dd powderblue b0e0e6 purple 800080 rebeccapurple 663399 \
    red ff0000 rosybrown bc8f8f royalblue 4169e1 saddlebrown 8b4513 salmon fa8072 sandybrown f4a460 \
    seagreen 2e8b57 seashell fff5ee sienna a0522d silver c0c0c0 skyblue 87ceeb slateblue 6a5acd \
    slategray 708090 slategrey 708090 snow fffafa springgreen 00ff7f steelblue 4682b4 tan d2b48c \
    teal 008080 thistle d8bfd8 tomato ff6347 turquoise 40e0d0 violet ee82ee wheat f5deb3 white ffffff \
    whitesmoke f5f5f5 yellow ffff00 yellowgreen 9acd32";
