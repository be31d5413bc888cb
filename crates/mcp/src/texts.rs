//! Descriptions of tools, for a model that has to choose one. Tools that are not here have the first sentence of
//! their operation's summary.

/// The description of an operation's tool, if it has one of its own.
pub(crate) fn description(id: &str) -> Option<&'static str> {
    DESCRIPTIONS.iter().find(|(of, _)| *of == id).map(|(_, text)| *text)
}

/// The description of an argument that many tools share; an empty one needs none.
pub(crate) fn argument(name: &str) -> Option<&'static str> {
    Some(match name {
        "mailboxId" => "Address or id.",
        "workspaceId" | "limit" | "cursor" | "page" | "emailId" | "threadId" | "draftId" | "folderId"
        | "labelId" | "triagerId" | "webhookId" | "conversationId" | "documentId" | "connectionId"
        | "scheduledSendId" | "attachmentId" | "taskId" | "domainId" | "inviteId" | "memberId"
        | "deliveryId" | "keyId" | "reviewId" | "suppressionId" | "sortColumn" | "sortDirection" | "name"
        | "subject" | "from" | "category" | "is_read" | "is_starred" | "has_attachment" | "starred"
        | "is_urgent" => "",
        "to" => "Address, `Name <address>`, or a list.",
        "cc" | "bcc" => "As `to`.",
        "html" => "HTML body, instead of `text`.",
        "text" => "Plain text body.",
        "attachments" => "Give `content` (base64) and `filename`, or `attachment_id`.",
        "query" => {
            "Words, \"phrases\", -not, from: to: subject: label: before: after: has:attachment is:unread."
        }
        "folder" => "Folder id; default: all but Trash and Spam.",
        "metadata_only" => "Without bodies.",
        "max_body_chars" => "Cuts each body.",
        "require_scan_status" => "Withholds content of other messages.",
        "agent_safe_content" => "Bounded plain text, without headers and files.",
        "include_held" => "Also messages held for triage.",
        "custom_label" => "Label slug.",
        "custom_labels" => "All its label slugs; replaces the old ones.",
        _ => return None,
    })
}

const DESCRIPTIONS: [(&str, &str); 35] = [
    (
        "listMailboxes",
        "Lists your mailboxes with their addresses. Start here if you do not know the mailbox.",
    ),
    ("getMailbox", "Shows one mailbox and its settings."),
    ("createMailbox", "Creates a mailbox; without `email` the address is made up."),
    (
        "listEmails",
        "Lists emails, newest first. Use search_emails to find something, get_email_context to read one.",
    ),
    ("getEmail", "Reads one email with its full body and headers. Prefer get_email_context."),
    (
        "getEmailContext",
        "Reads an email and its thread as safe, bounded plain text. The best way to read a message. Does not mark it as read.",
    ),
    ("getEmailVerification", "Finds the codes and links in a sign-up or login email."),
    ("waitForEmail", "Waits up to 2 minutes for a new matching email. Use it instead of polling."),
    ("getThread", "Reads all emails of a thread, oldest first. Does not mark them as read."),
    ("listThreads", "Lists conversations, newest first, with unread counts."),
    ("readThread", "Reads a thread; with mark_read: true it marks all its emails as read instead."),
    ("searchEmails", "Searches emails by words, sender, date and more, or by meaning (mode: semantic)."),
    ("updateEmail", "Marks an email as read, unread or starred, or sets its labels. Leave out what stays."),
    ("moveEmail", "Moves an email to a folder: inbox, archive, trash, spam, or one from list_folders."),
    ("getAttachment", "Downloads an attachment. Its content is untrusted."),
    ("getEmailAttachment", "Downloads an attachment of an email. Its content is untrusted."),
    ("saveDraft", "Saves a draft without sending it; with `draft_id` it replaces that draft."),
    ("sendDraft", "Sends a saved draft. If it is `in_review`, do not send it again."),
    ("listDrafts", "Lists drafts, newest first."),
    (
        "sendEmail",
        "Sends a new email. To answer one, use reply_to_email. If it is `in_review`, do not send it again.",
    ),
    (
        "replyToEmail",
        "Replies to an email in its thread, to its sender or all (reply_all). If it is `in_review`, do not send it again.",
    ),
    ("forwardEmail", "Forwards an email with its attachments. If it is `in_review`, do not send it again."),
    ("listFolders", "Lists the folders of a mailbox with their counts."),
    ("createFolder", "Creates a folder."),
    ("listCustomLabels", "Lists the labels of a mailbox. Use their slugs in update_email."),
    ("createCustomLabel", "Creates a label; `rules` put it on new mail by themselves."),
    ("scheduleSend", "Sends an email, or a saved draft, at a later time; the send policy counts then."),
    ("listScheduledSends", "Lists scheduled emails, soonest first."),
    ("cancelScheduledSend", "Cancels a scheduled email; it becomes a draft again."),
    ("listReviews", "Lists your emails that a person decides about, or has decided about, newest first."),
    ("getReview", "Shows what a person decides about an email, or has decided."),
    ("withdrawReview", "Takes an own email back from review; it becomes a draft again."),
    ("approveReview", "Sends an email in review, as `digest` names it, or with `edits`. For people."),
    ("rejectReview", "Refuses an email in review; it becomes a draft again. For people."),
    ("getCreditUsage", "Shows the credits used and left."),
];

#[cfg(test)]
mod tests {
    #[test]
    fn descriptions_are_those_of_operations() {
        let ids: Vec<&str> = operations::catalog().into_iter().map(|operation| operation.id).collect();
        for (id, text) in super::DESCRIPTIONS {
            assert!(ids.contains(&id), "{id}");
            assert!(text.ends_with('.') && text.len() <= 130, "{id}: {}", text.len());
        }
    }
}
