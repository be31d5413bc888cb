//! Names of settings: whether one is that of a secret, or of something about it such as its length or its hash.

use super::candidate::Candidate;

/// How much of what stands before a name is looked at.
const MAX_NAME_BYTES: usize = 40;

/// Words behind `password`, `token` or `secret` that make it the name of something else.
const ENDINGS: &str = "hash hashed hashes length policy expiry expires expiration expired attempt attempts timeout field \
    fields hint prompt strength required label manager encoder encryption algorithm method fingerprint digest checksum arn \
    path file files type count limit usage id ids uri url endpoint name names version sync bucket header location format \
    prefix regex pattern placeholder ref reference mode confirmation less lexer provider store rotation age authentication \
    created updated changed";

/// Words before a name of any kind that do the same.
const BEGINNINGS: &str = "forgot forgotten invalid wrong incorrect min max show has is require requires allow unexpected \
    missing";

/// Words before the name of a key or token: those are for everybody, or for one page or request.
const BEGINNINGS_OF_KEYS: &str = "csrf xsrf page next public publishable site cancel cancellation idempotency continuation \
    unsubscribe tracking cursor pagination sync push contract mint parking invite reset confirm confirmation verification";

/// Whether the whole name that the shape begins in is that of a password.
pub(super) fn names_password(candidate: &Candidate<'_>) -> bool {
    !words_before(candidate, false).iter().any(|word| has(BEGINNINGS, word)) && !ends_otherwise(candidate)
}

/// Whether it is that of a key or token.
pub(super) fn names_key(candidate: &Candidate<'_>) -> bool {
    let before = words_before(candidate, true);
    !before.iter().any(|word| has(BEGINNINGS, word) || has(BEGINNINGS_OF_KEYS, word))
        && !ends_otherwise(candidate)
}

fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

fn ends_otherwise(candidate: &Candidate<'_>) -> bool {
    let lead = candidate.lead();
    let end = lead.find([' ', '=', ':', '"', '\'']).unwrap_or(lead.len());
    words(&lead[..end]).iter().any(|word| has(ENDINGS, word))
}

/// The words of the name before its keyword, and for keys the word before the name too.
fn words_before(candidate: &Candidate<'_>, with_sentence: bool) -> Vec<String> {
    let before = candidate.before(MAX_NAME_BYTES);
    let line = before.rsplit('\n').next().unwrap_or_default();
    let is_name = |character: char| character.is_alphanumeric() || character == '_' || character == '-';
    let rest = line.trim_end_matches(is_name);
    let mut found = words(&line[rest.len()..]);
    if with_sentence {
        let earlier = rest.trim_end().trim_end_matches(is_name);
        found.extend(words(&rest[earlier.len()..]));
    }
    found
}

/// The words that a name is made of, in lower case: parts between signs, and at capitals.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        let is_new = !character.is_alphanumeric() || was_lower && character.is_uppercase();
        if is_new {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character.is_alphanumeric()) {
            word.extend(character.to_lowercase());
        }
        was_lower = character.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}
