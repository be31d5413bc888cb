//! Lists of values inside a statement, always as long as the others, so that one text is prepared for all.

use super::value::Param;

/// What one statement lists at most; shorter lists are filled up, so that there is one text to prepare.
pub(crate) const LIST: usize = 32;

/// The places of a list, beginning with the given one.
pub(crate) fn list_places(first: usize) -> String {
    let places: Vec<String> = (first..first + LIST).map(|place| format!("${place}")).collect();
    places.join(", ")
}

/// What goes into the places of a list: these, and then what is nowhere to be found.
pub(crate) fn listed<'a, T: Into<Param<'a>> + Clone>(
    some: impl Iterator<Item = T>,
    nothing: T,
) -> impl Iterator<Item = Param<'a>> {
    some.chain(std::iter::repeat(nothing)).take(LIST).map(Into::into)
}
