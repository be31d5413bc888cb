//! The words of a text, as search compares them: the same for what is stored and for what is asked, on every engine.
//!
//! Letters are in lower case and without accents. Scripts that are written without spaces give one word a character,
//! so that a phrase of them finds a part of a sentence.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Words are cut at this many characters: longer ones are codes, and their beginning tells them apart.
pub const LONGEST: usize = 64;

/// The words of a text, at most `most`.
pub fn words(text: &str, most: usize) -> Vec<String> {
    // Most texts are plain, and need none of what other scripts do.
    if text.is_ascii() {
        let runs = text.split(|character: char| !character.is_ascii_alphanumeric());
        let cut = |run: &str| run[..run.len().min(LONGEST)].to_ascii_lowercase();
        return runs.filter(|run| !run.is_empty()).take(most).map(cut).collect();
    }
    let mut found = Vec::new();
    let mut word = String::new();
    let mut length = 0;
    for character in text.nfkd() {
        if is_combining_mark(character) {
            continue;
        }
        if stands_alone(character) {
            finish(&mut word, &mut length, &mut found);
            found.push(character.to_string());
        } else if character.is_alphanumeric() {
            for lower in character.to_lowercase() {
                // One letter, whether it stands at the end of a word or not.
                let lower = if lower == 'ς' { 'σ' } else { lower };
                // Lower case of some letters is a letter with a mark.
                if length < LONGEST && lower.is_alphanumeric() {
                    word.push(lower);
                    length += 1;
                }
            }
        } else {
            finish(&mut word, &mut length, &mut found);
        }
        if found.len() >= most {
            found.truncate(most);
            return found;
        }
    }
    finish(&mut word, &mut length, &mut found);
    found.truncate(most);
    found
}

fn finish(word: &mut String, length: &mut usize, found: &mut Vec<String>) {
    if !word.is_empty() {
        found.push(std::mem::take(word));
        *length = 0;
    }
}

/// Characters of scripts that put no spaces between words.
fn stands_alone(character: char) -> bool {
    matches!(character,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3134f}' | '\u{e00}'..='\u{e7f}' | '\u{e80}'..='\u{eff}' | '\u{1780}'..='\u{17ff}')
        && character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_folded() {
        assert_eq!(words("Crème BRÛLÉE, naïve!", 10), ["creme", "brulee", "naive"]);
        assert_eq!(words("alice+x@example.com", 10), ["alice", "x", "example", "com"]);
        assert_eq!(words("ﬁne №5", 10), ["fine", "no5"]);
        assert_eq!(words("", 10), Vec::<String>::new());
        assert_eq!(words("ΟΔΟΣ", 10), words("οδός", 10));
    }

    #[test]
    fn scripts_without_spaces_give_characters() {
        assert_eq!(words("東京 tower", 10), ["東", "京", "tower"]);
    }

    #[test]
    fn the_number_and_length_are_bounded() {
        assert_eq!(words("a b c d", 2), ["a", "b"]);
        assert_eq!(words("a b c dé", 2), ["a", "b"]);
        assert_eq!(words("a b", 0), Vec::<String>::new());
        assert_eq!(words(&"x".repeat(1000), 5)[0].len(), 64);
    }
}
