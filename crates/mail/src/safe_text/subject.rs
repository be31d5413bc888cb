//! What a selector is compared with: one element, as its tag and its place describe it.
//!
//! A comparison also looks at the parts that were found to match before; a number stands for each of them.

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
    /// Whether letters count in either case, as in a document without a type.
    pub(super) quirks: bool,
}

/// What stands for a part.
pub(super) type PartId = u32;
