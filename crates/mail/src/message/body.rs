//! Which parts of a message are its text, and which are files.
//!
//! Follows the algorithm of RFC 8621, section 4.1.4, with two differences: images are always files, and an
//! alternative that is not shown (AMP, for example) is no file either, but is still scanned.

use memchr::memmem;

use super::charset;
use super::contents::{File, Message};
use super::faults::{Fault, Faults};
use super::file_names;
use super::flowed::{unflow, unix_lines};
use super::structure::{Kind, Part, Structure};
use super::transfer::{self, Encoding, Measure};

/// The most bytes of text that are decoded for one view.
const MAX_TEXT: usize = 8 * 1024 * 1024;

/// Fills in the text, the HTML and the files.
pub(super) fn fill(raw: &[u8], structure: &Structure<'_>, faults: &mut Faults, message: &mut Message) {
    let mut children = vec![Vec::new(); structure.parts.len()];
    for (index, part) in structure.parts.iter().enumerate() {
        if let Some(siblings) = part.parent.and_then(|parent| children.get_mut(parent)) {
            siblings.push(index);
        }
    }
    let mut sorter =
        Sorter { parts: &structure.parts, children: &children, files: Vec::new(), hidden: Vec::new() };
    let mut views = Views::default();
    sorter.sort(&[0], "", None, &mut views);
    let Sorter { files, mut hidden, .. } = sorter;
    hidden.extend(inside_messages(&structure.parts));
    hidden.sort_unstable();
    let mut texts = Texts { raw, parts: &structure.parts, faults };
    message.html = texts.html(&views.html);
    message.text = texts.plain(&views.text);
    for (number, index) in files.into_iter().enumerate() {
        message.files.extend(describe(raw, &structure.parts, index, number + 1, faults));
    }
    for (number, index) in hidden.into_iter().enumerate() {
        message.inner.extend(describe(raw, &structure.parts, index, number + 1, faults));
    }
}

/// The leaves of attached messages.
fn inside_messages(parts: &[Part]) -> Vec<usize> {
    let mut is_inside = vec![false; parts.len()];
    let mut inside = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let Some(parent) = part.parent else { continue };
        let below = is_inside.get(parent).copied().unwrap_or_default()
            || parts.get(parent).is_some_and(|parent| parent.kind == Kind::Message);
        if let Some(slot) = is_inside.get_mut(index) {
            *slot = below;
        }
        if below && part.kind == Kind::Leaf {
            inside.push(index);
        }
    }
    inside
}

/// The parts of the text and HTML views of a message.
#[derive(Default)]
struct Views {
    text: Vec<usize>,
    html: Vec<usize>,
}

impl Views {
    fn lengths(&self) -> (usize, usize) {
        (self.text.len(), self.html.len())
    }
}

struct Sorter<'a> {
    parts: &'a [Part],
    children: &'a [Vec<usize>],
    files: Vec<usize>,
    hidden: Vec<usize>,
}

impl Sorter<'_> {
    /// Sorts the parts of one multipart. The structure's limits bound the depth of this recursion.
    ///
    /// `branch` is how long the views were when the branch of an alternative began that these parts belong to.
    fn sort(
        &mut self,
        siblings: &[usize],
        multipart: &str,
        branch: Option<(usize, usize)>,
        views: &mut Views,
    ) {
        let before = views.lengths();
        for (position, &index) in siblings.iter().enumerate() {
            let Some(part) = self.parts.get(index) else { continue };
            if part.kind == Kind::Multipart {
                let sub = part.media_type.strip_prefix("multipart/").unwrap_or_default();
                let children = self.children.get(index).map_or(&[][..], Vec::as_slice);
                let branch = if multipart == "alternative" { Some(views.lengths()) } else { branch };
                self.sort(children, sub, branch, views);
            } else if is_shown(part, position, multipart) {
                show(index, part, multipart, branch, views);
            } else if multipart == "alternative" && is_other_text(part) {
                self.hidden.push(index);
            } else {
                self.files.push(index);
            }
        }
        if multipart == "alternative" && branch.is_none() {
            share(views, before);
        }
    }
}

