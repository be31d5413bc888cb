use super::{SHAPES, TABLE, find};
use crate::templates::expand;

#[test]
fn every_row_finds_its_examples_and_nothing_else() {
    assert!(TABLE.is_some(), "a pattern or literal is wrong");
    let mut wrong = Vec::new();
    for row in SHAPES.iter().flat_map(|part| part.iter()) {
        assert!(!row.matches.is_empty(), "{} has no example", row.name);
        for (index, example) in row.matches.iter().enumerate() {
            for seed in 0..20 {
                let text = expand(example, &format!("{}/{index}/{seed}", row.name));
                let names: Vec<_> = find(&text, 10).into_iter().map(|secret| secret.name).collect();
                if !names.contains(&row.name) && !is_lucky(&text) {
                    wrong.push(format!("{}: {names:?} in {text:?}", row.name));
                }
            }
        }
        for (index, example) in row.misses.iter().enumerate() {
            let text = expand(example, &format!("{}/{index}", row.name));
            let found = find(&text, 10);
            if found.iter().any(|secret| secret.name == row.name) {
                wrong.push(format!("{} must not be found in {text:?}", row.name));
            }
        }
    }
    wrong.dedup_by_key(|line| line.split(':').next().unwrap_or_default().to_owned());
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}

/// A value without any digit may be taken for words.
fn is_lucky(text: &str) -> bool {
    !text.bytes().any(|byte| byte.is_ascii_digit())
}

/// What a mask shows of the beginning of a value is the same for all values of the shape, so it says nothing.
#[test]
fn masks_begin_alike_for_all_values() {
    for row in SHAPES.iter().flat_map(|part| part.iter()) {
        for example in row.matches {
            let beginnings = |seed: &str| -> Vec<String> {
                let text = expand(example, seed);
                let found = find(&text, 10).into_iter().filter(|secret| secret.name == row.name);
                let masked = found.map(|secret| secret.mask.apply(&text[secret.range]));
                masked.map(|masked| masked.split('…').next().unwrap_or_default().to_owned()).collect()
            };
            let (one, other) = (beginnings("one"), beginnings("other"));
            for (one, other) in one.iter().zip(&other) {
                assert_eq!(one, other, "{}: {example}", row.name);
            }
        }
    }
}
