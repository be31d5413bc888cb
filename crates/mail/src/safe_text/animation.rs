//! CSS animations: which of their frames are visible to a person who has opened the message.
//!
//! A message is judged as it looks some seconds after it was opened. Between two frames the nearer one counts. A short
//! animation that repeats shows all its frames, so text in any of them is visible.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::brackets::split_outside;
use super::cascade::CascadedValues;
use super::prepare::{QUOTE, unmask};
use super::property::{Declaration, Property, Value};

/// When the message is judged, in seconds after it was opened.
const VIEWED_AT_SECONDS: f32 = 10.0;

/// Cycles up to this many seconds are visible as a whole.
const SHORT_CYCLE_SECONDS: f32 = 30.0;

/// Fill modes and directions, as numbers that a value can have.
const BACKWARDS: f32 = 1.0;
const FORWARDS: f32 = 2.0;
const REVERSED: f32 = 1.0;
const ALTERNATING: f32 = 2.0;

/// A keyframe: its offset from 0 to 1, and its declarations.
pub(super) type Frame = (f32, Vec<Declaration>);

/// The animations of a document by the hash of their names.
pub(super) type Animations = HashMap<u64, Vec<Frame>>;

/// Reads one of the longhands. Of a list the first counts.
pub(super) fn parse_value(property: Property, text: &str) -> Option<Value> {
    let mut parts = split_outside(text, ',');
    let first = parts.next()?.trim();
    let many = parts.next().is_some();
    match property {
        Property::AnimationName if first == "none" => Some(Value::Inherit),
        Property::AnimationName => Some(Value::Name(name(first), many)),
        Property::AnimationDuration | Property::AnimationDelay => seconds(first).map(Value::Number),
        Property::AnimationCount if first == "infinite" => Some(Value::Number(f32::INFINITY)),
        Property::AnimationCount => first.parse().ok().filter(|count| *count >= 0.0).map(Value::Number),
        Property::AnimationFill => fill(first).map(Value::Number),
        Property::AnimationDirection => direction(first).map(Value::Number),
        Property::AnimationTimeline => Some(Value::Flag(first != "auto")),
        Property::AnimationPaused => match first {
            "paused" => Some(Value::Flag(true)),
            "running" => Some(Value::Flag(false)),
            _ => None,
        },
        _ => None,
    }
}

/// Reads the shorthand, which sets all of them.
pub(super) fn parse_shorthand(text: &str, set: &mut impl FnMut(Property, Value)) {
    let mut parts = split_outside(text, ',');
    let first = parts.next().unwrap_or_default();
    let many = parts.next().is_some();
    let mut times = [Property::AnimationDuration, Property::AnimationDelay].into_iter();
    let mut found: [(Property, Value); 8] = [
        (Property::AnimationName, Value::Inherit),
        (Property::AnimationDuration, Value::Number(0.0)),
        (Property::AnimationDelay, Value::Number(0.0)),
        (Property::AnimationCount, Value::Number(1.0)),
        (Property::AnimationFill, Value::Number(0.0)),
        (Property::AnimationDirection, Value::Number(0.0)),
        (Property::AnimationPaused, Value::Flag(false)),
        (Property::AnimationTimeline, Value::Flag(false)),
    ];
    let mut note = |property: Property, value: Value| {
        for (_, slot) in found.iter_mut().filter(|(known, _)| *known == property) {
            *slot = value;
        }
    };
    for word in split_outside(first, ' ').filter(|word| !word.is_empty()).take(16) {
        let other = [
            Property::AnimationCount,
            Property::AnimationFill,
            Property::AnimationDirection,
            Property::AnimationPaused,
        ];
        if let Some(time) = seconds(word) {
            if let Some(property) = times.next() {
                note(property, Value::Number(time));
            }
        } else if let Some((property, value)) =
            other.into_iter().find_map(|property| Some((property, parse_value(property, word)?)))
        {
            note(property, value);
        } else if !is_timing(word) && word != "none" {
            note(Property::AnimationName, Value::Name(name(word), many));
        }
    }
    for (property, value) in found {
        set(property, value);
    }
}

fn is_timing(word: &str) -> bool {
    matches!(word, "ease" | "ease-in" | "ease-out" | "ease-in-out" | "linear" | "step-start" | "step-end")
        || word.ends_with(')')
}

fn seconds(text: &str) -> Option<f32> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 0.001),
        None => (text.strip_suffix('s')?, 1.0),
    };
    number.parse::<f32>().ok().filter(|value| value.is_finite()).map(|value| value * unit)
}

