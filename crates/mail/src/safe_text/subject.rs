//! The subject of a selector: one element, described by its tag and its position.
//!
//! A comparison also uses the parts that matched before, each identified by a number.

use super::sibling_position::SiblingPosition;
use super::tokens::{Attribute, Name};

/// What a selector is compared with.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) name: Name,
    pub(super) id: &'a str,
    pub(super) class: &'a str,
    pub(super) attributes: &'a [Attribute<'a>],
    pub(super) position: SiblingPosition,
    /// Whether names are case-insensitive, as in quirks mode.
    pub(super) quirks: bool,
}

/// The index of a selector part.
pub(super) type PartId = u32;
