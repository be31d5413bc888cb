//! Answering and passing on: subjects, recipients, threading headers, and the original below a forwarded mail.
//!
//! What an answer says is the sender's business: nothing is quoted in it. A forwarded mail carries the original.

use std::collections::HashSet;
use std::fmt::Write as _;

use mail_builder::headers::date::Date;

use super::checks::is_id;
use super::header::fit_subject;
use super::outgoing::Person;
use crate::address::Address;
use crate::message::{leading_mark, one_line};
use crate::safe_text::SafeText;

/// The most ids of a References header that we write.
pub const MAX_REFERENCES: usize = 50;

/// The most bytes of them; beyond, servers begin to refuse headers.
const MAX_REFERENCES_BYTES: usize = 6000;

/// Marks that say "answer", in the languages that have one of their own.
const ANSWERS: [&str; 28] = [
    "re",
    "r",
    "aw",
    "antw",
    "sv",
    "vs",
    "res",
    "ref",
    "rif",
    "odp",
    "ynt",
    "atb",
    "bls",
    "válasz",
    "απ",
    "σχετ",
    "ответ",
    "отв",
    "回复",
    "回覆",
    "答复",
    "返信",
    "답장",
    "회신",
    "trả lời",
    "sv.",
    "yml",
    "htg",
];

/// Marks that say "passed on".
const FORWARDS: [&str; 23] = [
    "fw",
    "fwd",
    "wg",
    "vb",
    "vl",
    "tr",
    "rv",
    "enc",
    "i",
    "fs",
    "pd",
    "ilt",
    "vid",
    "bal",
    "doorst",
    "továbbítás",
    "πρθ",
    "пересл",
    "转发",
    "轉寄",
    "轉發",
    "転送",
    "전달",
];

/// The subject of an answer: `Re:` before the original one, unless it says so already. Cut where it would be too long.
pub fn reply_subject(original: &str) -> String {
    with_mark("Re:", &ANSWERS, original)
}

/// The subject of a forwarded mail: `Fwd:` before the original one, unless it says so already. Cut likewise.
pub fn forward_subject(original: &str) -> String {
    with_mark("Fwd:", &FORWARDS, original)
}

fn with_mark(mark: &str, known: &[&str], original: &str) -> String {
    let original = original.trim();
    let lower = original.to_lowercase();
    let is_marked = leading_mark(&lower).is_some_and(|(found, _)| known.contains(&found));
    let marked = match (is_marked, original.is_empty()) {
        (true, _) => original.to_owned(),
        (false, true) => mark.to_owned(),
        (false, false) => format!("{mark} {original}"),
    };
    fit_subject(&marked)
}

/// The threading headers of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threading {
    /// The mail that is answered.
    pub in_reply_to: Option<String>,
    /// Its conversation, oldest first, and it itself.
    pub references: Vec<String>,
}

/// The threading headers of an answer to a mail with these (RFC 5322, section 3.6.4).
///
/// Ids that cannot be written are left out. Of too many, the first one, which names the conversation, and the last ones
/// are kept.
pub fn threading(message_id: Option<&str>, in_reply_to: Option<&str>, references: &[String]) -> Threading {
    let parent = message_id.filter(|id| is_id(id));
    let earlier: Vec<&str> = match references {
        [] => in_reply_to.into_iter().collect(),
        ids => ids.iter().map(String::as_str).collect(),
    };
    let mut ids: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    // An id counts where it stands last: the parent must be the last one.
    for id in earlier.into_iter().chain(parent).rev() {
        if is_id(id) && seen.insert(id) {
            ids.push(id.to_owned());
        }
    }
    ids.reverse();
    Threading { in_reply_to: parent.map(str::to_owned), references: bounded(ids) }
}

fn bounded(mut ids: Vec<String>) -> Vec<String> {
    let mut bytes: usize = ids.iter().map(|id| id.len() + 3).sum();
    let mut drop_to = 1;
    while drop_to + 1 < ids.len()
        && (ids.len() - (drop_to - 1) > MAX_REFERENCES || bytes > MAX_REFERENCES_BYTES)
    {
        bytes -= ids.get(drop_to).map_or(0, |id| id.len() + 3);
        drop_to += 1;
    }
    if drop_to > 1 {
        ids.drain(1..drop_to);
    }
    ids
}

