//! What a search returns, and how a value is masked so that a finding can be stored and shown.

use std::ops::Range;

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A key, a password or another value that opens something.
    Secret,
    /// Data about a person: a card, an account, an identity number, a list of addresses.
    Personal,
}

/// Something in a text that must not leave unseen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub kind: Kind,
    /// Which shape it has, such as `aws_access_key` or `payment_card`.
    pub name: &'static str,
    /// Where its value stands: bytes of the text that was searched.
    pub range: Range<usize>,
    /// What may be stored and shown of it: never enough to use the value.
    pub masked: String,
}

/// What to search for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Secrets.
    pub secrets: bool,
    /// Personal data.
    pub personal: bool,
}

/// What of a value may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    /// Nothing: a password is guessed from little.
    Hidden,
    /// So many characters of a prefix that all such tokens share (at most four are shown), and the last two.
    Prefix(usize),
    /// The last four digits, as on receipts.
    LastFour,
    /// The last two characters.
    LastTwo,
    /// The first line without its hyphens: the type of a key.
    Header,
}

/// The sign for what is left out.
const ELLIPSIS: char = '…';
/// Of shorter values nothing is shown but a prefix that all share: two characters would be too much.
const MIN_CHARS_FOR_ENDING: usize = 16;

impl Mask {
    pub(crate) fn apply(self, value: &str) -> String {
        let ending = |shown: usize| -> String {
            let dense: Vec<char> = value.chars().filter(|character| character.is_alphanumeric()).collect();
            dense[dense.len().saturating_sub(shown)..].iter().collect()
        };
        match self {
            Self::Hidden => ELLIPSIS.to_string(),
            Self::Prefix(length) => {
                let mut masked: String = value.chars().take(length.min(4)).collect();
                masked.push(ELLIPSIS);
                if value.chars().count() >= MIN_CHARS_FOR_ENDING {
                    masked.push_str(&ending(2));
                }
                masked
            }
            Self::LastFour => format!("{ELLIPSIS}{}", ending(4)),
            Self::LastTwo => format!("{ELLIPSIS}{}", ending(2)),
            Self::Header => format!("{} {ELLIPSIS}", title(value)),
        }
    }
}

/// The type of a key: what stands between the hyphens of its first line, or before its first colon. The key itself may
/// follow on the same line.
fn title(value: &str) -> &str {
    let rest = value.trim_start_matches('-');
    let rest = rest.strip_prefix("BEGIN ").unwrap_or(rest);
    let end = rest.find("-----").or_else(|| rest.find(':')).unwrap_or(0);
    rest[..end].split(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_show_little() {
        assert_eq!(Mask::Hidden.apply("hunter22"), "…");
        assert_eq!(Mask::Prefix(4).apply("ghp_abcdefghijklmnop"), "ghp_…op");
        assert_eq!(Mask::Prefix(3).apply("SG.ab"), "SG.…");
        assert_eq!(Mask::LastFour.apply("4000 1234 5678 9010"), "…9010");
        assert_eq!(Mask::LastTwo.apply("12-34-5"), "…45");
        assert_eq!(Mask::Header.apply("-----BEGIN RSA PRIVATE KEY-----\nMII"), "RSA PRIVATE KEY …");
        assert_eq!(Mask::Header.apply("-----BEGIN EC PRIVATE KEY----- MII -----END"), "EC PRIVATE KEY …");
        assert_eq!(Mask::Header.apply(r"-----BEGIN PRIVATE KEY-----\nMII"), "PRIVATE KEY …");
        assert_eq!(Mask::Header.apply("PuTTY-User-Key-File-3: ssh-rsa\nAAA"), "PuTTY-User-Key-File-3 …");
        assert_eq!(Mask::Header.apply("-----BEGIN"), " …");
    }
}
