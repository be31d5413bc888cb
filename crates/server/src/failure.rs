//! Why a command failed, as text for the operator or as JSON for scripts.

use std::{error::Error as StdError, fmt};

use operations::{Detail, ErrorKind};
use serde_json::{Map, Value, json};

use crate::config::Problem;

/// The result of a command.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    message: String,
    code: &'static str,
    details: Vec<Detail>,
    fix: Option<String>,
    /// Figures for programs, such as how much was done before the failure.
    values: Box<Map<String, Value>>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Failure {
    /// A failure without a code of its own.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: "failed",
            details: Vec::new(),
            fix: None,
            values: Box::default(),
            source: None,
        }
    }

    /// All mistakes of the configuration.
    pub fn configuration(problems: &[Problem]) -> Self {
        let details = problems
            .iter()
            .map(|problem| Detail {
                path: problem.key.clone(),
                message: format!("{} ({})", problem.message, problem.origin),
            })
            .collect();
        Self {
            code: "configuration_invalid",
            details,
            ..Self::new("The configuration has mistakes")
                .with_fix("Correct them where they are set; `agent-mailbox config check` checks again.")
        }
    }

    /// Adds a hint on what to do next.
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Adds a hint, unless the failure has one.
    pub fn or_fix(self, fix: &str) -> Self {
        if self.fix.is_some() { self } else { self.with_fix(fix) }
    }

    /// Gives it a code of its own.
    pub fn with_code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// Adds a figure for programs.
    pub fn with_value(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.values.insert(name.to_owned(), value.into());
        self
    }

    /// The same shape as the API's errors.
    pub fn to_json(&self) -> Value {
        let mut object = json!({ "error": self.message, "code": self.code });
        if !self.details.is_empty() {
            let detail = |detail: &Detail| json!({ "path": detail.path, "message": detail.message });
            object["details"] = self.details.iter().map(detail).collect();
        }
        if let Some(fix) = &self.fix {
            object["fix"] = json!(fix);
        }
        for (name, value) in self.values.iter() {
            object[name] = value.clone();
        }
        object
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for detail in &self.details {
            let path = if detail.path.is_empty() { String::new() } else { format!("{}: ", detail.path) };
            write!(f, "\n  {path}{}", detail.message)?;
        }
        if let Some(fix) = &self.fix {
            write!(f, "\n{fix}")?;
        }
        Ok(())
    }
}

impl StdError for Failure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<operations::Error> for Failure {
    fn from(error: operations::Error) -> Self {
        // The causes of internal errors are hidden from HTTP callers; the operator needs them.
        let internal = matches!(
            error.kind(),
            ErrorKind::Internal | ErrorKind::StorageUnavailable | ErrorKind::Overloaded
        );
        Self {
            message: if internal { error.to_string() } else { error.message().to_owned() },
            code: error.kind().code(),
            details: error.details().to_vec(),
            fix: error.fix().map(ToOwned::to_owned),
            values: Box::default(),
            source: Some(error.into()),
        }
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        let message = sentence(&error.to_string());
        Self { message, ..operations::Error::from(error).into() }
    }
}

impl From<store::blobs::BlobError> for Failure {
    fn from(error: store::blobs::BlobError) -> Self {
        store::Error::from(error).into()
    }
}

impl From<store::vault::VaultError> for Failure {
    fn from(error: store::vault::VaultError) -> Self {
        let message = model::causes(&error);
        Self { source: Some(error.into()), ..Self::new(sentence(&message)) }
    }
}

/// A message with a capital first character.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|character| character.to_uppercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_reads_every_cause_once() {
        let disk = store::Error::Unavailable(std::io::Error::other("disk full").into());
        let failure = Failure::from(operations::Error::from(disk));
        assert_eq!(
            failure.to_string(),
            "The storage is not available: the store is not available: disk full"
        );
        assert_eq!(model::causes(&failure), failure.to_string());
        assert!(failure.source().and_then(StdError::source).is_some());
    }
}
