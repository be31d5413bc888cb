//! SMTP commands, parsed from one line without its end.

use super::{
    path::{self, ForwardPath, ReversePath},
    reply::{self, Reply},
};

/// The longest command line with its end (RFC 5321, section 4.5.3.1.4).
pub(super) const MAX_LINE_BYTES: usize = 512;
/// The longest line of MAIL and RCPT, with parameters.
pub(super) const MAX_PATH_LINE_BYTES: usize = 2000;
/// The longest HELO name.
const MAX_HELO_BYTES: usize = 255;

/// A valid command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Hello { verb: Hello, name: String },
    Mail(Mail),
    Rcpt(ForwardPath),
    Data,
    Bdat { size: u64, last: bool },
    StartTls,
    Rset,
    Noop,
    Vrfy,
    Expn,
    Help,
    Quit,
}

/// The greeting commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hello {
    Helo,
    Ehlo,
    Lhlo,
}

/// The arguments of MAIL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mail {
    pub(super) from: ReversePath,
    pub(super) size: Option<u64>,
    /// BODY=BINARYMIME: the content must come by BDAT.
    pub(super) binary: bool,
    /// SMTPUTF8: addresses may be internationalised.
    pub(super) utf8: bool,
}

/// Why a line is not a valid command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CommandError {
    /// Reply and continue.
    Refused(Reply),
    /// Reply and close: what follows cannot be told apart from commands.
    Fatal(Reply),
}

impl From<Reply> for CommandError {
    fn from(reply: Reply) -> Self {
        Self::Refused(reply)
    }
}

/// The path that an invalid line names.
pub(super) enum NamedPath {
    /// A sender, in MAIL.
    Sender(String),
    /// A recipient, in RCPT.
    Recipient(String),
    /// None.
    None,
}

/// The path that an invalid line names, for the record. Parameters are left out.
pub(super) fn names(line: &[u8]) -> NamedPath {
    let text = String::from_utf8_lossy(line);
    let Some((verb, rest)) = text.split_once(' ') else { return NamedPath::None };
    let path = |keyword: &str| {
        let named = after_keyword(rest.trim_matches(' '), keyword).unwrap_or(rest);
        let word = || named.split(' ').next().unwrap_or_default();
        path::split(named).map_or_else(word, |(path, _)| path).to_owned()
    };
    if verb.eq_ignore_ascii_case("MAIL") {
        NamedPath::Sender(path("FROM:"))
    } else if verb.eq_ignore_ascii_case("RCPT") {
        NamedPath::Recipient(path("TO:"))
    } else {
        NamedPath::None
    }
}

/// The longest line for a verb, with its end.
pub(super) fn max_line(line: &[u8]) -> usize {
    let verb = line.get(..5).unwrap_or_default();
    let long = verb.eq_ignore_ascii_case(b"MAIL ") || verb.eq_ignore_ascii_case(b"RCPT ");
    if long { MAX_PATH_LINE_BYTES } else { MAX_LINE_BYTES }
}

impl Command {
    /// Parses a line. `utf8` tells whether recipients may be internationalised.
    pub(super) fn parse(line: &[u8], utf8: bool) -> Result<Self, CommandError> {
        let text = std::str::from_utf8(line).map_err(|_| reply::NOT_TEXT)?;
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim_matches(' ');
        // What follows a malformed BDAT is content of unknown length, so this is checked first.
        if verb.eq_ignore_ascii_case("BDAT") {
            return bdat(rest).ok_or(CommandError::Fatal(reply::BDAT_SYNTAX));
        }
        if text.contains(|character: char| character.is_control()) {
            return Err(reply::NOT_TEXT.into());
        }
        // Every verb has at most eight characters.
        let mut upper = [0; 8];
        let Some(characters) = upper.get_mut(..verb.len()) else { return Err(reply::UNKNOWN.into()) };
        characters.copy_from_slice(verb.as_bytes());
        characters.make_ascii_uppercase();
        match &*characters {
            b"HELO" => hello(Hello::Helo, rest),
            b"EHLO" => hello(Hello::Ehlo, rest),
            b"LHLO" => hello(Hello::Lhlo, rest),
            b"MAIL" => mail(rest),
            b"RCPT" => rcpt(rest, utf8),
            b"DATA" => alone(rest, Self::Data),
            b"STARTTLS" => alone(rest, Self::StartTls),
            b"RSET" => alone(rest, Self::Rset),
            b"QUIT" => alone(rest, Self::Quit),
            b"NOOP" => Ok(Self::Noop),
            b"HELP" => Ok(Self::Help),
            b"VRFY" if rest.is_empty() => Err(reply::VRFY_SYNTAX.into()),
            b"VRFY" => Ok(Self::Vrfy),
            b"EXPN" => Ok(Self::Expn),
            // An HTTP request, perhaps a cross-protocol attack through a browser: do not read the rest.
            b"GET" | b"POST" | b"PUT" | b"HEAD" | b"OPTIONS" | b"CONNECT" => {
                Err(CommandError::Fatal(reply::NOT_MAIL))
            }
            _ => Err(reply::UNKNOWN.into()),
        }
    }
}