/// Puts a text part into the views that show it.
fn show(index: usize, part: &Part, multipart: &str, branch: Option<(usize, usize)>, views: &mut Views) {
    let is_html = part.media_type == "text/html";
    if multipart == "alternative" {
        if is_html {
            views.html.push(index);
        } else {
            views.text.push(index);
        }
        return;
    }
    match branch {
        // Parts next to the HTML of a branch belong to it.
        Some((_, html_before)) if is_html || views.html.len() > html_before => views.html.push(index),
        Some(_) => views.text.push(index),
        None => {
            views.text.push(index);
            views.html.push(index);
        }
    }
}

/// Fills a view that got nothing from an alternative with the other view's parts.
fn share(views: &mut Views, before: (usize, usize)) {
    let after = views.lengths();
    if after.0 == before.0 && after.1 != before.1 {
        views.text.extend(views.html.iter().skip(before.1));
    } else if after.1 == before.1 && after.0 != before.0 {
        views.html.extend(views.text.iter().skip(before.0));
    }
}

/// Whether a part is text that a reader sees in the message itself.
fn is_shown(part: &Part, position: usize, multipart: &str) -> bool {
    let is_root = part.parent.is_none();
    let is_text = matches!(part.media_type.as_str(), "text/plain" | "text/html")
        || (is_root && (is_other_text(part) || part.media_type.starts_with("multipart/")));
    let is_attachment =
        part.disposition.as_ref().is_some_and(|disposition| disposition.value == "attachment");
    let has_name = !declared_names(part).is_empty();
    is_text && !is_attachment && (position == 0 || (multipart != "related" && !has_name))
}

/// Alternative text formats of the message, as opposed to documents.
fn is_other_text(part: &Part) -> bool {
    let sub = part.media_type.strip_prefix("text/").unwrap_or_default();
    matches!(sub, "enriched" | "richtext" | "x-amp-html" | "watch-html" | "markdown" | "x-markdown")
}

/// The names that a part declares, decoded but not cleaned; the one that counts comes first.
fn declared_names(part: &Part) -> Vec<String> {
    let mut names =
        part.disposition.as_ref().map(|disposition| disposition.texts("filename")).unwrap_or_default();
    names.extend(part.parameters.texts("name"));
    names.retain(|name| !name.trim().is_empty());
    names.dedup();
    names
}

/// Headers with a name that is not written as the standard says, as a whole.
fn doubtful_names(part: &Part) -> impl Iterator<Item = String> + '_ {
    let headers = part.disposition.iter().chain([&part.parameters]);
    headers.filter_map(|header| header.raw.clone()).filter(|raw| raw.to_ascii_lowercase().contains("name"))
}

/// Describes a part as a file.
fn describe(raw: &[u8], parts: &[Part], index: usize, number: usize, faults: &mut Faults) -> Option<File> {
    let part = parts.get(index)?;
    let declared_names = declared_names(part);
    let subject = parts
        .get(index + 1)
        .filter(|inner| part.kind == Kind::Message && inner.parent == Some(index))
        .and_then(|inner| inner.subject.clone())
        .map(|subject| format!("{}.eml", super::encoded_words::cut(subject.replace(['/', '\\'], "_"), 100)));
    let name = declared_names
        .iter()
        .find_map(|name| file_names::clean(name))
        .or_else(|| subject.and_then(|subject| file_names::clean(&subject)))
        .unwrap_or_else(|| file_names::invent(&part.media_type, number));
    let measure = measure(raw, part);
    if !measure.sound {
        faults.add(Fault::Encoding);
    }
    Some(File {
        name,
        media_type: part.media_type.clone(),
        content_id: part.content_id.clone(),
        disposition: part
            .disposition
            .as_ref()
            .map(|disposition| disposition.value.clone())
            .filter(|value| matches!(value.as_str(), "inline" | "attachment")),
        size: u64::try_from(measure.size).unwrap_or(u64::MAX),
        range: part.range.clone(),
        encoding: part.encoding,
        declared_names: declared_names.into_iter().chain(doubtful_names(part)).collect(),
    })
}

/// The size of a part after decoding.
fn measure(raw: &[u8], part: &Part) -> Measure {
    let content = raw.get(part.range.clone()).unwrap_or_default();
    match part.encoding {
        Encoding::Identity => Measure { size: content.len(), sound: true },
        Encoding::Base64 => transfer::measure_base64(content),
        Encoding::QuotedPrintable => transfer::measure_quoted_printable(content),
    }
}

