//! The table of secret shapes: every row says how a secret looks, what proves it, and what must and must not match.
//!
//! A row is tried where one of its literals stands, in whatever case; its patterns decide about the case. They match
//! bytes, from the beginning of the shape, as far as they can. Examples are templates, which tests fill in.

mod ai;
mod chat;
mod clouds;
mod code;
mod general;
mod keys;
mod money;
mod services;

use super::shape::Shape;

/// All rows. Of two that match the same value the first counts, so the loose ones stand last.
pub(crate) const SHAPES: &[&[Shape]] = &[
    keys::SHAPES,
    clouds::SHAPES,
    code::SHAPES,
    ai::SHAPES,
    chat::SHAPES,
    money::SHAPES,
    services::SHAPES,
    general::SHAPES,
];
