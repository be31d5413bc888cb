//! Parsing and matching of MTA-STS policies (RFC 8461, section 3.2).

/// The largest file that is read.
pub const MAX_POLICY_BYTES: usize = 64 * 1024;

/// Upper bound for `max_age`, in seconds: a year.
const MAX_AGE_SECONDS: u32 = 31_557_600;

/// The most patterns of servers that are kept.
const MAX_PATTERNS: usize = 200;

/// The mode of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `enforce`: mail must not be sent to a server that does not match or has no valid certificate.
    Enforce,
    /// `testing`: failures are only reported.
    Testing,
    /// `none`: the policy is withdrawn.
    None,
}

/// The policy of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The mode.
    pub mode: Mode,
    /// Its servers, some with `*.` for any first label, in lower case.
    pub mx: Vec<String>,
    /// The lifetime in seconds.
    pub max_age: u32,
}

/// Why a policy is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// Too large, or not text.
    #[error("The policy is not a text of at most 64 KiB.")]
    Text,
    /// Unknown version.
    #[error("The policy is not of version STSv1.")]
    Version,
    /// Missing or unknown mode.
    #[error("The policy has no mode.")]
    Mode,
    /// Missing `max_age`.
    #[error("The policy has no age.")]
    Age,
    /// No MX patterns.
    #[error("The policy names no servers.")]
    Servers,
}

impl Policy {
    /// Parses a policy. Of a repeated field the first counts; unknown fields are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Self, PolicyError> {
        let text = std::str::from_utf8(bytes).ok().filter(|_| bytes.len() <= MAX_POLICY_BYTES);
        let fields: Vec<(&str, &str)> = text
            .ok_or(PolicyError::Text)?
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        let field = |name: &str| fields.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        if field("version") != Some("STSv1") {
            return Err(PolicyError::Version);
        }
        let mode = match field("mode") {
            Some("enforce") => Mode::Enforce,
            Some("testing") => Mode::Testing,
            Some("none") => Mode::None,
            _ => return Err(PolicyError::Mode),
        };
        let age = field("max_age").filter(|age| age.bytes().all(|byte| byte.is_ascii_digit()));
        let max_age: u32 = age.and_then(|age| age.parse().ok()).ok_or(PolicyError::Age)?;
        let servers = fields.iter().filter(|(key, value)| *key == "mx" && is_pattern(value));
        let mx: Vec<String> =
            servers.map(|(_, value)| value.to_ascii_lowercase()).take(MAX_PATTERNS).collect();
        if mx.is_empty() && mode != Mode::None {
            return Err(PolicyError::Servers);
        }
        Ok(Self { mode, mx, max_age: max_age.min(MAX_AGE_SECONDS) })
    }

    /// Whether mail to a server of that name must be encrypted with a valid certificate, or not be sent.
    pub fn enforces(&self) -> bool {
        self.mode == Mode::Enforce
    }

    /// Whether a server is one of the domain's.
    pub fn matches(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.mx.iter().any(|pattern| match pattern.strip_prefix("*.") {
            Some(parent) => {
                host.split_once('.').is_some_and(|(first, rest)| !first.is_empty() && rest == parent)
            }
            None => *pattern == host,
        })
    }
}

/// Whether a text is a host name, optionally with `*` as its first label.
fn is_pattern(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
}