fn fill(text: &str) -> Option<f32> {
    Some(match text {
        "none" => 0.0,
        "backwards" => BACKWARDS,
        "forwards" => FORWARDS,
        "both" => BACKWARDS + FORWARDS,
        _ => return None,
    })
}

fn direction(text: &str) -> Option<f32> {
    Some(match text {
        "normal" => 0.0,
        "reverse" => REVERSED,
        "alternate" => ALTERNATING,
        "alternate-reverse" => REVERSED + ALTERNATING,
        _ => return None,
    })
}

/// The hash of an animation's name.
pub(super) fn name(text: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(unmask(text.trim_matches(QUOTE)).as_str())
}

/// The offset of a keyframe: `from`, `to` or a percentage.
pub(super) fn parse_offset(text: &str) -> Option<f32> {
    match text.trim() {
        "from" => Some(0.0),
        "to" => Some(1.0),
        share => {
            let share: f32 = share.strip_suffix('%')?.trim().parse().ok()?;
            (0.0..=100.0).contains(&share).then_some(share / 100.0)
        }
    }
}

/// The visible frames of an element's animation.
#[derive(Debug, PartialEq)]
pub(super) enum VisibleFrames<'a> {
    /// The element as it is without it.
    Itself,
    /// One frame.
    Frame(&'a [Declaration]),
    /// Each of its frames in turn; whether the element as it is without the animation is among them.
    All(&'a [Frame], bool),
}

/// The visible frames of an element's animation, and whether it has further animations, which are ignored.
pub(super) fn visible_frames<'a>(
    animations: &'a Animations,
    own: &CascadedValues,
) -> (VisibleFrames<'a>, bool) {
    let Some(Value::Name(name, many)) = own.get(Property::AnimationName) else {
        return (VisibleFrames::Itself, false);
    };
    let many = many || own.flag(Property::AnimationTimeline);
    let Some(frames) = animations.get(&name) else { return (VisibleFrames::Itself, many) };
    let number = |property: Property, default: f32| own.number(property).unwrap_or(default);
    let is_odd = |property: Property| number(property, 0.0).rem_euclid(2.0) >= 1.0;
    let (backwards, forwards) =
        (is_odd(Property::AnimationFill), number(Property::AnimationFill, 0.0) >= FORWARDS);
    let (reversed, alternating) =
        (is_odd(Property::AnimationDirection), number(Property::AnimationDirection, 0.0) >= ALTERNATING);
    let duration = number(Property::AnimationDuration, 0.0).max(0.0);
    let delay = number(Property::AnimationDelay, 0.0);
    let count = number(Property::AnimationCount, 1.0);
    let passed = if own.flag(Property::AnimationPaused) { -delay } else { VIEWED_AT_SECONDS - delay };
    let round = if duration > 0.0 { passed / duration } else { f32::INFINITY };
    let is_reversed = |round: f32| reversed != (alternating && round.rem_euclid(2.0) >= 1.0);
    let at = |place: f32, round: f32| frame_at(frames, if is_reversed(round) { 1.0 - place } else { place });
    let visible_frames = if passed < 0.0 {
        if backwards { at(0.0, 0.0) } else { VisibleFrames::Itself }
    } else if round >= count {
        if !forwards {
            VisibleFrames::Itself
        } else if count.fract() > 0.0 {
            at(count.fract(), count.floor())
        } else {
            at(if count > 0.0 { 1.0 } else { 0.0 }, (count - 1.0).max(0.0))
        }
    } else if count.is_infinite() && duration <= SHORT_CYCLE_SECONDS && !own.flag(Property::AnimationPaused) {
        VisibleFrames::All(frames, !has_end(frames, 0.0) || !has_end(frames, 1.0))
    } else {
        at(round.fract(), round.floor())
    };
    (visible_frames, many)
}

/// The frame nearest to an offset. A missing first or last frame is the element without the animation.
fn frame_at(frames: &[Frame], place: f32) -> VisibleFrames<'_> {
    let distance = |at: f32| (at - place).abs();
    let itself = [0.0, 1.0].into_iter().filter(|end| !has_end(frames, *end)).map(distance);
    let itself = itself.fold(f32::INFINITY, f32::min);
    // Of two for the same offset the later one counts.
    let nearest = frames.iter().rev().min_by(|one, other| distance(one.0).total_cmp(&distance(other.0)));
    match nearest {
        Some((at, declarations)) if distance(*at) <= itself => VisibleFrames::Frame(declarations),
        _ => VisibleFrames::Itself,
    }
}

fn has_end(frames: &[Frame], end: f32) -> bool {
    frames.iter().any(|(place, _)| (place - end).abs() < 0.001)
}
