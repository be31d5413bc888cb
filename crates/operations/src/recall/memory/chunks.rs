//! Cuts a text into chunks that fit the model: whole paragraphs and sentences where possible, each overlapping the
//! one before, so that nothing loses its context.

use crate::core::ports::Embedder;

/// Tokens of a chunk, if the model takes that many.
const MAX_CHUNK_TOKENS: usize = 200;
/// Maximum tokens that overlap with the chunk before.
const MAX_OVERLAP_TOKENS: usize = 40;

/// A sentence, or a part of one that is too long.
struct Unit<'a> {
    text: &'a str,
    tokens: usize,
    begins_paragraph: bool,
}

/// The chunks of a text, at most that many.
pub(crate) fn cut(embedder: &dyn Embedder, text: &str, limit: usize) -> Vec<String> {
    let max_tokens = MAX_CHUNK_TOKENS.min(embedder.max_tokens());
    let mut chunks = Vec::new();
    let mut current: Vec<Unit<'_>> = Vec::new();
    let mut used = 0;
    for unit in units(embedder, text, max_tokens) {
        if used + unit.tokens > max_tokens && !current.is_empty() {
            chunks.push(join(&current));
            if chunks.len() >= limit {
                return chunks;
            }
            current = overlap(current, MAX_OVERLAP_TOKENS.min(max_tokens.saturating_sub(unit.tokens)));
            used = current.iter().map(|unit| unit.tokens).sum();
        }
        used += unit.tokens;
        current.push(unit);
    }
    if !current.is_empty() {
        chunks.push(join(&current));
    }
    chunks
}

/// The last units that together fit into the limit.
fn overlap(mut units: Vec<Unit<'_>>, max_tokens: usize) -> Vec<Unit<'_>> {
    let mut left = max_tokens;
    let kept = units
        .iter()
        .rev()
        .take_while(|unit| {
            let fits = unit.tokens <= left;
            left = left.saturating_sub(unit.tokens);
            fits
        })
        .count();
    units.split_off(units.len() - kept)
}

fn join(units: &[Unit<'_>]) -> String {
    let mut text = String::new();
    for unit in units {
        if !text.is_empty() {
            text.push(if unit.begins_paragraph { '\n' } else { ' ' });
        }
        text.push_str(unit.text);
    }
    text
}

fn units<'a>(embedder: &'a dyn Embedder, text: &'a str, max_tokens: usize) -> impl Iterator<Item = Unit<'a>> {
    text.split('\n').flat_map(move |line| {
        let mut begins_paragraph = true;
        sentences(line).flat_map(move |sentence| parts(embedder, sentence, max_tokens)).map(
            move |(text, tokens)| Unit {
                text,
                tokens,
                begins_paragraph: std::mem::replace(&mut begins_paragraph, false),
            },
        )
    })
}

/// The sentences of a line: each ends after punctuation that is followed by a space.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends_at = |(at, mark): (usize, char)| {
            let end = at + mark.len_utf8();
            let is_end = match mark {
                '.' | '!' | '?' => rest[end..].starts_with(char::is_whitespace),
                '。' | '！' | '？' => true,
                _ => false,
            };
            is_end.then_some(end)
        };
        let end = rest.char_indices().find_map(ends_at).unwrap_or(rest.len());
        let (sentence, behind) = rest.split_at(end);
        rest = behind.trim_start();
        Some(sentence)
    })
}

/// A sentence, or the parts of one with too many tokens: halved at a space until they fit.
fn parts<'a>(embedder: &dyn Embedder, sentence: &'a str, max_tokens: usize) -> Vec<(&'a str, usize)> {
    let mut open = vec![sentence];
    let mut done = Vec::new();
    while let Some(part) = open.pop() {
        // A token has at least one character, so a far too long text need not be counted.
        let tokens = if part.len() > max_tokens * 64 {
            max_tokens + 1
        } else {
            embedder.count_tokens(part, max_tokens + 1)
        };
        let Some(middle) = (tokens > max_tokens).then(|| middle(part)).flatten() else {
            if tokens > 0 {
                done.push((part, tokens.min(max_tokens)));
            }
            continue;
        };
        let (one, other) = part.split_at(middle);
        open.push(other.trim_start());
        open.push(one.trim_end());
    }
    done
}

/// A position near the middle of a text to cut it at, at a space if there is one near.
fn middle(text: &str) -> Option<usize> {
    let half = (text.len() / 2..text.len()).find(|at| text.is_char_boundary(*at))?;
    let reach = text.len() / 4;
    let behind = text[half..].find(char::is_whitespace).filter(|at| *at <= reach).map(|at| half + at);
    Some(behind.unwrap_or(half)).filter(|at| *at > 0 && *at < text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::memory::LocalEmbedder;

    #[test]
    fn short_texts_stay_whole() {
        let embedder = LocalEmbedder::default();
        assert_eq!(cut(&embedder, "One. Two!\nThree?", 10), ["One. Two!\nThree?"]);
        assert_eq!(cut(&embedder, " \n\n ", 10), Vec::<String>::new());
    }

    #[test]
    fn long_texts_are_cut_between_sentences_and_overlap() {
        let embedder = LocalEmbedder::default();
        let sentences: Vec<String> =
            (0..200).map(|number| format!("Sentence number {number} says little. ")).collect();
        let text = sentences.concat();
        let chunks = cut(&embedder, &text, 100);
        assert!(chunks.len() > 5, "{}", chunks.len());
        for piece in &chunks {
            assert!(embedder.count_tokens(piece, 1000) <= MAX_CHUNK_TOKENS);
            assert!(piece.starts_with("Sentence") && piece.ends_with("little."), "{piece}");
        }
        for number in 0..200 {
            assert!(chunks.iter().any(|piece| piece.contains(&format!("number {number} "))), "{number}");
        }
        for pair in chunks.windows(2) {
            let first = pair[1].split(". ").next().unwrap();
            assert!(pair[0].contains(first), "the end of the one begins the other");
        }
        assert_eq!(cut(&embedder, &text, 3).len(), 3);
    }

    #[test]
    fn nothing_breaks_on_odd_texts() {
        let embedder = LocalEmbedder::default();
        for text in ["x".repeat(300_000), "é".repeat(100_000), "東京。".repeat(5_000), ". ".repeat(10_000)]
        {
            for piece in cut(&embedder, &text, 10_000) {
                assert!(embedder.count_tokens(&piece, 1000) <= MAX_CHUNK_TOKENS);
            }
        }
        let line = format!("{} end", "word ".repeat(5_000));
        assert!(cut(&embedder, &line, 1_000).last().unwrap().ends_with("end"));
    }
}
