//! Example inputs of operations, where names and bounds of the schema alone give none that works.
//!
//! The document shows them, the pages write calls with them, and a test makes every one of those calls. A string such as
//! `$EMAIL_ID` is a variable of the caller's; `docs/call.rs` says where each comes from.

use serde_json::{Value, json};

/// A time in the future. The document is static; pages show a time a day from when they are read instead.
pub(crate) const FUTURE: &str = "2030-01-15T09:00:00.000Z";
/// A time in the past; pages show an hour before they are read instead.
pub(crate) const PAST: &str = "2026-01-15T09:00:00.000Z";

/// A message as bytes.
const MESSAGE: &str = "From: Ada <ada@example.com>\nSubject: Your order\n\nThank you for writing.";

/// The body of a request.
#[expect(clippy::too_many_lines, reason = "a line or two for each operation, and nothing else")]
pub(crate) fn body(id: &str) -> Option<Value> {
    Some(match id {
        "completeSignUp" => json!({ "token": "$SIGN_UP_TOKEN", "password": "a-long-passphrase" }),
        "acceptInvite" => json!({ "token": "$INVITE_TOKEN", "password": "a-long-passphrase" }),
        "switchWorkspace" => json!({ "workspace_id": "$WORKSPACE_ID" }),
        "updateWorkspace" => json!({ "name": "Acme", "timezone": "Europe/Lisbon" }),
        "createInvite" => json!({ "email": "grace@example.com", "role": "member" }),
        "updateMember" => json!({ "role": "admin" }),
        "createApiKey" => json!({ "name": "My agent" }),
        "updateApiKey" => json!({ "scopes": ["read"] }),
        "createEmailDomain" => json!({ "domain": "mail.example.com" }),
        "createMailbox" | "updateMailbox" => json!({ "name": "Orders" }),
        "createFolder" => json!({ "name": "Invoices" }),
        "renameFolder" => json!({ "name": "Paid invoices" }),
        "createCustomLabel" => {
            json!({ "name": "Invoices", "rules": "from:@example.com and has:attachment", "color": "#0f6b62" })
        }
        "updateCustomLabel" => json!({ "name": "Receipts" }),
        "reorderCustomLabels" => json!({ "ids": ["$LABEL_ID"] }),
        "sendEmail" | "checkSendPolicy" => {
            json!({ "to": "$RECIPIENT", "subject": "Your order", "text": "Thank you for your order." })
        }
        "replyToEmail" => json!({ "text": "Thank you for writing." }),
        "forwardEmail" => json!({ "to": "$RECIPIENT", "text": "For your files." }),
        "updateEmail" => json!({ "read": true, "starred": true }),
        "moveEmail" | "moveThread" => json!({ "folderId": "archive" }),
        "bulkReadEmails" => json!({ "ids": ["$EMAIL_ID"], "read": true }),
        "bulkMoveEmails" => json!({ "ids": ["$EMAIL_ID"], "folderId": "archive" }),
        "bulkDeleteEmails" => json!({ "ids": ["$EMAIL_ID"] }),
        "waitForEmail" => json!({ "subject": "order", "after": PAST, "timeout_seconds": 30 }),
        "importEmails" => MESSAGE.into(),
        "saveDraft" => {
            json!({ "to": "$RECIPIENT", "subject": "Your order", "body": "Thank you for your order." })
        }
        "regenerateDraft" => {
            json!({ "draftId": "$DRAFT_ID", "prompt": "Make it shorter.", "body": "Thank you for your order." })
        }
        "scheduleSend" => json!({
            "to": "$RECIPIENT", "subject": "Your order", "body": "Thank you for your order.",
            "scheduled_send_at": FUTURE,
        }),
        "rescheduleSend" => json!({ "scheduled_send_at": FUTURE }),
        "setSendPolicy" => json!({ "new_recipient": "review", "recipients": { "block": ["@example.org"] } }),
        "setMailboxSendPolicy" => json!({ "review": "all" }),
        "createSuppression" => json!({ "address": "ada@example.com", "note": "Asked us by phone to stop." }),
        "approveReview" => json!({ "digest": "$REVIEW_DIGEST" }),
        "rejectReview" => json!({ "reason": "Not before Friday." }),
        "createAgentConversation" => json!({ "title": "Orders of this week" }),
        "updateAgentConversation" => json!({ "title": "Orders of last week" }),
        "sendAgentMessage" => json!({ "content": "Which orders came in today?" }),
        "createIntegrationConnection" => {
            json!({ "name": "Order desk", "url": "https://tools.example.com/mcp" })
        }
        "updateIntegrationConnection" => json!({ "name": "Order tracker" }),
        "createTaskTriager" => json!({
            "name": "Invoices", "instructions": "When an invoice arrives, create a task to pay it.",
        }),
        "updateTaskTriager" => {
            json!({ "instructions": "When an invoice arrives, create a task to pay it within a week." })
        }
        "runTaskTriager" => json!({ "email_id": "$EMAIL_ID" }),
        "updateTask" => json!({ "status": "done" }),
        "createWebhook" => {
            json!({ "url": "https://example.com/hooks/mail", "event_types": ["message.received"] })
        }
        "updateWebhook" => json!({ "event_types": ["message.received", "message.bounced"] }),
        "remember" => json!({ "text": "The office closes at six." }),
        "recall" => json!({ "query": "When does the office close?" }),
        "addDocument" => {
            json!({ "name": "opening-hours.txt", "type": "text", "text": "We are open from nine to six." })
        }
        "signUpAffiliate" => json!({ "code": "acme-mail", "payout_email": "ada@example.com" }),
        "updateAffiliate" => json!({ "payout_email": "grace@example.com" }),
        _ => return None,
    })
}

/// The value of a query parameter.
pub(crate) fn query(id: &str, name: &str) -> Option<Value> {
    Some(match (id, name) {
        ("searchEmails", "query") => "order".into(),
        ("streamEvents", "after") => 0.into(),
        ("trackAffiliate", "code") => "acme-mail".into(),
        _ => return None,
    })
}
