//! Events and webhooks on the pages: the types, what a delivery is, and how its signature is verified.

use model::events::EventType;
use schemars::schema_for;
use serde_json::{Value, json};

use super::{
    html::Html,
    prose::paragraphs,
    reference::Reference,
    schema::Shape,
    tables::{row, table},
};

/// Code that verifies a delivery: the language's name for highlighters, its name for people, the code.
pub(super) const VERIFY: [(&str, &str, &str); 2] = [
    ("python", "Python", include_str!("samples/verify_webhook.py")),
    ("typescript", "JavaScript", include_str!("samples/verify_webhook.ts")),
];

/// How a delivery is signed.
pub(super) const SIGNATURE: &str = "Deliveries are signed as in Standard Webhooks (standardwebhooks.com). \
    `webhook-signature` holds one or more signatures, separated by spaces: `v1,` and the base64 of an HMAC-SHA256 over \
    `webhook-id`, a dot, `webhook-timestamp`, a dot and the raw body. The key is what follows `whsec_` in the webhook's secret, \
    decoded from base64. Accept a delivery if any signature matches and the timestamp is less than five minutes away.";

/// What to answer, and what to expect.
pub(super) const DELIVERY: &str = "Answer with any 2xx within 10 seconds. After 408, 429, 5xx or no answer the delivery is \
    retried for about a day. An event can arrive more than once, always with the same `webhook-id`, and out of order: \
    `sequence` is its number in the workspace.";

/// The event types with what they mean.
pub(super) fn types(reference: &Reference) -> Vec<(&'static str, String)> {
    let meanings = Shape::of(reference, &schema_for!(EventType).to_value()).choices();
    let meaning = |name: &str| meanings.iter().find(|(known, _)| known == name).map(|(_, text)| text.clone());
    EventType::ALL.iter().map(|kind| (kind.as_str(), meaning(kind.as_str()).unwrap_or_default())).collect()
}

/// An event, as a webhook and the event log show it.
pub(super) fn example() -> Value {
    json!({
        "id": "evt_01h8xgjy4n7r2v6c0d5t9kqwez",
        "type": "message.received",
        "occurred_at": "2026-07-14T09:00:00.000Z",
        "sequence": 12,
        "workspace_id": "ws_01h8xgjy4n7r2v6c0d5t9kqwez",
        "mailbox_id": "mbx_01h8xgjy4n7r2v6c0d5t9kqwez",
        "data": {
            "email_id": "eml_01h8xgjy4n7r2v6c0d5t9kqwez",
            "thread_id": "thr_01h8xgjy4n7r2v6c0d5t9kqwez",
            "folder_id": "inbox",
            "sender": "Ada <ada@example.com>",
            "recipient": "orders@agents.example",
            "subject": "Your order",
            "snippet": "Thank you for your order.",
        },
    })
}

/// The section of the documentation page.
pub(super) fn section(html: &mut Html, reference: &Reference) {
    paragraphs(
        html,
        "What happens in a workspace is an event. Read them with [listEvents](#listEvents), follow them live with \
         [streamEvents](#streamEvents), or have them posted to your server with [createWebhook](#createWebhook).",
    );
    html.code_block(|html| html.json(&example(), 0));
    table(html, &["Event type", "When"], |html| {
        for (name, meaning) in types(reference) {
            row(html, &format!("`{name}`"), &[&meaning]);
        }
    });
    paragraphs(html, SIGNATURE);
    html.put_with("div.languages", &[("role", "group"), ("aria-label", "Verify a delivery")], |html| {
        for (index, (language, label, code)) in VERIFY.iter().enumerate() {
            let attributes = [("name", "verify-code"), ("open", "")];
            let attributes = if index == 0 { &attributes[..] } else { &attributes[..1] };
            html.put_with("details", attributes, |html| {
                html.line("summary", label);
                html.code_of(language, code.trim_end());
            });
        }
    });
    paragraphs(html, DELIVERY);
}
