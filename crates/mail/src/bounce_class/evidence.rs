//! What is known about a bounce: its reply code, its enhanced status, and its text in a form that phrases can be looked
//! for in.
//!
//! Addresses and the codes that begin each line are taken out of the text: an address may contain any word, and a code
//! in the middle of a sentence would hide a phrase.

/// Bytes of the text that are read.
const MAX_TEXT_BYTES: usize = 2048;

/// A reply or a diagnostic that was read.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// The reply code, 400 to 599.
    pub(super) code: Option<u16>,
    /// The enhanced status.
    pub(super) status: Option<Status>,
    /// The text in lower case, its words with one space between them.
    pub(super) text: String,
}

/// An enhanced status (RFC 3463).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    /// 4 for a temporary failure, 5 for a permanent one.
    pub(super) class: u16,
    /// What it is about.
    pub(super) subject: u16,
    /// What happened.
    pub(super) detail: u16,
}

impl Status {
    fn parse(text: &str) -> Option<Self> {
        let number = |part: &str| {
            let short = (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
            if short { part.parse().ok() } else { None }
        };
        let mut parts = text.split('.').map(number);
        let status = Self { class: parts.next()??, subject: parts.next()??, detail: parts.next()?? };
        (parts.next().is_none() && matches!(status.class, 4 | 5)).then_some(status)
    }

    /// Whether it says no more than that something failed.
    fn is_generic(self) -> bool {
        self.detail == 0
    }

    /// The one that says more; the first of two that say as much.
    fn or(self, other: Self) -> Self {
        let weight = |status: Self| (!status.is_generic(), status.subject != 0);
        if weight(other) > weight(self) { other } else { self }
    }
}

impl Evidence {
    /// Reads a reply or a diagnostic.
    pub(super) fn read(code: Option<u16>, status: Option<&str>, text: &str) -> Self {
        let mut evidence = Self { code: code.filter(|code| (400..600).contains(code)), ..Self::default() };
        let given = status.and_then(|status| Status::parse(status.trim()));
        let text = text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or(text);
        let text = text.to_lowercase().replace('\u{2019}', "'").replace(';', "; ");
        let mut noted: Option<Status> = None;
        let words: Vec<&str> = text.split_whitespace().collect();
        for (index, word) in words.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|before| words.get(before)).copied();
            let rest = evidence.take_code(before, word, words.get(index + 1).copied());
            if let Some(status) = status_in(rest) {
                if evidence.code.is_none_or(|code| code / 100 == status.class) {
                    noted = Some(noted.map_or(status, |noted| noted.or(status)));
                }
            } else if rest == "said:" {
                // The name of the host before it may contain any word too.
                let end = evidence.text.rfind(' ').unwrap_or_default();
                evidence.text.truncate(end);
                evidence.push(rest);
            } else if !rest.is_empty() {
                evidence.push(rest);
            }
        }
        evidence.status = [given, noted].into_iter().flatten().reduce(Status::or);
        evidence
    }

    /// Whether the server asks to try again.
    pub(super) fn is_temporary(&self) -> bool {
        match (self.code, self.status) {
            (Some(400..500), _) => true,
            // Reports call failures 4.0.0 or 5.0.0 that they know nothing about.
            (Some(_), Some(status)) => status.class == 4 && !status.is_generic(),
            (None, Some(status)) => status.class == 4,
            (_, None) => false,
        }
    }

    /// A word without a reply code at its beginning, which is noted if it is the first one.
    fn take_code<'a>(&mut self, before: Option<&str>, word: &'a str, after: Option<&str>) -> &'a str {
        let bare = word.trim_start_matches(['<', '"', '\'', '(']);
        let Some((digits, rest)) = bare.split_at_checked(3) else { return word };
        let Some(code) = digits.parse().ok().filter(|code| (400..600).contains(code)) else { return word };
        let continued = rest.strip_prefix('-');
        if !rest.is_empty() && continued.is_none() {
            return word;
        }
        let follows = before.is_none_or(|before| before.ends_with([':', ';', '>']));
        let leads = continued.is_some() || after.and_then(status_in).is_some();
        if self.code.is_none() && (follows || leads) {
            self.code = Some(code);
        }
        if self.code == Some(code) { continued.unwrap_or_default() } else { word }
    }

    /// Adds a word to the text; of an address only what stands around it.
    fn push(&mut self, word: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        let is_address = |c: char| c.is_alphanumeric() || "@.!#$%&*+/=?^_`{|}~-".contains(c);
        match word.find('@').filter(|_| !word.contains("://")) {
            Some(at) => {
                let start = word[..at].rfind(|c| !is_address(c)).map_or(0, |start| start + 1);
                let end = word[at..].find(|c| !is_address(c)).map_or(word.len(), |end| at + end);
                self.text.push_str(word.get(..start).unwrap_or_default());
                self.text.push('@');
                self.text.push_str(word.get(end..).unwrap_or_default());
            }
            None => self.text.push_str(word),
        }
    }
}

/// The status that a word is.
fn status_in(word: &str) -> Option<Status> {
    Status::parse(word.trim_matches(|c: char| !c.is_ascii_digit()))
}
