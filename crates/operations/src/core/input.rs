//! Normalises what callers give before it is stored.

use mail::address::Address;

use crate::core::error::{Error, Result};

/// A name without surrounding white space. Control characters and empty names are refused.
pub(crate) fn clean_name(path: &str, name: &str) -> Result<String> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Error::invalid(path, "must not be empty"));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::invalid(path, "must not contain control characters"));
    }
    Ok(name.to_owned())
}

/// An address in the form in which it is stored and compared.
pub(crate) fn clean_email(path: &str, email: &str) -> Result<Address> {
    Address::parse(email.trim()).map_err(|error| Error::invalid(path, error.to_string()))
}
