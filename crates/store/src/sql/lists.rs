//! Lists of values in a statement, padded to one length, so that one text is prepared for all.

use super::value::Param;

/// The length of every list in a statement; shorter ones are padded.
pub(crate) const LIST_LENGTH: usize = 32;

/// The placeholders of a list, starting at the given number.
pub(crate) fn list_placeholders(first: usize) -> String {
    let placeholders: Vec<String> = (first..first + LIST_LENGTH).map(|number| format!("${number}")).collect();
    placeholders.join(", ")
}

/// The parameters of a list: these values, padded with one that matches nothing.
pub(crate) fn list_params<'a, T: Into<Param<'a>> + Clone>(
    values: impl Iterator<Item = T>,
    padding: T,
) -> impl Iterator<Item = Param<'a>> {
    values.chain(std::iter::repeat(padding)).take(LIST_LENGTH).map(Into::into)
}
