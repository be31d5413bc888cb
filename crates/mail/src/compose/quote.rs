//! Replies and forwards: subjects, recipients, threading headers, and the original below a forwarded message.
//!
//! A reply quotes nothing; a forwarded message contains the original.

use std::collections::HashSet;
use std::fmt::Write as _;

use mail_builder::headers::date::Date;

use super::checks::is_id;
use super::header::fit_subject;
use super::unencoded::Person;
use crate::address::Address;
use crate::html::escape;
use crate::message::{leading_prefix, one_line};
use crate::safe_text::SafeText;

/// The most ids of a References header that we write.
pub const MAX_REFERENCES: usize = 50;

/// The most bytes of them; beyond, servers begin to refuse headers.
const MAX_REFERENCES_BYTES: usize = 6000;

/// Subject prefixes for replies, in the languages that have their own.
const REPLY_PREFIXES: [&str; 28] = [
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

/// Subject prefixes for forwards.
const FORWARD_PREFIXES: [&str; 23] = [
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

/// The subject of a reply: `Re:` before the original, unless it has such a prefix. Cut where it would be too long.
pub fn reply_subject(original: &str) -> String {
    with_prefix("Re:", &REPLY_PREFIXES, original)
}

/// The subject of a forward: `Fwd:` before the original, unless it has such a prefix. Cut where it would be too long.
pub fn forward_subject(original: &str) -> String {
    with_prefix("Fwd:", &FORWARD_PREFIXES, original)
}

fn with_prefix(prefix: &str, known: &[&str], original: &str) -> String {
    let original = original.trim();
    let lower = original.to_lowercase();
    let is_prefixed = leading_prefix(&lower).is_some_and(|(found, _)| known.contains(&found));
    let prefixed = match (is_prefixed, original.is_empty()) {
        (true, _) => original.to_owned(),
        (false, true) => prefix.to_owned(),
        (false, false) => format!("{prefix} {original}"),
    };
    fit_subject(&prefixed)
}

/// The threading headers of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threading {
    /// The message that is replied to.
    pub in_reply_to: Option<String>,
    /// Its thread, oldest first, and itself.
    pub references: Vec<String>,
}

/// The threading headers of a reply to a message with these headers (RFC 5322, section 3.6.4).
///
/// Invalid ids are left out. Of too many, the first one, which identifies the thread, and the last ones are kept.
pub fn threading(message_id: Option<&str>, in_reply_to: Option<&str>, references: &[String]) -> Threading {
    let parent = message_id.filter(|id| is_id(id));
    let earlier: Vec<&str> = match references {
        [] => in_reply_to.into_iter().collect(),
        ids => ids.iter().map(String::as_str).collect(),
    };
    let mut ids: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    // Of a repeated id the last occurrence counts: the parent must be last.
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

/// The recipients of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipients {
    /// To whom it is written.
    pub to: Vec<Person>,
    /// Who gets a copy.
    pub cc: Vec<Person>,
}

/// The message that is replied to or forwarded.
#[derive(Clone, Debug, Default)]
pub struct Original {
    /// Its author.
    pub from: Option<Person>,
    /// Its Reply-To.
    pub reply_to: Vec<Person>,
    /// Its To recipients.
    pub to: Vec<Person>,
    /// Its Cc recipients.
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

/// The recipients of a reply; `own` are the addresses of the replying mailbox.
///
/// A reply to an own message goes to that message's recipients. With `reply_all`, all recipients are included. No
/// address occurs twice, and own addresses are left out unless there is no other.
pub fn reply_recipients(original: &Original, own: &[&str], reply_all: bool) -> Recipients {
    let mut seen: HashSet<Address> = own.iter().filter_map(|address| Address::parse(address).ok()).collect();
    let is_own =
        |person: &Person| Address::parse(&person.address).is_ok_and(|address| seen.contains(&address));
    let author: &[Person] = match (&original.reply_to, &original.from) {
        (reply_to, _) if !reply_to.is_empty() => reply_to,
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

/// The line above the original in a forwarded message.
const FORWARDED_LINE: &str = "---------- Forwarded message ----------";

fn html_forwarded_line() -> String {
    format!("\n<br><div>{FORWARDED_LINE}<br>\n")
}

/// Text or HTML of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyText<'a> {
    /// Plain text.
    Text(&'a str),
    /// HTML.
    Html(&'a str),
}

/// Splits a body made by [`forward`] into the sender's text and the original below it.
///
/// [`join`] restores the same body.
pub fn split(body: BodyText<'_>) -> Option<(BodyText<'_>, BodyText<'_>)> {
    match body {
        BodyText::Text(text) => {
            let line = format!("{FORWARDED_LINE}\n");
            let at = text.match_indices(&line).map(|(at, _)| at);
            let at = at.into_iter().find(|at| *at == 0 || text[..*at].ends_with('\n'))?;
            let (comment, below) = text.split_at(at);
            Some((BodyText::Text(comment.trim_end_matches('\n')), BodyText::Text(below)))
        }
        BodyText::Html(html) => {
            let (comment, below) = html.split_at(html.find(&html_forwarded_line())?);
            Some((BodyText::Html(comment), BodyText::Html(below)))
        }
    }
}

/// Joins the sender's text and an original from [`split`]. The second value tells whether the result is HTML.
pub fn join(comment: BodyText<'_>, below: BodyText<'_>) -> (String, bool) {
    match (comment, below) {
        (BodyText::Text(comment), BodyText::Text(below)) if comment.trim().is_empty() => {
            (below.to_owned(), false)
        }
        (BodyText::Text(comment), BodyText::Text(below)) => {
            (format!("{}\n\n{below}", comment.trim_end()), false)
        }
        (BodyText::Text(comment), BodyText::Html(below)) => (paragraphs(comment) + below, true),
        (BodyText::Html(comment), BodyText::Html(below)) => (format!("{comment}{below}"), true),
        (BodyText::Html(comment), BodyText::Text(below)) => {
            (format!("{comment}\n<br>{}", paragraphs(below)), true)
        }
    }
}

/// The bodies of a forwarded message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bodies {
    /// Plain text.
    pub text: String,
    /// HTML, where the sender or the original has some.
    pub html: Option<String>,
}

/// Puts the original below the sender's text.
pub fn forward(original: &Original, text: Option<&str>, html: Option<&str>) -> Bodies {
    let comment =
        text.map(str::to_owned).or_else(|| html.map(|html| SafeText::from_html(html).into_string()));
    let with_html = html.is_some() || original.html.is_some();
    Bodies {
        text: forward_text(original, comment.as_deref().unwrap_or_default()),
        html: with_html.then(|| forward_html(original, html, text.unwrap_or_default())),
    }
}

fn forward_text(original: &Original, comment: &str) -> String {
    let mut output = String::new();
    if !comment.trim().is_empty() {
        output.push_str(comment.trim_end());
        output.push_str("\n\n");
    }
    output.push_str(FORWARDED_LINE);
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
    output.push_str(&html_forwarded_line());
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

/// HTML from plain text, with line breaks as elements: for editors that apply no styles.
pub fn unstyled(html: &str) -> String {
    match html.trim().strip_prefix(PARAGRAPHS).and_then(|rest| rest.strip_suffix("</div>")) {
        Some(text) if !text.contains('<') => text.replace("\r\n", "\n").replace('\n', "<br>"),
        _ => html.to_owned(),
    }
}

/// The headers shown in the forwarded message, each on one line, so that none can imitate another.
fn header_block(original: &Original) -> Vec<(&'static str, String)> {
    let mut block = Vec::new();
    let mut add = |name, value: String| {
        if !value.is_empty() {
            block.push((name, value));
        }
    };
    add("From", original.from.as_ref().map(display_form).unwrap_or_default());
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
    let formatted: Vec<String> = people.iter().map(display_form).collect();
    formatted.join(", ")
}

fn display_form(person: &Person) -> String {
    let text = match person.name.as_deref().filter(|name| !name.trim().is_empty()) {
        Some(name) => format!("{name} <{}>", person.address),
        None => person.address.clone(),
    };
    one_line(&text)
}