/// Whom an answer goes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipients {
    /// To whom it is written.
    pub to: Vec<Person>,
    /// Who gets a copy.
    pub cc: Vec<Person>,
}

/// The mail that is answered or passed on.
#[derive(Clone, Debug, Default)]
pub struct Original {
    /// Who wrote it.
    pub from: Option<Person>,
    /// Where its author wants answers.
    pub reply_to: Vec<Person>,
    /// To whom it was written.
    pub to: Vec<Person>,
    /// Who got a copy.
    pub cc: Vec<Person>,
    /// The time of its Date header in microseconds since 1970, UTC.
    pub date: Option<i64>,
    /// Its subject.
    pub subject: String,
    /// Its plain text.
    pub text: Option<String>,
    /// Its HTML.
    pub html: Option<String>,
}

/// Whom an answer to a mail goes to, `own` being the addresses of whoever answers.
///
/// Answers to a mail of our own go to whom that went to. With `reply_all`, all its recipients get one too. Nobody is
/// named twice, and nobody answers to himself, unless he is the only one.
pub fn reply_recipients(original: &Original, own: &[&str], reply_all: bool) -> Recipients {
    let mut seen: HashSet<Address> = own.iter().filter_map(|address| Address::parse(address).ok()).collect();
    let is_own =
        |person: &Person| Address::parse(&person.address).is_ok_and(|address| seen.contains(&address));
    let author: &[Person] = match (&original.reply_to, &original.from) {
        (wanted, _) if !wanted.is_empty() => wanted,
        (_, Some(from)) => std::slice::from_ref(from),
        _ => &[],
    };
    let from_us = original.from.as_ref().is_some_and(is_own);
    let direct = if from_us && !original.to.is_empty() { &original.to } else { author };
    let mut take = |people: &[Person]| -> Vec<Person> {
        let sound = people.iter().filter_map(|person| Some((person, Address::parse(&person.address).ok()?)));
        sound.filter(|(_, address)| seen.insert(address.clone())).map(|(person, _)| person.clone()).collect()
    };
    let mut to = take(direct);
    let mut cc = Vec::new();
    if reply_all {
        to.extend(take(&original.to));
        cc = take(&original.cc);
    }
    if to.is_empty() && cc.is_empty() {
        to =
            direct.iter().filter(|person| Address::parse(&person.address).is_ok()).take(1).cloned().collect();
    }
    if to.is_empty() {
        std::mem::swap(&mut to, &mut cc);
    }
    Recipients { to, cc }
}

/// The line above the original in a forwarded mail.
const MARK: &str = "---------- Forwarded message ----------";

fn html_mark() -> String {
    format!("\n<br><div>{MARK}<br>\n")
}

/// Text or HTML of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// Plain text.
    Text(&'a str),
    /// HTML.
    Html(&'a str),
}

/// What the sender says in a body that [`forward`] made, and the original below it. Nothing if it is no such body.
///
/// Put together again with [`join`], the two are the same body.
pub fn split(body: Written<'_>) -> Option<(Written<'_>, Written<'_>)> {
    match body {
        Written::Text(text) => {
            let line = format!("{MARK}\n");
            let at = text.match_indices(&line).map(|(at, _)| at);
            let at = at.into_iter().find(|at| *at == 0 || text[..*at].ends_with('\n'))?;
            let (said, below) = text.split_at(at);
            Some((Written::Text(said.trim_end_matches('\n')), Written::Text(below)))
        }
        Written::Html(html) => {
            let (said, below) = html.split_at(html.find(&html_mark())?);
            Some((Written::Html(said), Written::Html(below)))
        }
    }
}

/// Puts an original that was split off below what the sender says now. The second value tells whether it is HTML.
pub fn join(said: Written<'_>, below: Written<'_>) -> (String, bool) {
    match (said, below) {
        (Written::Text(said), Written::Text(below)) if said.trim().is_empty() => (below.to_owned(), false),
        (Written::Text(said), Written::Text(below)) => (format!("{}\n\n{below}", said.trim_end()), false),
        (Written::Text(said), Written::Html(below)) => (paragraphs(said) + below, true),
        (Written::Html(said), Written::Html(below)) => (format!("{said}{below}"), true),
        (Written::Html(said), Written::Text(below)) => (format!("{said}\n<br>{}", paragraphs(below)), true),
    }
}

/// The bodies of a forwarded mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bodies {
    /// Plain text.
    pub text: String,
    /// HTML, where the sender or the original has some.
    pub html: Option<String>,
}

