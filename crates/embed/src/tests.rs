//! The embedded model against the 32-bit reference that `scripts/make-embedding-asset` computes.

use crate::{DIMENSION, MAX_BATCH_TOKENS, MAX_TOKENS, count_tokens, embed, embed_all, vocabulary};

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(x, y)| x * y).sum()
}

#[test]
fn vectors_are_those_of_the_reference() {
    let golden: serde_json::Value = serde_json::from_str(include_str!("../assets/golden.json")).unwrap();
    for entry in golden.as_array().unwrap() {
        let text = entry["text"].as_str().unwrap();
        let tokens: Vec<u16> = serde_json::from_value(entry["tokens"].clone()).unwrap();
        assert_eq!(vocabulary().encode(text, MAX_TOKENS), tokens, "{text}");
        let expected: Vec<f32> = serde_json::from_value(entry["vector"].clone()).unwrap();
        let found = embed(text);
        assert_eq!(found.len(), DIMENSION);
        assert!((cosine(&found, &found) - 1.0).abs() < 1e-5, "{text}");
        assert!(cosine(&found, &expected) >= 0.999, "{text}: {}", cosine(&found, &expected));
    }
}

#[test]
fn texts_have_the_same_vectors_together_as_alone() {
    let lengths = [1, 150, 3, 40, 300, 2, 17, 90, 64, 200, 1, 5, 128, 33, 16, 31];
    let words: Vec<&str> =
        "the invoice of last month was paid late because no bank was open".split(' ').collect();
    let text = |length: &usize| words.iter().cycle().skip(*length).take(*length).copied().collect::<Vec<_>>();
    let mut texts: Vec<String> = lengths.iter().map(|length| text(length).join(" ")).collect();
    texts.push(String::new());
    let tokens: usize = texts.iter().map(|text| vocabulary().encode(text, MAX_TOKENS).len()).sum();
    assert!(tokens > 2 * MAX_BATCH_TOKENS, "{tokens} tokens are too few for several batches");
    let together = embed_all(&texts);
    assert_eq!(together.len(), texts.len());
    for (text, vector) in texts.iter().zip(&together) {
        let differences = vector.iter().zip(embed(text)).map(|(one, other)| (one - other).abs());
        assert!(differences.fold(0.0, f32::max) < 1e-5, "{text}");
    }
    assert_eq!(embed_all(&[""; 0]), Vec::<Vec<f32>>::new());
}

#[test]
fn meaning_is_closer_than_words() {
    let asked = embed("How can I get my money back?");
    let answer = embed("Refunds are paid within five working days.");
    let other = embed("The weather in Lisbon is sunny in June.");
    assert!(cosine(&asked, &answer) > cosine(&asked, &other) + 0.1);
}

#[test]
fn odd_texts_have_vectors() {
    for text in ["", " ", "\u{0}\u{200b}", &"y".repeat(1_000_000), &"é ".repeat(100_000), "💥🎉"] {
        let vector = embed(text);
        assert!(vector.iter().all(|number| number.is_finite()));
    }
    assert_eq!(count_tokens("", 100), 0);
    assert_eq!(count_tokens("How do I reset my password?", 100), 7);
    assert_eq!(count_tokens(&"word ".repeat(1000), 50), 50);
}
