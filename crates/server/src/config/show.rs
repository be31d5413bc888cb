//! The configuration in force as TOML, with where each value comes from and without secrets.

use std::fmt::Write as _;

use toml::Value;
use url::Url;

use super::layers::{Layers, Sources};

/// Stands where a secret is.
const HIDDEN: &str = "***";

/// Shows every option. Mistakes do not matter here: what was written is shown as it is.
pub fn show(sources: &Sources) -> String {
    let layers = Layers::load(sources);
    let mut text = String::new();
    let mut section = "";
    for entry in &layers.entries {
        let (of, name) = entry.key.rsplit_once('.').unwrap_or(("", &entry.key));
        if of != section {
            let _ = write!(text, "\n[{of}]\n");
            section = of;
        }
        let value = without_secrets(&entry.key, &entry.value);
        let origin = entry.origin.as_ref().map(|origin| format!("  # {origin}")).unwrap_or_default();
        let _ = writeln!(text, "{name} = {value}{origin}");
    }
    text
}

fn without_secrets(key: &str, value: &Value) -> Value {
    match (key, value) {
        ("vault.master_key" | "telegram.bot_token" | "telegram.webhook_secret", Value::String(text))
            if !text.is_empty() =>
        {
            HIDDEN.into()
        }
        ("payments.facilitator_headers", Value::Array(lines)) => {
            Value::Array(lines.iter().map(|_| HIDDEN.into()).collect())
        }
        ("database.url" | "blobs.url" | "payments.facilitator", Value::String(text)) => {
            hide_in_url(text).into()
        }
        _ => value.clone(),
    }
}

fn hide_in_url(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        // A path has no secret, but a connection string of another form may.
        return if text.contains('=') { HIDDEN.to_owned() } else { text.to_owned() };
    };
    if url.password().is_some() && url.set_password(Some(HIDDEN)).is_err() {
        return HIDDEN.to_owned();
    }
    if url.query().is_some_and(|query| query.to_lowercase().contains("password")) {
        url.set_query(Some(HIDDEN));
    }
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_wherever_they_stand() {
        for (given, shown) in [
            ("postgres://me:hush@db/mail?sslmode=require", "postgres://me:***@db/mail?sslmode=require"),
            ("postgres://db/mail?password=hush", "postgres://db/mail?***"),
            ("s3://AKIA:hush@host/bucket", "s3://AKIA:***@host/bucket"),
            ("host=db password=hush", "***"),
            ("/var/blobs", "/var/blobs"),
            ("", ""),
        ] {
            assert_eq!(hide_in_url(given), shown);
        }
    }
}
