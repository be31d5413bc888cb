//! An error with everything that led to it, as one line for the log.

use std::error::Error;

/// How deep a chain of causes is followed.
const MAX_DEPTH: usize = 16;

/// The error and its causes as `a: b: c`, each once: many errors repeat their cause in their own text.
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    for _ in 0..MAX_DEPTH {
        let Some(error) = cause else { break };
        let said = error.to_string();
        if !without_stop(&text).ends_with(without_stop(&said)) {
            text.truncate(without_stop(&text).len());
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

/// A sentence without its full stop.
fn without_stop(text: &str) -> &str {
    text.strip_suffix('.').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Link {
        text: &'static str,
        source: Option<Box<Link>>,
    }

    fn chain(texts: &[&'static str]) -> Link {
        let (first, rest) = texts.split_first().unwrap();
        Link { text: first, source: (!rest.is_empty()).then(|| Box::new(chain(rest))) }
    }

    #[test]
    fn every_cause_is_shown_once() {
        for (texts, shown) in [
            (vec!["a"], "a"),
            (vec!["a", "b", "c"], "a: b: c"),
            (vec!["The storage is not available.", "disk full"], "The storage is not available: disk full"),
            // Those that repeat their causes, and those that only pass them on.
            (vec!["a: b: c", "b: c", "c"], "a: b: c"),
            (vec!["a: b.", "b"], "a: b."),
            (vec!["a", "a", "b"], "a: b"),
            (vec!["a: b", "b", "c"], "a: b: c"),
        ] {
            assert_eq!(causes(&chain(&texts)), shown);
        }
    }

    #[test]
    fn an_endless_chain_ends() {
        assert!(causes(&chain(&["a", "b"].repeat(50))).len() < 100);
    }
}
