//! Replies: a code, an enhanced code (RFC 3463) and a text, and the replies of the protocol itself.

use std::{borrow::Cow, fmt, io::Write};

/// The longest text of a reply, so that its line stays within the 512 bytes of RFC 5321.
const MAX_TEXT: usize = 480;

/// One line of reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    code: u16,
    enhanced: &'static str,
    text: Cow<'static, str>,
    /// The reason as a metrics label; empty where it is not counted.
    reason: &'static str,
}

impl Reply {
    /// A reply such as `550`, `5.1.1`, `No such mailbox`.
    pub const fn new(code: u16, enhanced: &'static str, text: &'static str) -> Self {
        Self { code, enhanced, text: Cow::Borrowed(text), reason: "" }
    }

    /// The same with a metrics label. Clients do not see it.
    pub const fn because(mut self, reason: &'static str) -> Self {
        self.reason = reason;
        self
    }

    /// The metrics label.
    pub fn reason(&self) -> &'static str {
        match self.reason {
            "" if self.is_temporary() => "temporary",
            "" => "protocol",
            reason => reason,
        }
    }

    /// The same with another text. Characters other than visible ASCII are replaced when it is sent.
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Cow::Owned(text.into());
        self
    }

    /// The three digits.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is a transient failure (4yz).
    pub fn is_temporary(&self) -> bool {
        (400..500).contains(&self.code)
    }

    /// The reply as a refusal: any code other than 4yz and 5yz becomes a local error.
    pub(super) fn refusing(self) -> Self {
        if (400..600).contains(&self.code) { self } else { LOCAL_FAULT }
    }

    /// Appends the line.
    pub(super) fn write(&self, output: &mut Vec<u8>) {
        // Writing to a vector cannot fail.
        let _ = write!(output, "{} ", self.code);
        if !self.enhanced.is_empty() {
            output.extend_from_slice(self.enhanced.as_bytes());
            output.push(b' ');
        }
        write_text(&self.text, output);
    }
}

/// The line as sent, before characters are replaced.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.code)?;
        if !self.enhanced.is_empty() {
            write!(f, "{} ", self.enhanced)?;
        }
        f.write_str(&self.text)
    }
}

/// Appends a text in visible ASCII, and the end of the line.
fn write_text(text: &str, output: &mut Vec<u8>) {
    let harmless = |byte: u8| if byte == b' ' || byte.is_ascii_graphic() { byte } else { b'?' };
    output.extend(text.bytes().take(MAX_TEXT).map(harmless));
    output.extend_from_slice(b"\r\n");
}

pub(super) const OK: Reply = Reply::new(250, "2.0.0", "Ok");
pub(super) const SENDER_OK: Reply = Reply::new(250, "2.1.0", "Ok");
pub(super) const RECIPIENT_OK: Reply = Reply::new(250, "2.1.5", "Ok");
pub(super) const GO_AHEAD: Reply = Reply::new(354, "", "End data with <CR><LF>.<CR><LF>");
pub(super) const GOODBYE: Reply = Reply::new(221, "2.0.0", "Bye");
pub(super) const TLS_READY: Reply = Reply::new(220, "2.0.0", "Ready to start TLS");
pub(super) const HELP: Reply =
    Reply::new(214, "2.0.0", "EHLO HELO LHLO STARTTLS MAIL RCPT DATA BDAT RSET NOOP VRFY HELP QUIT");
pub(super) const CANNOT_VERIFY: Reply = Reply::new(252, "2.0.0", "Send a mail and see");

pub(super) const BARE_LINE_END: Reply = Reply::new(
    550,
    "5.6.0",
    "A bare line feed or carriage return was received; lines must end with <CR><LF>",
);
pub(super) const OUT_OF_STEP: Reply =
    Reply::new(554, "5.5.0", "You sent more before our reply, where pipelining is not allowed");
pub(super) const TALKED_FIRST: Reply = Reply::new(554, "5.5.0", "You sent before our greeting");
pub(super) const NOT_MAIL: Reply = Reply::new(554, "5.5.0", "This is a mail server");
pub(super) const UNKNOWN: Reply = Reply::new(500, "5.5.1", "Command not recognised");
pub(super) const NOT_TEXT: Reply =
    Reply::new(500, "5.5.2", "A command must be text without control characters");