fn alone(rest: &str, command: Command) -> Result<Command, CommandError> {
    if rest.is_empty() { Ok(command) } else { Err(reply::NO_PARAMETERS.into()) }
}

/// The name goes into a Received line, so it must not end one or open a comment.
fn hello(verb: Hello, name: &str) -> Result<Command, CommandError> {
    let usual = |byte: u8| byte.is_ascii_graphic() && !b"()<>@,;\\\"".contains(&byte);
    if name.is_empty() || name.len() > MAX_HELO_BYTES || !name.bytes().all(usual) {
        return Err(reply::HELLO_SYNTAX.into());
    }
    Ok(Command::Hello { verb, name: name.to_owned() })
}

/// What follows `FROM:` or `TO:`; a space after the colon is a common mistake and accepted.
fn after_keyword<'a>(text: &'a str, keyword: &str) -> Option<&'a str> {
    let (word, rest) = text.split_at_checked(keyword.len())?;
    word.eq_ignore_ascii_case(keyword).then(|| rest.trim_start_matches(' '))
}

fn mail(rest: &str) -> Result<Command, CommandError> {
    let (path, words) = after_keyword(rest, "FROM:")
        .and_then(path::split)
        .ok_or(CommandError::Refused(reply::MAIL_SYNTAX))?;
    let (mut size, mut body, mut utf8) = (None, None, false);
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let known = if name.eq_ignore_ascii_case("SIZE") {
            size.replace(value.and_then(number).ok_or(CommandError::Refused(reply::BAD_PARAMETER))?).is_none()
        } else if name.eq_ignore_ascii_case("BODY") {
            body.replace(value.and_then(is_binary).ok_or(CommandError::Refused(reply::BAD_PARAMETER))?)
                .is_none()
        } else if name.eq_ignore_ascii_case("SMTPUTF8") {
            value.is_none() && !std::mem::replace(&mut utf8, true)
        } else {
            return Err(reply::UNKNOWN_PARAMETER.into());
        };
        if !known {
            return Err(reply::BAD_PARAMETER.into());
        }
    }
    let from = ReversePath::parse(path, utf8)?;
    Ok(Command::Mail(Mail { from, size, binary: body.unwrap_or(false), utf8 }))
}

/// Whether a BODY value is BINARYMIME.
fn is_binary(kind: &str) -> Option<bool> {
    if kind.eq_ignore_ascii_case("BINARYMIME") {
        return Some(true);
    }
    (kind.eq_ignore_ascii_case("7BIT") || kind.eq_ignore_ascii_case("8BITMIME")).then_some(false)
}

fn rcpt(rest: &str, utf8: bool) -> Result<Command, CommandError> {
    let (path, words) =
        after_keyword(rest, "TO:").and_then(path::split).ok_or(CommandError::Refused(reply::RCPT_SYNTAX))?;
    if words.contains(|character| character != ' ') {
        return Err(reply::UNKNOWN_PARAMETER.into());
    }
    Ok(Command::Rcpt(ForwardPath::parse(path, utf8)?))
}

fn bdat(rest: &str) -> Option<Command> {
    let (digits, word) = rest.split_once(' ').unwrap_or((rest, ""));
    let last = word.eq_ignore_ascii_case("LAST");
    (last || word.is_empty()).then_some(Command::Bdat { size: number(digits)?, last })
}

/// Decimal digits, at most 20 of them (RFC 1870); saturates.
fn number(digits: &str) -> Option<u64> {
    let sound = (1..=20).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    sound.then(|| digits.parse().unwrap_or(u64::MAX))
}
