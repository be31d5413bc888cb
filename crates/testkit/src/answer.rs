//! The service's response to a call, with shortcuts for assertions.

use axum::http::HeaderMap;
use serde_json::Value;

/// The body of an error with the default texts of its kind, byte for byte.
pub fn error_text(kind: operations::ErrorKind) -> String {
    error_text_with(kind.message(), kind)
}

/// The same, with a message of its own.
pub fn error_text_with(message: &str, kind: operations::ErrorKind) -> String {
    let fix = kind.fix().map(|fix| format!(r#","fix":"{fix}""#)).unwrap_or_default();
    format!(r#"{{"error":"{message}","code":"{}"{fix}}}"#, kind.code())
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The bytes of the body.
    pub bytes: bytes::Bytes,
}

impl Answer {
    /// The body as JSON; null when it is empty.
    pub fn json(&self) -> Value {
        if self.bytes.is_empty() { Value::Null } else { serde_json::from_slice(&self.bytes).unwrap() }
    }
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
    /// The code of an error, or an empty string.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
    /// A header as text, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
    /// The secret of the session cookie in the response.
    pub fn session_secret(&self) -> String {
        let cookie = self.header("set-cookie").split(';').next().unwrap_or_default().to_owned();
        cookie.split_once('=').unwrap().1.to_owned()
    }
    /// Checks the status and, for an error, the code.
    #[track_caller]
    pub fn expect(&self, status: u16, code: &str) -> &Self {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{}", self.text());
        self
    }
    /// Checks that the call succeeded and returns the body.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{}: {}", self.status, self.text());
        self.json()
    }
}