/// Puts the original below what the sender says.
pub fn forward(original: &Original, text: Option<&str>, html: Option<&str>) -> Bodies {
    let said = text.map(str::to_owned).or_else(|| html.map(|html| SafeText::from_html(html).into_string()));
    let with_html = html.is_some() || original.html.is_some();
    Bodies {
        text: forward_text(original, said.as_deref().unwrap_or_default()),
        html: with_html.then(|| forward_html(original, html, text.unwrap_or_default())),
    }
}

fn forward_text(original: &Original, said: &str) -> String {
    let mut output = String::new();
    if !said.trim().is_empty() {
        output.push_str(said.trim_end());
        output.push_str("\n\n");
    }
    output.push_str(MARK);
    output.push('\n');
    for (name, value) in header_block(original) {
        let _ = writeln!(output, "{name}: {value}");
    }
    output.push('\n');
    match (&original.text, &original.html) {
        (Some(text), _) => output.push_str(text),
        (None, Some(html)) => output.push_str(SafeText::from_html(html).as_str()),
        (None, None) => {}
    }
    output
}

fn forward_html(original: &Original, html: Option<&str>, text: &str) -> String {
    let mut output = match html {
        Some(html) => html.to_owned(),
        None => paragraphs(text),
    };
    output.push_str(&html_mark());
    for (name, value) in header_block(original) {
        let _ = writeln!(output, "<b>{name}:</b> {}<br>", escape(&value));
    }
    output.push_str("</div><br>\n");
    match (&original.html, &original.text) {
        (Some(html), _) => output.push_str(html),
        (None, Some(text)) => output.push_str(&paragraphs(text)),
        (None, None) => {}
    }
    output
}

/// Plain text as HTML that looks the same.
fn paragraphs(text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    format!("{PARAGRAPHS}{}</div>", escape(text))
}

const PARAGRAPHS: &str = "<div style=\"white-space: pre-wrap\">";

/// HTML that was plain text, with its line breaks as elements: for editors that apply no styles.
pub fn unstyled(html: &str) -> String {
    match html.trim().strip_prefix(PARAGRAPHS).and_then(|rest| rest.strip_suffix("</div>")) {
        Some(text) if !text.contains('<') => text.replace("\r\n", "\n").replace('\n', "<br>"),
        _ => html.to_owned(),
    }
}

/// The headers that a reader of the forwarded mail wants to see, each on one line: none can pose as another.
fn header_block(original: &Original) -> Vec<(&'static str, String)> {
    let mut block = Vec::new();
    let mut add = |name, value: String| {
        if !value.is_empty() {
            block.push((name, value));
        }
    };
    add("From", original.from.as_ref().map(shown).unwrap_or_default());
    add(
        "Date",
        original.date.map(|micros| Date::new(micros.div_euclid(1_000_000)).to_rfc822()).unwrap_or_default(),
    );
    add("Subject", one_line(&original.subject));
    add("To", list(&original.to));
    add("Cc", list(&original.cc));
    block
}

fn list(people: &[Person]) -> String {
    let shown: Vec<String> = people.iter().map(shown).collect();
    shown.join(", ")
}

fn shown(person: &Person) -> String {
    let text = match person.name.as_deref().filter(|name| !name.trim().is_empty()) {
        Some(name) => format!("{name} <{}>", person.address),
        None => person.address.clone(),
    };
    one_line(&text)
}

/// Text as HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(c),
        }
    }
    escaped
}
