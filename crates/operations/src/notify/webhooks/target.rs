//! The URLs that a webhook may have.
//!
//! This is the first of two checks: what a name resolves to is only known at connect time, so every address is
//! checked again right before the connection.

use mail::net::is_public;
use url::{Host, Url};

use crate::core::error::{Error, Result};

/// Names that conventionally lead to this host or its network.
const LOCAL_NAMES: [&str; 5] = ["localhost", "local", "internal", "localdomain", "home.arpa"];

/// Checks a URL and normalises it, so that every spelling of an IP address looks the same.
pub(crate) fn clean_url(text: &str, allow_private: bool) -> Result<String> {
    let invalid = |message: &str| Error::invalid("url", message);
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(invalid("must not have white space or control characters"));
    }
    let mut url = Url::parse(text).map_err(|_| invalid("expected a URL such as https://example.com/hook"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("must begin with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("must hold no user name or password"));
    }
    check_target(&url, allow_private).map_err(invalid)?;
    url.set_fragment(None);
    if url.as_str().len() > 2048 {
        return Err(invalid("must have at most 2048 characters"));
    }
    Ok(url.into())
}

/// Refuses a forbidden target, without DNS.
pub(crate) fn check_target(url: &Url, allow_private: bool) -> Result<(), &'static str> {
    let public = match url.host() {
        None => return Err("must name a host"),
        Some(_) if allow_private => return Ok(()),
        Some(Host::Ipv4(address)) => is_public(address.into()),
        Some(Host::Ipv6(address)) => is_public(address.into()),
        Some(Host::Domain(name)) => !is_local_name(name),
    };
    if !public {
        return Err("must lead to a public address");
    }
    // Other ports belong to other protocols, which a request could be crafted for.
    if !matches!(url.port_or_known_default(), Some(80 | 443)) {
        return Err("must use port 80 or 443");
    }
    Ok(())
}

fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    !name.contains('.')
        || LOCAL_NAMES
            .iter()
            .any(|local| name.strip_suffix(local).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This host and its neighbours, and ports of other protocols.
    const PRIVATE: &[&str] = &[
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.01/",
        "http://017700000001/",
        "http://127.0.0.1./",
        "http://１２７.０.０.１/",
        "http://127。0。0。1/",
        "http://%31%32%37.0.0.1/",
        "http://0/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
        "http://172.16.5.4/",
        "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://100.64.0.1/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fe80::1]/",
        "http://[fc00::1]/",
        "http://[fd00:ec2::254]/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://metadata.google.internal/",
        "http://printer.local/",
        "http://intranet/",
        "https://example.com:8080/",
        "https://example.com:25/",
        "http://example.com:22/",
    ];

    /// What is refused whatever the operator allows.
    const IMPOSSIBLE: &[&str] = &[
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "javascript:alert(1)",
        "example.com/hook",
        "//example.com/",
        "https://",
        "https://user@example.com/",
        "https://user:secret@example.com/",
        "https://:secret@example.com/",
        "https://exa mple.com/",
        "https://example.com/\r\nx: y",
        "https://[::1/",
        "http://1.2.3.4.5/",
        "",
    ];

    // rules: HOOK-4
    #[test]
    fn private_targets_are_refused_in_any_spelling() {
        for refused in PRIVATE.iter().chain(IMPOSSIBLE) {
            assert!(clean_url(refused, false).is_err(), "{refused}");
        }
        for refused in IMPOSSIBLE {
            assert!(clean_url(refused, true).is_err(), "{refused}");
        }
        assert_eq!(
            clean_url("HTTPS://Example.COM/Hook?a=b#c", false).unwrap(),
            "https://example.com/Hook?a=b"
        );
        assert_eq!(clean_url("http://bücher.example", false).unwrap(), "http://xn--bcher-kva.example/");
        assert!(clean_url("https://93.184.215.14/hook", false).is_ok());
        assert!(clean_url("https://[2606:2800:21f::1]/hook", false).is_ok());
        assert_eq!(clean_url("http://2130706433:9999/", true).unwrap(), "http://127.0.0.1:9999/");
    }
}