/// Turns parts into text.
struct Texts<'a, 'f> {
    raw: &'a [u8],
    parts: &'a [Part],
    faults: &'f mut Faults,
}

impl Texts<'_, '_> {
    /// The plain view; none where some of the message is only there as HTML, since the HTML then shows all of it.
    fn plain(&mut self, parts: &[usize]) -> Option<String> {
        if parts.is_empty() || parts.iter().any(|&index| self.is_html(index)) {
            return None;
        }
        let pieces = self.decode_all(parts);
        Some(join(pieces.into_iter().map(|(_, text)| text), "\n"))
    }

    /// The HTML view; plain parts between HTML parts are converted.
    fn html(&mut self, parts: &[usize]) -> Option<String> {
        if !parts.iter().any(|&index| self.is_html(index)) {
            return None;
        }
        let pieces = self.decode_all(parts);
        let html = pieces.into_iter().map(|(is_html, text)| if is_html { text } else { escape(&text) });
        Some(join(html, "\n"))
    }

    fn is_html(&self, index: usize) -> bool {
        self.parts.get(index).is_some_and(|part| part.media_type == "text/html")
    }

    fn decode_all(&mut self, parts: &[usize]) -> Vec<(bool, String)> {
        let mut left = MAX_TEXT;
        let mut pieces = Vec::new();
        for &index in parts {
            let Some(part) = self.parts.get(index) else { continue };
            let measure = measure(self.raw, part);
            if !measure.sound {
                self.faults.add(Fault::Encoding);
            }
            let content = self.raw.get(part.range.clone()).unwrap_or_default();
            let content = if measure.size > left {
                self.faults.add(Fault::TooMuchContent);
                content.get(..left).unwrap_or(content)
            } else {
                content
            };
            left = left.saturating_sub(measure.size);
            let text = decode_text(part, content);
            if hides_file(&text) {
                self.faults.add(Fault::Encoding);
            }
            pieces.push((part.media_type == "text/html", text));
        }
        pieces
    }
}

/// Whether a text contains a pre-MIME attachment (uuencode and similar), which some clients still decode.
fn hides_file(text: &str) -> bool {
    // All of them contain this word; searching for it is quicker than checking every line.
    if memmem::find(text.as_bytes(), b"begin").is_none() {
        return false;
    }
    text.lines().any(|line| {
        let is_uuencoded = line.strip_prefix("begin ").is_some_and(|rest| {
            let mode = rest.split(' ').next().unwrap_or_default();
            (3..=4).contains(&mode.len())
                && mode.bytes().all(|byte| matches!(byte, b'0'..=b'7'))
                && rest.len() > mode.len()
        });
        is_uuencoded || line.starts_with("begin-base64 ") || line.starts_with("=ybegin ")
    })
}

/// The text of a part.
fn decode_text(part: &Part, content: &[u8]) -> String {
    let decoded;
    let bytes = match part.encoding {
        Encoding::Identity => content,
        Encoding::Base64 => {
            decoded = transfer::base64(content);
            &decoded
        }
        Encoding::QuotedPrintable => {
            decoded = transfer::quoted_printable(content);
            &decoded
        }
    };
    let label = part.parameters.text("charset").map(|label| label.to_ascii_lowercase()).or_else(|| {
        let says_itself = part.media_type == "text/html" && std::str::from_utf8(bytes).is_err();
        says_itself.then(|| charset::of_page(bytes)).flatten()
    });
    let text = unix_lines(charset::decode(bytes, label.as_deref()));
    let is_flowed = part.parameters.keyword("format").as_deref() == Some("flowed");
    if part.media_type == "text/plain" && is_flowed {
        let delete_space = part.parameters.keyword("delsp").as_deref() == Some("yes");
        return unflow(&text, delete_space);
    }
    text
}

/// Joins pieces, each on lines of its own.
fn join(mut pieces: impl Iterator<Item = String>, separator: &str) -> String {
    let mut joined = pieces.next().unwrap_or_default();
    for piece in pieces {
        if !joined.is_empty() && !joined.ends_with('\n') {
            joined.push_str(separator);
        }
        joined.push_str(&piece);
    }
    joined
}

/// Plain text as HTML.
fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + 32);
    html.push_str("<div>");
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '\n' => html.push_str("<br>\n"),
            _ => html.push(c),
        }
    }
    html.push_str("</div>");
    html
}
