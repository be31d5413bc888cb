//! The checks of the fuzz targets, with their seeds and what is near them: the same inputs in every run.
//! `scripts/fuzz` searches on with libFuzzer.

use std::fs;

use crate::simulation::Rng;

#[path = "../fuzz/src/lib.rs"]
mod checks;

/// How many inputs each check is given.
const INPUTS: u64 = 1_500;

/// The longest input; a seed may be longer.
const MAX_LENGTH: usize = 4_096;

/// What is in a folder of seeds, in the order of names.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/../fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{target} has no seeds");
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

/// The words that libFuzzer puts into inputs too.
fn words() -> Vec<Vec<u8>> {
    let text = include_str!("../fuzz/words.dict");
    let quoted = text.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    quoted.map(|word| word.replace("\\x0d", "\r").replace("\\x0a", "\n").into_bytes()).collect()
}

/// Changes an input in one place: a byte, a word of the format, a part that goes, comes again or comes from another.
fn change(input: &mut Vec<u8>, others: &[Vec<u8>], words: &[Vec<u8>], rng: &mut Rng) {
    let at = rng.below(input.len() + 1);
    let end = at + rng.below((input.len() - at).min(64) + 1);
    match rng.below(6) {
        0 => drop(input.splice(at..input.len().min(at + 1), [rng.byte()])),
        1 => input.insert(at, rng.byte()),
        2 => drop(input.drain(at..end)),
        3 => input.extend_from_within(at..end),
        4 => {
            let other = &others[rng.below(others.len())];
            let from = rng.below(other.len() + 1);
            drop(input.splice(at..end, other[from..].iter().copied().take(64)));
        }
        _ => drop(input.splice(at..at, words[rng.below(words.len())].iter().copied())),
    }
    input.truncate(MAX_LENGTH);
}

/// Gives a check the seeds of its target, then inputs that grew out of them by a few changes.
fn try_near_seeds(target: &str, check: impl Fn(&[u8], &mut Rng)) {
    let (seeds, words) = (seeds(target), words());
    for seed in &seeds {
        check(seed, &mut Rng::new(0));
    }
    for number in 0..INPUTS {
        let mut rng = Rng::new(number);
        let mut input = seeds[rng.below(seeds.len())].clone();
        for _ in 0..=rng.below(12) {
            change(&mut input, &seeds, &words, &mut rng);
        }
        check(&input, &mut rng);
    }
}

#[test]
fn addresses() {
    try_near_seeds("address", |input, _| checks::check_address(&String::from_utf8_lossy(input)));
}

#[test]
fn cursors() {
    try_near_seeds("cursor", |input, _| checks::check_cursor(&String::from_utf8_lossy(input)));
}

#[test]
fn filters_and_queries() {
    try_near_seeds("filter", |input, _| checks::check_filter(&String::from_utf8_lossy(input)));
}

#[test]
fn messages() {
    try_near_seeds("message", |input, _| checks::check_message(input));
}

#[test]
fn proofs_of_payment() {
    try_near_seeds("proof", |input, _| checks::check_proof(input));
}

#[test]
fn safe_texts() {
    try_near_seeds("safe_text", |input, _| checks::check_safe_text(&String::from_utf8_lossy(input)));
}

#[test]
fn smtp_sessions() {
    try_near_seeds("smtp", |input, rng| {
        let sizes: Vec<u8> = (0..=rng.below(8)).map(|_| rng.byte()).collect();
        checks::check_smtp(rng.once_in(2), &sizes, input);
    });
}
