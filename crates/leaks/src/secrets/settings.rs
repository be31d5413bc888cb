//! Values known by the name before them: `password: …`, `API_KEY=…`, `Authorization: Basic …`.
//!
//! Names are weak evidence: prose, code and documentation use the same words. So the value decides: it must look chosen as
//! a secret, and neither the name nor the value may look like code, a link or a placeholder.

use super::{
    candidate::Candidate,
    checks::{Kinds, bits, decode, head, is_placeholder, is_random},
    names,
};
use crate::links::is_in_link;

/// Letters of one word, on average; values made by chance change sooner.
const MIN_RUN_OF_WORDS: usize = 5;
/// How far around a password the other parts of its connection string may stand.
const CONNECTION_BYTES: usize = 300;

/// Words of sentences about passwords that tell none.
const SENTENCES_ABOUT_PASSWORDS: &[&str] = &[
    "reset",
    "policy",
    "must",
    "require",
    "expire",
    "hint",
    "manager",
    "rules",
    "at least",
    "zurücksetzen",
    "läuft ab",
    "mindestens",
    "réinitialis",
    "restablec",
    "changed on",
    "strength",
];

/// Values that stand for a password in documentation, and words of code.
const NO_PASSWORDS: &str = "password passwort passwd pass secret mysecret mypassword pwd pw none null undefined string 1password user \
    username postgres root guest token test admin motdepasse contraseña env s3cret p4ssword_here protected input \
    n/a";

/// A password in a URL: before `@`, and no stand-in.
pub(super) fn url_password(candidate: &Candidate<'_>) -> bool {
    let (value, lead) = (candidate.value(), candidate.lead());
    let user = lead.trim_start_matches("://").trim_end_matches(':');
    let host = candidate.after().strip_prefix('@').and_then(|host| host.chars().next());
    host.is_some_and(|first| first.is_alphanumeric() || first == '[' || first == '_')
        && value != user
        && !is_stand_in(value)
        && !is_variable(value)
}

/// A password among the parts of a connection string.
pub(super) fn connection_password(candidate: &Candidate<'_>) -> bool {
    const PARTS: &[&str] = &[
        "server=",
        "data source=",
        "host=",
        "uid=",
        "user id=",
        "username=",
        "jdbc:",
        "driver=",
        "database=",
        "initial catalog=",
        "dbname=",
        "user=",
    ];
    let line = |text: &str| text.to_lowercase().replace(" =", "=").replace("= ", "=");
    let before = candidate.before(CONNECTION_BYTES);
    let before = line(before.rsplit('\n').next().unwrap_or_default());
    let after = line(head(candidate.after(), CONNECTION_BYTES).lines().next().unwrap_or_default());
    let near = PARTS.iter().filter(|part| before.contains(*part) || after.contains(*part)).count();
    near >= 2 && !is_stand_in(candidate.value()) && !is_variable(candidate.value())
}

/// A password behind its name.
pub(super) fn password(candidate: &Candidate<'_>) -> bool {
    let (value, lead) = (candidate.value(), candidate.lead());
    // Links to meetings carry one that opens nothing else.
    let is_of_link = lead.starts_with("pwd") && is_in_link(candidate.text, candidate.start);
    // After a comma the next name of a list may stand.
    let is_listed = lead.contains(',');
    !is_of_link
        && is_password(value, !lead.contains(' '))
        && (!is_listed || Kinds::of(value).upper > 0 || !value.chars().all(char::is_alphanumeric))
        && names::names_password(candidate)
}

/// A password behind a sentence about it, which needs more of its own.
pub(super) fn password_in_prose(candidate: &Candidate<'_>) -> bool {
    let kinds = Kinds::of(candidate.value());
    let lead = candidate.lead().to_lowercase();
    let is_other = SENTENCES_ABOUT_PASSWORDS.iter().any(|word| lead.contains(word));
    let is_mixed =
        kinds.digits > 0 && kinds.lower > 0 || kinds.others > 0 && kinds.lower > 0 && kinds.upper > 0;
    is_mixed && !is_other && is_password(candidate.value(), false) && names::names_password(candidate)
}

/// A password on a command line.
pub(super) fn argument(candidate: &Candidate<'_>) -> bool {
    !candidate.value().starts_with('-') && is_password(candidate.value(), true)
}

/// `user:password`, of which the part behind the colon counts.
pub(super) fn user_and_password(candidate: &Candidate<'_>) -> bool {
    is_password(candidate.value(), true)
}

/// A key or token behind its name.
pub(super) fn key(candidate: &Candidate<'_>) -> bool {
    let value = candidate.value();
    let is_link = is_in_link(candidate.text, candidate.start);
    let lead = candidate.lead().to_lowercase();
    let names_key = lead.contains("key") || lead.contains("secret");
    let names_access = names_key || lead.contains("access") || lead.contains("auth");
    names::names_key(candidate)
        && (!is_link || lead.contains("api") || lead.contains("secret") || lead.contains("access"))
        && (names_key || !is_uuid(value))
        && (names_access || !is_in_link(candidate.text, candidate.start))
        && !candidate.after().starts_with(['(', '[', '{'])
        && looks_like_key(value)
}

/// The value of a header that authorises a request.
pub(super) fn authorization(candidate: &Candidate<'_>) -> bool {
    let (value, lead) = (candidate.value(), candidate.lead().to_lowercase());
    if lead.contains("basic") {
        return decode(value).is_some_and(|pair| {
            let parts = pair.split_once(':');
            parts.is_some_and(|(_, password)| password.len() >= 4 && !is_stand_in(password))
        });
    }
    value.len() >= 20 && looks_like_key(value)
}

