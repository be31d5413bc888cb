//! Filter expressions and search queries: what parses is shown in a form that parses to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{
    filter::{Filter, parse_rules},
    search::{query::Query, words::words},
};

fuzz_target!(|text: &str| {
    let _ = parse_rules(text);
    if let Ok(filter) = Filter::parse(text) {
        let again = Filter::parse(&filter.to_string());
        assert_eq!(again.ok(), Some(filter));
    }
    for clause in Query::parse(text).into_iter().flat_map(|query| query.clauses) {
        assert!(!clause.words.is_empty());
        let joined = clause.words.join(" ");
        assert_eq!(words(&joined, 1000), clause.words, "words of words are the same words");
    }
});
