//! Texts of messages on pages: people's names, plain text with links, passages that match a search.

use std::fmt::Write as _;

use mail::html::escape;

use super::time::number;

/// A number with its noun: "1 conversation", "3 conversations", "2 replies", "5 mailboxes".
pub(super) fn counted(count: i64, noun: &str) -> String {
    format!("{} {}", number(count), plural(count, noun))
}

/// A noun in the form that fits a number.
pub(super) fn plural(count: i64, noun: &str) -> String {
    if count == 1 {
        return noun.to_owned();
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if noun.ends_with(['s', 'x', 'z']) || noun.ends_with("ch") || noun.ends_with("sh") => {
            format!("{noun}es")
        }
        _ => format!("{noun}s"),
    }
}

/// The name and the address of `Name <address>`; the address for both when there is no name.
pub(super) fn person(text: &str) -> (String, String) {
    let text = text.trim();
    if let Some((name, rest)) = text.rsplit_once('<')
        && let Some((address, _)) = rest.split_once('>')
    {
        let name = name.trim().trim_matches('"').trim();
        let display_name = if name.is_empty() { address.trim() } else { name };
        return (display_name.to_owned(), address.trim().to_owned());
    }
    (text.to_owned(), text.to_owned())
}

/// The names of all people in an address list, shortened.
pub(super) fn people(line: &str) -> String {
    let names: Vec<String> = split_people(line).into_iter().map(|one| person(&one).0).collect();
    names.join(", ")
}

/// Splits an address list at its commas.
pub(super) fn split_people(line: &str) -> Vec<String> {
    let (mut all, mut current, mut quoted) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        match character {
            '"' => {
                quoted = !quoted;
                current.push(character);
            }
            ',' if !quoted => all.push(std::mem::take(&mut current)),
            _ => current.push(character),
        }
    }
    all.push(current);
    all.retain(|one| !one.trim().is_empty());
    all
}

/// The initial of a name.
pub(super) fn initial(name: &str) -> String {
    let first = name.chars().find(|c| c.is_alphanumeric());
    first.map_or_else(|| "?".to_owned(), |first| first.to_uppercase().collect())
}

/// Plain text as HTML, with links and paler quotes.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    for line in text.lines() {
        let quoted = line.starts_with('>');
        if quoted {
            out.push_str("<span class=\"quote\">");
        }
        link_into(&mut out, line);
        if quoted {
            out.push_str("</span>");
        }
        out.push('\n');
    }
    out
}

fn link_into(out: &mut String, line: &str) {
    let mut rest = line;
    while let Some(at) = ["https://", "http://"].iter().filter_map(|scheme| rest.find(scheme)).min() {
        let (before, from) = rest.split_at(at);
        out.push_str(&escape(before));
        let end = from.find(|c: char| c.is_whitespace() || "<>\"`{}|\\^".contains(c)).unwrap_or(from.len());
        let end = from[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'']).len();
        let (link, after) = from.split_at(end);
        // A scheme alone is not a link, and must not be scanned again.
        if link.len() <= "https://".len() {
            let (head, tail) = from.split_at(from.char_indices().nth(4).map_or(from.len(), |(at, _)| at));
            out.push_str(&escape(head));
            rest = tail;
            continue;
        }
        let safe = escape(link);
        let _ = write!(
            out,
            "<a href=\"{safe}\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">{safe}</a>"
        );
        rest = after;
    }
    out.push_str(&escape(rest));
}

/// A passage with the matched terms between `**`.
pub(super) fn marked(passage: &str) -> String {
    let mut out = String::new();
    for (index, piece) in passage.split("**").enumerate() {
        let text = escape(piece);
        if index % 2 == 1 {
            let _ = write!(out, "<mark>{text}</mark>");
        } else {
            out.push_str(&text);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_fit_their_numbers() {
        let of = |count, noun| counted(count, noun);
        assert_eq!(
            (of(1, "conversation"), of(0, "conversation")),
            ("1 conversation".into(), "0 conversations".into())
        );
        assert_eq!((of(2, "reply"), of(3, "API key")), ("2 replies".into(), "3 API keys".into()));
        assert_eq!((of(5, "mailbox"), of(2, "address")), ("5 mailboxes".into(), "2 addresses".into()));
    }

    #[test]
    fn people_have_names() {
        assert_eq!(person("\"Ada B.\" <ada@x.test>"), ("Ada B.".into(), "ada@x.test".into()));
        assert_eq!(person("ada@x.test"), ("ada@x.test".into(), "ada@x.test".into()));
        assert_eq!(people("\"B, Ada\" <a@x.test>, Bob <b@x.test>"), "B, Ada, Bob");
        assert_eq!((initial("éric"), initial("<>")), ("É".to_owned(), "?".to_owned()));
    }

    // rules: CONSOLE-4
    #[test]
    fn text_stays_text() {
        let html =
            plain("<script>alert(1)</script> https://a.test/?q=\"><script>. http:// x\n> 'quoted' & so on");
        assert!(!html.contains("<script") && html.contains("&lt;script&gt;"), "{html}");
        assert!(html.contains("<a href=\"https://a.test/?q=\""), "{html}");
        assert!(html.contains("<span class=\"quote\">&gt; &#39;quoted&#39; &amp; so on</span>"), "{html}");
        assert_eq!(marked("a **<b>** c"), "a <mark>&lt;b&gt;</mark> c");
        let many = "http://http://http://".repeat(2000);
        assert!(plain(&many).len() > many.len());
    }
}
