//! The words of a text, as search compares them: the same for what is stored and for what is asked, on every engine.
//!
//! Letters are in lower case and without accents. Scripts that are written without spaces give one word a character,
//! so that a phrase of them finds a part of a sentence.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Words are cut at this many characters: longer ones are codes, and their beginning tells them apart.
pub const MAX_TERM_CHARS: usize = 64;

/// The words of a text, at most `most`.
pub fn words(text: &str, most: usize) -> Vec<String> {
    let mut found = Vec::new();
    each_word(text, |word| {
        let wanted = found.len() < most;
        if wanted {
            found.push(word.to_owned());
        }
        wanted
    });
    found
}

/// Words that questions are made of and that say nothing of what is asked.
const COMMON: &[&str] = &[
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "does", "for", "from", "get", "had", "has", "have", "he", "her", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "me", "much", "my", "no", "not", "of", "on", "or", "our", "s", "she",
    "should", "so", "t", "that", "the", "their", "them", "there", "they", "this", "to", "was", "we", "were",
    "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// The words of a question that tell what is asked: without the common ones of English, unless nothing else is there.
pub fn telling_words(text: &str, most: usize) -> Vec<String> {
    let all = words(text, most);
    let telling: Vec<String> = all.iter().filter(|word| !COMMON.contains(&word.as_str())).cloned().collect();
    if telling.is_empty() { all } else { telling }
}

/// The words of a text with a space between them, at most `most`, and before the first that takes more than what is
/// left of `room`: its bytes and `each`.
pub fn joined(text: &str, most: usize, room: usize, each: usize) -> String {
    let mut all = String::with_capacity(text.len().min(room));
    let (mut left, mut count) = (room, 0);
    each_word(text, |word| {
        let Some(rest) = left.checked_sub(word.len() + each).filter(|_| count < most) else { return false };
        if count > 0 {
            all.push(' ');
        }
        all.push_str(word);
        left = rest;
        count += 1;
        true
    });
    all
}

/// Goes through the words of a text for as long as they are wanted.
fn each_word(text: &str, mut take: impl FnMut(&str) -> bool) {
    let lower = text.to_ascii_lowercase();
    let kind_at = |place: usize| lower.as_bytes().get(place).map(|byte| KINDS[usize::from(*byte)]);
    let mut end = 0;
    loop {
        while kind_at(end) == Some(Kind::Between) {
            end += 1;
        }
        let start = end;
        while kind_at(end) == Some(Kind::Letter) {
            end += 1;
        }
        // Most words of most texts are plain, and need none of what other scripts do.
        let is_plain = kind_at(end) != Some(Kind::Other);
        while !is_plain && kind_at(end).is_some_and(|kind| kind != Kind::Between) {
            end += 1;
        }
        let run = &lower[start..end];
        if run.is_empty() {
            return;
        }
        let goes_on =
            if is_plain { take(&run[..run.len().min(MAX_TERM_CHARS)]) } else { each_folded(run, &mut take) };
        if !goes_on {
            return;
        }
    }
}

/// What a byte is to a text in lower case.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Letter,
    Between,
    /// Of a character beyond ASCII.
    Other,
}

static KINDS: [Kind; 256] = {
    let mut kinds = [Kind::Other; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        kinds[byte as usize] = if byte.is_ascii_alphanumeric() { Kind::Letter } else { Kind::Between };
        byte += 1;
    }
    kinds
};

/// Goes through the words of a run of letters of any script; false when no more are wanted.
fn each_folded(run: &str, take: &mut impl FnMut(&str) -> bool) -> bool {
    let mut word = Word::default();
    let mut rest = run;
    while !rest.is_empty() {
        let plain = rest.bytes().position(|byte| !byte.is_ascii()).unwrap_or(rest.len());
        let (letters, behind) = rest.split_at(plain);
        letters.chars().for_each(|letter| word.push(letter));
        let other = behind.bytes().position(|byte| byte.is_ascii()).unwrap_or(behind.len());
        let (others, behind) = behind.split_at(other);
        // Decomposing does not reach beyond the letters of ASCII around.
        for character in others.nfkd().filter(|character| !is_combining_mark(*character)) {
            let goes_on = if stands_alone(character) {
                word.finish(take) && take(character.encode_utf8(&mut [0; 4]))
            } else if character.is_alphanumeric() {
                // Lower case of some letters is a letter with a mark.
                character
                    .to_lowercase()
                    .filter(|lower| lower.is_alphanumeric())
                    .for_each(|lower| word.push(lower));
                true
            } else {
                word.finish(take)
            };
            if !goes_on {
                return false;
            }
        }
        rest = behind;
    }
    word.finish(take)
}

/// A word that is not complete.
#[derive(Default)]
struct Word {
    text: String,
    length: usize,
}

impl Word {
    fn push(&mut self, letter: char) {
        if self.length < MAX_TERM_CHARS {
            // One letter, whether it stands at the end of a word or not.
            self.text.push(if letter == 'ς' { 'σ' } else { letter });
            self.length += 1;
        }
    }

    /// Hands the word on, if there is one; false when no more are wanted.
    fn finish(&mut self, take: &mut impl FnMut(&str) -> bool) -> bool {
        let wanted = self.text.is_empty() || take(&self.text);
        self.text.clear();
        self.length = 0;
        wanted
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
    use super::{joined, telling_words, words};

    #[test]
    fn questions_are_about_their_telling_words() {
        assert_eq!(telling_words("How much money do I owe?", 9), ["money", "owe"]);
        assert_eq!(telling_words("To be or not to be", 9).len(), 6);
    }

    #[test]
    fn words_are_folded() {
        assert_eq!(words("Crème BRÛLÉE, naïve!", 10), ["creme", "brulee", "naive"]);
        assert_eq!(words("alice+x@example.com", 10), ["alice", "x", "example", "com"]);
        assert_eq!(words("ﬁne №5", 10), ["fine", "no5"]);
        assert_eq!(words("", 10), Vec::<String>::new());
        assert_eq!(words("ΟΔΟΣ", 10), words("οδός", 10));
    }

    #[test]
    fn joined_words_are_the_same_words() {
        let long = "y".repeat(100);
        for text in ["", " , ", "Alice+X@example.com, 1st!", "Crème BRÛLÉE", "東京 tower", "a b c d", &long]
        {
            for (most, room) in [(10, 1000), (2, 1000), (0, 1000), (10, 20), (10, 25), (10, 0)] {
                let mut left: usize = room;
                let fits = |word: &String| {
                    let enough = left.checked_sub(word.len() + 5);
                    left = enough.unwrap_or(0);
                    enough.is_some()
                };
                let wanted: Vec<String> = words(text, most).into_iter().take_while(fits).collect();
                assert_eq!(joined(text, most, room, 5), wanted.join(" "), "{text} {most} {room}");
            }
        }
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
