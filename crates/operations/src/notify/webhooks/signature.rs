//! Secrets and signatures according to the Standard Webhooks specification.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use model::Timestamp;
use sha2::Sha256;

use crate::core::app::App;

const PREFIX: &str = "whsec_";

/// A new secret: `whsec_` and 256 random bits in base64.
pub(super) fn new_secret(app: &App) -> String {
    let mut bytes = [0; 32];
    app.entropy().fill(&mut bytes);
    format!("{PREFIX}{}", STANDARD.encode(bytes))
}

/// The three headers of a delivery, signed with each secret.
pub(super) fn headers(
    id: &str,
    now: Timestamp,
    body: &[u8],
    secrets: &[String],
) -> Vec<(&'static str, String)> {
    let seconds = now.as_micros().div_euclid(1_000_000).to_string();
    let signatures: Vec<String> =
        secrets.iter().filter_map(|secret| sign(secret, id, &seconds, body)).collect();
    vec![
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", seconds),
        ("webhook-signature", signatures.join(" ")),
    ]
}

fn sign(secret: &str, id: &str, seconds: &str, body: &[u8]) -> Option<String> {
    let key = STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    for part in [id.as_bytes(), b".", seconds.as_bytes(), b".", body] {
        mac.update(part);
    }
    Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of the specification's reference libraries.
    // rules: HOOK-2
    #[test]
    fn the_published_example_is_signed_alike() {
        let signed = sign(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "1614265330",
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }
}
