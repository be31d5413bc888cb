//! The effective configuration as TOML, with the source of each value and without secrets.

use std::fmt::Write as _;

use toml::Value;
use url::Url;

use super::layers::{Entry, Layers, Sources};

/// Replaces a secret.
const HIDDEN: &str = "***";

/// Shows every option. Mistakes are ignored: values are shown as written.
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

/// The same for programs: each option by its dotted name, with its value and where it was set.
pub fn show_json(sources: &Sources) -> serde_json::Value {
    let entry = |entry: &Entry| {
        let value = without_secrets(&entry.key, &entry.value);
        let origin = entry.origin.as_deref().unwrap_or("default");
        (entry.key.clone(), serde_json::json!({ "value": value, "source": origin }))
    };
    serde_json::Value::Object(Layers::load(sources).entries.iter().map(entry).collect())
}

fn without_secrets(key: &str, value: &Value) -> Value {
    match (key, value) {
        (key, Value::String(text)) if is_secret(key) && !text.is_empty() => HIDDEN.into(),
        ("payments.facilitator_headers", Value::Array(lines)) => {
            Value::Array(lines.iter().map(|_| HIDDEN.into()).collect())
        }
        // Many kinds of URL can carry a password; text without one is shown unchanged.
        (key, Value::String(text)) if key.ends_with("url") || key == "payments.facilitator" => {
            hide_in_url(text).into()
        }
        _ => value.clone(),
    }
}

/// Whether an option is a secret, by its name, so that an option added later is not shown by mistake.
fn is_secret(key: &str) -> bool {
    ["master_key", "api_key", "secret", "token", "password"].iter().any(|name| key.ends_with(name))
}

fn hide_in_url(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        // A path has no secret, but a connection string of another form may.
        return if text.contains('=') { HIDDEN.to_owned() } else { text.to_owned() };
    };
    let in_query = url.query().is_some_and(|query| query.to_lowercase().contains("password"));
    if url.password().is_none() && !in_query {
        return text.to_owned();
    }
    if url.password().is_some() && url.set_password(Some(HIDDEN)).is_err() {
        return HIDDEN.to_owned();
    }
    if in_query {
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
            ("smtps://me:hush@relay.test:465", "smtps://me:***@relay.test:465"),
            ("https://mail.test", "https://mail.test"),
        ] {
            assert_eq!(hide_in_url(given), shown);
        }
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        let hush = Value::from("hush");
        for key in ["vault.master_key", "inbound.http_secret", "ai.api_key", "telegram.bot_token"] {
            assert_eq!(without_secrets(key, &hush), HIDDEN.into());
            assert_eq!(without_secrets(key, &"".into()), "".into(), "that nothing is set may be seen");
        }
        assert_eq!(without_secrets("http.listen", &hush), hush);
        let relay = without_secrets("outbound.relay_url", &"smtp://me:hush@relay.test".into());
        assert_eq!(relay, "smtp://me:***@relay.test".into());
    }
}
