//! Measures recall and precision on the messages in `cases`, of which one half is never looked at while patterns change.
//!
//! `cargo test -p leaks --test measure -- --nocapture` prints the figures, and what is wrong in the half for tuning.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "templates/mod.rs"]
mod templates;

use std::{collections::BTreeMap, fs, path::Path};

use leaks::{Kind, Search, find};
use templates::{Chance, expand};

struct Case {
    label: String,
    /// The kind of the file it stands in.
    kind: Kind,
    /// Names of findings; a slash joins those of which any will do.
    expected: Vec<String>,
    text: String,
}

impl Case {
    /// Half of the cases, by their label: those that patterns may be changed for.
    fn is_for_tuning(&self) -> bool {
        Chance::new(&self.label).next().is_multiple_of(2)
    }
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let kind = if file.file_name().unwrap().to_string_lossy().starts_with("personal") {
            Kind::Personal
        } else {
            Kind::Secret
        };
        let source = fs::read_to_string(&file).unwrap();
        for block in source.split("\n== ").skip(1) {
            let (head, text) = block.split_once('\n').unwrap();
            let (label, expected) = head.split_once('|').unwrap();
            let expected =
                expected.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
            let label = label.trim().to_owned();
            cases.push(Case { text: expand(text, &label), kind, expected: expected.collect(), label });
        }
    }
    cases
}

#[derive(Default)]
struct Score {
    right: u32,
    missed: u32,
    wrong: u32,
}

impl Score {
    fn recall(&self) -> f64 {
        f64::from(self.right) / f64::from(self.right + self.missed)
    }

    fn precision(&self) -> f64 {
        f64::from(self.right) / f64::from(self.right + self.wrong)
    }
}

/// Adds a case to the scores of both kinds, and says what is wrong with it.
fn score(case: &Case, scores: &mut BTreeMap<Kind, Score>) -> Option<String> {
    let found = find(&case.text, Search { secrets: true, personal: true });
    let mut rest: Vec<(Kind, &str)> = found.iter().map(|finding| (finding.kind, finding.name)).collect();
    let mut missed = Vec::new();
    for expected in &case.expected {
        let index = rest.iter().position(|(_, name)| expected.split('/').any(|one| one == *name));
        let score = scores.entry(case.kind).or_default();
        if let Some(index) = index {
            rest.remove(index);
            score.right += 1;
        } else {
            score.missed += 1;
            missed.push(expected);
        }
    }
    for (kind, _) in &rest {
        scores.entry(*kind).or_default().wrong += 1;
    }
    let is_right = missed.is_empty() && rest.is_empty();
    (!is_right).then(|| format!("{}: missed {missed:?}, wrong {rest:?}\n{}\n", case.label, case.text))
}

fn aims(kind: Kind) -> (f64, f64) {
    match kind {
        Kind::Secret => (0.95, 0.98),
        Kind::Personal => (0.9, 0.95),
    }
}

#[test]
fn recall_and_precision_reach_their_aims() {
    let cases = cases();
    let count =
        |kind| cases.iter().filter(|case| case.kind == kind).map(|case| case.expected.len()).sum::<usize>();
    let negatives = cases.iter().filter(|case| case.expected.is_empty()).count();
    println!("{} secrets, {} personal, {negatives} without", count(Kind::Secret), count(Kind::Personal));
    assert!(count(Kind::Secret) >= 150 && count(Kind::Personal) >= 120 && negatives >= 300);
    let mut low = Vec::new();
    for (name, chosen) in [("tune", Some(true)), ("held out", Some(false)), ("all", None)] {
        let mut scores = BTreeMap::new();
        for case in cases.iter().filter(|case| chosen.is_none_or(|tuning| case.is_for_tuning() == tuning)) {
            let wrong = score(case, &mut scores);
            if let Some(wrong) = wrong.filter(|_| chosen == Some(true)) {
                println!("{wrong}");
            }
        }
        for (kind, score) in scores {
            let (recall, precision) = (score.recall(), score.precision());
            println!(
                "{name}, {kind:?}: recall {recall:.3}, precision {precision:.3} ({} right, {} missed, {} wrong)",
                score.right, score.missed, score.wrong
            );
            let (least_recall, least_precision) = aims(kind);
            if recall < least_recall || precision < least_precision {
                low.push(format!("{name}, {kind:?}"));
            }
        }
    }
    assert!(low.is_empty(), "below the aims: {low:?}");
}

#[test]
fn labels_are_unique() {
    let mut labels: Vec<String> = cases().into_iter().map(|case| case.label).collect();
    labels.sort();
    for pair in labels.windows(2) {
        assert_ne!(pair[0], pair[1]);
    }
}