pub(super) const LINE_TOO_LONG: Reply = Reply::new(500, "5.5.2", "Line too long");
pub(super) const NO_LISTS: Reply = Reply::new(502, "5.5.1", "EXPN is not offered");
pub(super) const NO_TLS: Reply = Reply::new(502, "5.5.1", "STARTTLS is not offered");
pub(super) const HAS_TLS: Reply = Reply::new(503, "5.5.1", "TLS is already in use");
pub(super) const SAY_HELLO: Reply = Reply::new(503, "5.5.1", "Say EHLO first");
pub(super) const NESTED_MAIL: Reply = Reply::new(503, "5.5.1", "A sender was already given");
pub(super) const NEED_MAIL: Reply = Reply::new(503, "5.5.1", "Give the sender with MAIL first");
pub(super) const NEED_RCPT: Reply = Reply::new(503, "5.5.1", "Give a recipient with RCPT first");
pub(super) const NO_RECIPIENTS: Reply = Reply::new(554, "5.5.1", "No valid recipients");
pub(super) const WITHIN_BDAT: Reply =
    Reply::new(503, "5.5.1", "The message has begun with BDAT and must end with it");
pub(super) const BINARY_NEEDS_BDAT: Reply = Reply::new(503, "5.5.1", "BODY=BINARYMIME needs BDAT");
pub(super) const NO_PARAMETERS: Reply = Reply::new(501, "5.5.4", "This command has no parameters");
pub(super) const HELLO_SYNTAX: Reply = Reply::new(501, "5.5.4", "Say your host name");
pub(super) const VRFY_SYNTAX: Reply = Reply::new(501, "5.5.4", "Syntax: VRFY address");
pub(super) const MAIL_SYNTAX: Reply = Reply::new(501, "5.5.4", "Syntax: MAIL FROM:<address>");
pub(super) const RCPT_SYNTAX: Reply = Reply::new(501, "5.5.4", "Syntax: RCPT TO:<address>");
pub(super) const BDAT_SYNTAX: Reply = Reply::new(501, "5.5.4", "Syntax: BDAT size [LAST]");
pub(super) const BAD_PARAMETER: Reply = Reply::new(501, "5.5.4", "A parameter is malformed or stands twice");
pub(super) const UNKNOWN_PARAMETER: Reply = Reply::new(555, "5.5.4", "Parameter not recognised");
pub(super) const BAD_SENDER: Reply = Reply::new(553, "5.1.7", "This is not a sender's address that we take");
pub(super) const BAD_RECIPIENT: Reply =
    Reply::new(501, "5.1.3", "This is not a mail address").because("address");
pub(super) const NO_RELAY: Reply = Reply::new(550, "5.7.1", "We do not relay").because("relay");
pub(super) const NEEDS_UTF8: Reply =
    Reply::new(553, "5.6.7", "An internationalised address needs SMTPUTF8").because("address");
pub(super) const TOO_LARGE: Reply = Reply::new(552, "5.3.4", "The message is too large");
pub(super) const NO_MEMORY: Reply =
    Reply::new(452, "4.3.1", "Too many messages are coming in; try again later");
pub(super) const TOO_MANY_RECIPIENTS: Reply =
    Reply::new(452, "4.5.3", "Too many recipients").because("too_many");
pub(super) const LOCAL_FAULT: Reply = Reply::new(451, "4.3.0", "A fault of ours; try again later");
pub(super) const TOO_MANY_ERRORS: Reply = Reply::new(421, "4.7.0", "Too many errors");
pub(super) const TOO_MANY_COMMANDS: Reply = Reply::new(421, "4.7.0", "Too many commands without a message");
pub(super) const TIMED_OUT: Reply = Reply::new(421, "4.4.2", "You took too long");
pub(super) const STOPPING: Reply = Reply::new(421, "4.3.2", "The service is stopping; try again later");
