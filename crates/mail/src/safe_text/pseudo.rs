//! Pseudo-classes of selectors, as tests on an element.

use super::identifier::UnsupportedSelector;
use super::sibling_position::matches_nth;
use super::subject::{PartId, Subject};

/// A test on an element beyond its name.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// `an+b`, counted from the end or not, among those with its name or not.
    SiblingPosition {
        step: i64,
        offset: i64,
        from_end: bool,
        of_type: bool,
    },
    Empty,
    Root,
    Defined,
    /// An attribute that only some elements have: whether it must be there.
    Form(&'static [&'static str], &'static str, bool),
    Any(Vec<PartId>),
    None(Vec<PartId>),
}

/// The tests of a pseudo-class without an argument.
pub(super) fn simple_pseudo(name: &str) -> Result<Vec<Test>, UnsupportedSelector> {
    const FIELDS: &[&str] = &["input", "select", "textarea", "button", "fieldset", "option", "optgroup"];
    let child =
        |from_end: bool, of_type: bool| Test::SiblingPosition { step: 0, offset: 1, from_end, of_type };
    Ok(match name {
        "first-child" => vec![child(false, false)],
        "last-child" => vec![child(true, false)],
        "only-child" => vec![child(false, false), child(true, false)],
        "first-of-type" => vec![child(false, true)],
        "last-of-type" => vec![child(true, true)],
        "only-of-type" => vec![child(false, true), child(true, true)],
        "empty" => vec![Test::Empty],
        "root" | "scope" => vec![Test::Root],
        "defined" => vec![Test::Defined],
        "link" | "any-link" | "-webkit-any-link" => vec![Test::Form(&["a", "area"], "href", true)],
        "checked" => vec![Test::Form(&["input"], "checked", true)],
        "disabled" => vec![Test::Form(FIELDS, "disabled", true)],
        "enabled" => vec![Test::Form(FIELDS, "disabled", false)],
        "required" => vec![Test::Form(&["input", "select", "textarea"], "required", true)],
        "optional" => vec![Test::Form(&["input", "select", "textarea"], "required", false)],
        "hover"
        | "active"
        | "focus"
        | "focus-within"
        | "focus-visible"
        | "visited"
        | "target"
        | "target-within"
        | "fullscreen"
        | "modal"
        | "popover-open"
        | "user-valid"
        | "user-invalid"
        | "playing"
        | "before"
        | "after"
        | ":before"
        | ":after"
        | ":marker"
        | ":selection"
        | ":placeholder"
        | ":backdrop"
        | ":cue"
        | ":file-selector-button"
        | ":grammar-error"
        | ":spelling-error" => {
            return Err(UnsupportedSelector::Never);
        }
        vendor if vendor.trim_start_matches(':').starts_with('-') => {
            return Err(UnsupportedSelector::Foreign);
        }
        _ => return Err(UnsupportedSelector::Unknown),
    })
}

impl Test {
    /// Whether it holds for an element; `matched` has the parts that do, in order.
    pub(super) fn holds(&self, subject: Subject<'_>, matched: &[PartId]) -> bool {
        let any = |parts: &[PartId]| parts.iter().any(|part| matched.binary_search(part).is_ok());
        let name = subject.name.as_str();
        match self {
            Self::SiblingPosition { step, offset, from_end, of_type } => {
                let counts = if *from_end { subject.position.last } else { subject.position.first };
                let [of_all, of_name] = counts;
                matches_nth((*step, *offset), i64::from(if *of_type { of_name } else { of_all }))
            }
            Self::Empty => subject.position.is_empty,
            Self::Root => name == "html",
            Self::Defined => !name.contains('-'),
            Self::Form(names, attribute, wanted) => {
                names.contains(&name)
                    && subject.attributes.iter().any(|found| found.name.eq_ignore_ascii_case(attribute))
                        == *wanted
            }
            Self::Any(parts) => any(parts),
            Self::None(parts) => !any(parts),
        }
    }
}
