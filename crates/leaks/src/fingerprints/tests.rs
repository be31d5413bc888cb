use std::{collections::HashSet, sync::LazyLock};

use proptest::prelude::*;

use super::*;

fn fingerprinter() -> &'static Fingerprinter {
    static FINGERPRINTER: LazyLock<Fingerprinter> = LazyLock::new(|| Fingerprinter::new(&[7; 32]));
    &FINGERPRINTER
}

fn numbered(words: impl Iterator<Item = usize>) -> String {
    words.map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ") + " "
}

#[test]
fn short_and_empty_texts_have_none() {
    let fingerprinter = fingerprinter();
    assert!(fingerprinter.of_received("").is_empty());
    assert!(fingerprinter.of_received("only seven words are in this text").is_empty());
    assert_eq!(fingerprinter.of_received("exactly eight words are in this short text").len(), 1);
    assert!(fingerprinter.of_received(&"yes no ".repeat(40)).is_empty());
}

#[test]
fn a_text_is_remembered_by_a_bounded_number() {
    let fingerprinter = fingerprinter();
    for words in [100, 200, 300, 1000, 5000, 50_000] {
        let count = fingerprinter.of_received(&numbered(0..words)).len();
        assert!(count <= MAX_FINGERPRINTS && count > 20, "{words} words: {count}");
        assert!(fingerprinter.of_outgoing(&numbered(0..words)).len() <= MAX_LOOKUPS);
    }
}

#[test]
fn looks_do_not_matter() {
    let fingerprinter = fingerprinter();
    let received =
        "We can offer 12,000 euros for the flat, but the landlord mustn't hear about the second bidder yet.";
    let outgoing = "> we can offer\n> 12,000 EUROS for the flat -- but the LANDLORD mustn’t\n>\n> hear about the second bidder yet";
    let known: HashSet<i64> = fingerprinter.of_received(received).into_iter().collect();
    let ranges: Vec<_> =
        fingerprinter.of_outgoing(outgoing).into_iter().filter(|(one, _)| known.contains(one)).collect();
    assert!(!ranges.is_empty());
    let ranges: Vec<_> = ranges.into_iter().map(|(_, range)| range).collect();
    let runs = runs(outgoing, &ranges);
    assert_eq!(runs.len(), 1);
    assert!(runs[0].words >= MIN_RUN_WORDS);
}

#[test]
fn scripts_without_spaces_count_by_characters() {
    let fingerprinter = fingerprinter();
    let known = fingerprinter
        .of_received("来月の新製品の発表は予定より二週間遅れる見込みですので社外には伝えないでください。");
    let outgoing = fingerprinter
        .of_outgoing("田中さんの話:「発表は予定より二週間遅れる見込みですので社外には伝えないで」とのこと");
    assert!(outgoing.iter().any(|(fingerprint, _)| known.contains(fingerprint)));
}

#[test]
fn greetings_and_footers_are_left_out() {
    let fingerprinter = fingerprinter();
    assert!(
        fingerprinter
            .of_received("I hope this email finds you well and that you had a great weekend!")
            .is_empty()
    );
    let footer =
        "This email and any attachments are confidential and intended solely for the use of the individual.";
    assert!(fingerprinter.of_outgoing(footer).is_empty());
}

#[test]
fn keys_and_purposes_are_apart() {
    let (one, other) = (fingerprinter(), Fingerprinter::new(&[8; 32]));
    assert_ne!(one.of_address("a@b.example"), other.of_address("a@b.example"));
    assert_eq!(one.of_address("A@B.Example "), one.of_address("a@b.example"));
    assert_ne!(one.of_file(&[1; 32]), other.of_file(&[1; 32]));
    let text = numbered(0..40);
    assert!(one.of_received(&text).iter().all(|fingerprint| !other.of_received(&text).contains(fingerprint)));
    assert_ne!(one.of_address(std::str::from_utf8(&[65; 32]).unwrap()), one.of_file(&[65; 32]));
}

#[test]
fn runs_join_what_is_near() {
    let text = numbered(0..60);
    let outgoing = fingerprinter().of_outgoing(&text);
    let range = |index: usize| outgoing[index].1.clone();
    let joined = runs(&text, &[range(12), range(0)]);
    assert_eq!(joined.len(), 1);
    assert_eq!((joined[0].words, joined[0].matches), (20, 2));
    assert_eq!(runs(&text, &[range(0), range(1), range(40), range(41)]).len(), 2);
    let short = 0..2;
    assert!(runs(&text, std::slice::from_ref(&short)).is_empty());
    let far = 0..usize::MAX;
    assert!(runs(&text, std::slice::from_ref(&far)).is_empty());
}

/// How many words of a quoted run are recognised as one.
fn recognised_words(words: usize, at: usize, length: usize, around: usize, seed: usize) -> usize {
    let fingerprinter = fingerprinter();
    let (start, first) = (at % (words - length + 1), seed * 10_000);
    let received = numbered((0..words).map(|word| first + word));
    let quoted = numbered((start..start + length).map(|word| first + word));
    let outgoing = format!("{}{quoted}{}", numbered(0..around), numbered(around..2 * around));
    let known: HashSet<i64> = fingerprinter.of_received(&received).into_iter().collect();
    assert!(known.len() <= MAX_FINGERPRINTS);
    let lookups = fingerprinter.of_outgoing(&outgoing).into_iter();
    let ranges: Vec<_> = lookups.filter(|(one, _)| known.contains(one)).map(|(_, range)| range).collect();
    runs(&outgoing, &ranges).iter().map(|run| run.words).max().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The guarantee of the module's head, for texts that all shingles are kept of.
    #[test]
    fn a_run_of_a_short_text_is_recognised(
        words in MIN_RUN_WORDS..=MAX_FINGERPRINTS,
        at in 0..1000_usize,
        length in MIN_RUN_WORDS..40_usize,
        around in 0..300_usize,
        seed in 1..1_000_000_usize,
    ) {
        let length = length.min(words);
        prop_assert_eq!(recognised_words(words, at, length, around, seed), length);
    }

    /// And of longer ones: of the run all but what a window may leave out at its ends.
    #[test]
    fn a_run_of_a_long_text_is_recognised(
        words in 65..400_usize,
        at in 0..1000_usize,
        length in 10..80_usize,
        around in 0..300_usize,
        seed in 1..1_000_000_usize,
    ) {
        let length = length.min(words);
        // With hashes like any others a window stays below this.
        let window = words / 24 + 3;
        let least = if length < SHINGLE_WORDS + 2 * window - 1 { 0 } else { length - 2 * (window - 1) };
        prop_assert!(recognised_words(words, at, length, around, seed) >= least);
    }

    #[test]
    fn any_text_is_taken(text in "\\PC{0,400}") {
        let fingerprinter = fingerprinter();
        prop_assert!(fingerprinter.of_received(&text).iter().all(|fingerprint| *fingerprint >= 0));
        let ranges: Vec<_> = fingerprinter.of_outgoing(&text).into_iter().map(|(_, range)| range).collect();
        runs(&text, &ranges);
        for range in addresses(&text) {
            prop_assert!(text[range].contains('@'));
        }
    }
}
