//! Which local parts can be hosted on the service's own domains: a subset of what RFC 5321 allows.

/// The separators of a hosted local part.
const SEPARATORS: [char; 3] = ['.', '_', '-'];

/// Names that readers trust, that standards give a meaning or that machines write to, sorted and without
/// separators.
///
/// Words under five characters are listed because of spellings such as `r.o.o.t`.
pub(super) const RESERVED: [&str; 68] = [
    "abuse",
    "accounts",
    "admin",
    "administrator",
    "alerts",
    "api",
    "autoconfig",
    "autodiscover",
    "billing",
    "bounce",
    "bounces",
    "compliance",
    "contact",
    "daemon",
    "dmarc",
    "dns",
    "donotreply",
    "everyone",
    "feedback",
    "finance",
    "ftp",
    "help",
    "helpdesk",
    "hostmaster",
    "imap",
    "info",
    "jobs",
    "legal",
    "list",
    "mail",
    "mailer",
    "mailerdaemon",
    "marketing",
    "moderator",
    "news",
    "nobody",
    "noc",
    "noreply",
    "notifications",
    "notify",
    "null",
    "office",
    "official",
    "operator",
    "owner",
    "payments",
    "postmaster",
    "press",
    "privacy",
    "root",
    "sales",
    "security",
    "service",
    "smtp",
    "spam",
    "ssladmin",
    "staff",
    "status",
    "support",
    "sysadmin",
    "system",
    "undisclosedrecipients",
    "unsubscribe",
    "usenet",
    "uucp",
    "verify",
    "webmaster",
    "www",
];

/// Why a local part cannot be hosted; each message is one sentence for the person who chose it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostedLocalPartError {
    /// Too short or too long.
    #[error("The mailbox name must have 5 to 30 characters.")]
    Length,
    /// A character outside the allowed set.
    #[error(
        "The mailbox name may hold letters a to z, digits, dots, underscores and hyphens, but not {0:?}."
    )]
    Character(char),
    /// A separator at either end, or two in a row.
    #[error(
        "The mailbox name must begin and end with a letter or digit and must not have two separators in a row."
    )]
    Separator,
    /// A reserved word, in whatever spelling.
    #[error("The mailbox name {0:?} is reserved.")]
    Reserved(String),
}

/// Checks a local part requested on a domain of the service.
pub fn hosted_local_part(local: &str) -> Result<(), HostedLocalPartError> {
    let refused = |c: &char| !c.is_ascii_alphanumeric() && !SEPARATORS.contains(c);
    if let Some(character) = local.chars().find(refused) {
        return Err(HostedLocalPartError::Character(character));
    }
    if !(5..=30).contains(&local.len()) {
        return Err(HostedLocalPartError::Length);
    }
    if local.split(SEPARATORS).any(str::is_empty) {
        return Err(HostedLocalPartError::Separator);
    }
    let squeezed = local.replace(SEPARATORS, "").to_ascii_lowercase();
    if RESERVED.binary_search(&squeezed.as_str()).is_ok() {
        return Err(HostedLocalPartError::Reserved(local.to_owned()));
    }
    Ok(())
}