/// Whether a value looks like a password that was chosen or made.
fn is_password(value: &str, is_setting: bool) -> bool {
    let kinds = Kinds::of(value);
    let letters = kinds.lower + kinds.upper;
    let has_symbol = value.contains(|symbol| "!#$%&*+=?^~@".contains(symbol));
    let is_chosen = kinds.digits > 0 && letters > 0
        || has_symbol && kinds.lower > 0 && kinds.upper > 0 && !is_words(value)
        || kinds.others > 0 && kinds.digits > 0 && value.contains(|symbol| "!#$%*?".contains(symbol))
        || is_setting && letters == 0 && kinds.others == 0
        || kinds.upper > 2 && kinds.lower > 2 && changes_of_case(value) * 5 > value.len() * 2;
    value.len() >= 6
        && is_chosen
        && has_distinct(value, 4)
        && !is_stand_in(value)
        && !is_variable(value)
        && !is_code(value)
        && !is_link_or_address(value)
        && !is_measure(value)
}

fn has_distinct(value: &str, least: usize) -> bool {
    let mut seen = Vec::new();
    value.chars().any(|character| {
        if !seen.contains(&character) {
            seen.push(character);
        }
        seen.len() >= least
    })
}

fn is_stand_in(value: &str) -> bool {
    let lower = value.to_lowercase();
    is_placeholder(value)
        || NO_PASSWORDS.split_ascii_whitespace().any(|known| known == lower)
        || lower.contains("password_here")
        || value.chars().all(|character| !character.is_alphanumeric())
}

/// A name in place of a value: `$PASSWORD`, `%PASSWORD%`, `[password]`, `{password}`, `DB_PASSWORD`.
fn is_variable(value: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
    };
    let is_upper =
        |name: &str| is_name(name) && name.contains('_') && !name.contains(|c: char| c.is_ascii_lowercase());
    let bare = value.trim_start_matches('$');
    bare != value && is_name(bare) && !bare.contains(|c: char| c.is_ascii_lowercase())
        || value.starts_with(['{', '[', '<', '('])
        || value.starts_with('%') && value.ends_with('%')
        || value.starts_with("$2") && value.len() >= 50
        || value.starts_with("{{")
        || is_upper(value) && !value.contains(|c: char| c.is_ascii_digit())
}

/// An expression of a program.
fn is_code(value: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && part.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
    };
    let call = value.find(['(', '[']).is_some_and(|at| value[..at].split('.').all(is_name) && at > 2);
    let words: Vec<&str> = value.split('.').collect();
    let member = words.len() > 1 && words.iter().all(|word| is_name(word)) && !value.contains("..");
    call || member
        || value.contains("::")
        || value.contains("->")
        || value.contains("=>")
        || value.contains("()")
}

fn is_link_or_address(value: &str) -> bool {
    let domain = value.rsplit_once('@').and_then(|(_, domain)| domain.rsplit_once('.'));
    value.contains("://")
        || value.starts_with("www.")
        || value.starts_with('/') && value.matches('/').count() > 1
        || domain.is_some_and(|(_, end)| end.len() > 1 && end.chars().all(char::is_alphabetic))
}

/// A date, a version, an amount or a length.
fn is_measure(value: &str) -> bool {
    let kinds = Kinds::of(value);
    let is_number =
        kinds.lower + kinds.upper == 0 && value.chars().all(|c| c.is_ascii_digit() || ".,:/-+".contains(c));
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || ".,+-".contains(c));
    let is_unit =
        unit.len() < value.len() && ["chars", "characters", "days", "zeichen", "ms", "min"].contains(&unit);
    is_number && kinds.others > 0 || is_unit
}

/// Words joined by hyphens, slashes or the like.
fn is_words(value: &str) -> bool {
    let mut words = value.split(|character: char| !character.is_alphanumeric());
    words.all(|word| word.is_empty() || !word.contains(|c: char| c.is_ascii_digit()) && is_plain_word(word))
}

fn changes_of_case(value: &str) -> usize {
    let cases: Vec<bool> = value.chars().map(char::is_uppercase).collect();
    cases.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

fn looks_like_key(value: &str) -> bool {
    let kinds = Kinds::of(value);
    let letters = kinds.lower + kinds.upper;
    let is_hex = value.chars().all(|character| character.is_ascii_hexdigit() || character == '-');
    let needed = if is_hex || value.len() < 24 { 3.0 } else { 3.4 };
    let pieces = value.split(['_', '-', '.', '/', '+', '=']).filter(|piece| piece.len() > 1);
    let (plain, others): (Vec<&str>, Vec<&str>) = pieces.partition(|piece| is_plain_word(piece));
    let length = |pieces: &[&str]| pieces.iter().map(|piece| piece.len()).sum::<usize>();
    is_random(value)
        && bits(value) >= needed
        && letters > 0
        && (kinds.digits >= 2 || changes_of_case(value) >= 6)
        && length(&plain) <= length(&others)
        && !is_variable(value)
        && !is_code(value)
        && !is_link_or_address(value)
}

/// A piece of a name rather than of a random value: long runs of letters of one case, or of digits.
fn is_plain_word(piece: &str) -> bool {
    let kind = |character: char| (character.is_ascii_digit(), character.is_lowercase());
    let kinds: Vec<(bool, bool)> = piece.chars().map(kind).collect();
    // A capital and what follows it are one run.
    let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1] && pair[0] != (false, false)).count();
    kinds.len() >= MIN_RUN_OF_WORDS * (changes + 1) || kinds.len() < MIN_RUN_OF_WORDS && changes == 0
}

fn is_uuid(value: &str) -> bool {
    let parts: Vec<usize> = value.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12]
}
