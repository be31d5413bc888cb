//! The embedded model against the 32-bit reference that `scripts/make-embedding-asset` computes.

use crate::{DIMENSION, MAX_TOKENS, count_tokens, embed, vocabulary};

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
