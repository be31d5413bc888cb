//! Lists of values in a statement, padded to one length, so that one text is prepared for all.

use super::value::Param;

/// The length of every list in a statement; shorter ones are padded.
pub(crate) const LIST_LENGTH: usize = 32;

/// The placeholders of a list, starting at the given number.
pub(crate) fn list_placeholders(first: usize) -> String {
    long_list_placeholders(first, LIST_LENGTH)
}

/// The placeholders of a list that may be longer, starting at the given number: its length is rounded up, so that few
/// texts are prepared.
pub(crate) fn long_list_placeholders(first: usize, length: usize) -> String {
    let placeholders: Vec<String> =
        (first..first + padded(length)).map(|number| format!("${number}")).collect();
    placeholders.join(", ")
}

/// The parameters of such a list.
pub(crate) fn long_list_params<'a, T>(values: &'a [T], padding: &'a T) -> impl Iterator<Item = Param<'a>>
where
    &'a T: Into<Param<'a>>,
{
    values.iter().chain(std::iter::repeat(padding)).take(padded(values.len())).map(Into::into)
}

fn padded(length: usize) -> usize {
    length.max(1).next_multiple_of(LIST_LENGTH)
}

/// The parameters of a list: these values, padded with one that matches nothing.
pub(crate) fn list_params<'a, T: Into<Param<'a>> + Clone>(
    values: impl Iterator<Item = T>,
    padding: T,
) -> impl Iterator<Item = Param<'a>> {
    values.chain(std::iter::repeat(padding)).take(LIST_LENGTH).map(Into::into)
}
