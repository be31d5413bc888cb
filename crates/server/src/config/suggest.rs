//! The known name that a mistyped one most probably means.

use strsim::levenshtein;

/// The nearest known name, if one is near enough.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = |text: &str| text.rsplit('.').next().unwrap_or_default().to_owned();
    let scored = known.filter_map(|candidate| {
        let whole = levenshtein(name, candidate);
        // The section alone may be missing or wrong.
        let end = levenshtein(&last(name), &last(candidate));
        let by_whole = (whole <= tolerance(name)).then_some(whole);
        let by_end = (end <= tolerance(&last(name))).then_some(end + 1);
        let score = by_whole.into_iter().chain(by_end).min()?;
        Some((score, whole, candidate))
    });
    scored.min().map(|(_, _, candidate)| candidate)
}

/// Beyond a third of the characters it would be a guess.
fn tolerance(name: &str) -> usize {
    name.chars().count() / 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_nonsense_is_not() {
        let known = ["http.listen", "http.public_url", "data_dir", "plans.free.rpm", "plans.developer.rpm"];
        let nearest = |name| nearest(name, known.into_iter());
        assert_eq!(nearest("http.lisen"), Some("http.listen"));
        assert_eq!(nearest("htp.public_ur"), Some("http.public_url"));
        assert_eq!(nearest("listen"), Some("http.listen"));
        assert_eq!(nearest("datadir"), Some("data_dir"));
        assert_eq!(nearest("plans.fre.rpm"), Some("plans.free.rpm"));
        assert_eq!(nearest("colour"), None);
    }
}
