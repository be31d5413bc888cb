//! The known name that a mistyped one most probably stands for.

/// The nearest of the known names, if one is near enough to be what was meant.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let best = known.map(|candidate| (score(name, candidate), candidate)).min()?;
    // Beyond a third of the name it would be a guess.
    let allowed = name.chars().count().div_ceil(3).max(2);
    (best.0 <= allowed).then_some(best.1)
}

/// The distance of the whole names, or that of their last parts when the section alone is missing or wrong.
fn score(name: &str, candidate: &str) -> usize {
    let last = |text: &str| text.rsplit('.').next().unwrap_or_default().to_owned();
    distance(name, candidate).min(distance(&last(name), &last(candidate)) + 1)
}

/// How many letters must be inserted, deleted or replaced to turn one text into the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (index, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(row[index] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_text_book() {
        for (from, to, expected) in [
            ("", "", 0),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("", "abc", 3),
            ("listen", "listen", 0),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

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
