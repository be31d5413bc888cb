//! The parameters that stand in paths.

use model::{
    AccountId, ApiKeyId, AttachmentId, ConnectionId, ConversationId, DeliveryId, DocumentId, DomainId,
    EmailId, FolderId, InviteId, LabelId, ReviewId, SuppressionId, TaskId, ThreadId, TriagerId, WebhookId,
};
use schemars::JsonSchema;
use serde::Deserialize;

macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $rename:literal $field:ident: $type:ty,)* })*) => { $(
        $(#[$doc])*
        #[derive(Deserialize, JsonSchema)]
        pub(super) struct $name {
            $($(#[$field_doc])* #[serde(rename = $rename)] pub(super) $field: $type,)*
        }
    )* };
}

// The workspace in a path is checked by the pipeline, before a handler sees anything.
paths! {
    /// A workspace.
    InWorkspace {
        /// The id of the workspace. With an API key it must be the key's own.
        "workspaceId" _workspace: String,
    }
    /// A member of a workspace.
    MemberPath {
        /// The id of the workspace. With an API key it must be the key's own.
        "workspaceId" _workspace: String,
        /// The id of the member.
        "memberId" member: AccountId,
    }
    /// An invite.
    InvitePath {
        /// The id of the workspace. With an API key it must be the key's own.
        "workspaceId" _workspace: String,
        /// The id of the invite.
        "inviteId" invite: InviteId,
    }
    /// An API key.
    ApiKeyPath {
        /// The id of the workspace. With an API key it must be the key's own.
        "workspaceId" _workspace: String,
        /// The id of the key.
        "keyId" key: ApiKeyId,
    }
    /// A review of an outgoing email.
    ReviewPath {
        /// The id of the workspace. With an API key it must be the key's own.
        "workspaceId" _workspace: String,
        /// The id of the review.
        "reviewId" review: ReviewId,
    }
    /// A suppression.
    SuppressionPath {
        /// The id of the workspace. With an API key it must be the key's own.
        "workspaceId" _workspace: String,
        /// The id of the suppression.
        "suppressionId" suppression: SuppressionId,
    }
    /// A custom domain.
    DomainPath {
        /// The id of the workspace. With an API key it must be the key's own.
        "workspaceId" _workspace: String,
        /// The id of the domain.
        "domainId" domain: DomainId,
    }
    /// A webhook.
    WebhookPath {
        /// The id of the workspace. With an API key it must be the key's own.
        "workspaceId" _workspace: String,
        /// The id of the webhook.
        "webhookId" webhook: WebhookId,
    }
    /// A delivery of an event to a webhook.
    DeliveryPath {
        /// The id of the workspace. With an API key it must be the key's own.
        "workspaceId" _workspace: String,
        /// The id of the webhook.
        "webhookId" webhook: WebhookId,
        /// The id of the delivery.
        "deliveryId" delivery: DeliveryId,
    }
    /// A memory.
    MemoryPath {
        /// The `blobId` from the response of `remember`, or from a snippet of an email.
        "blobId" blob: String,
    }
    /// A document.
    DocumentPath {
        /// The id of the document.
        "documentId" document: DocumentId,
    }
    /// A mailbox.
    InMailbox {
        /// The mailbox: its `public_id`, its alias id, or its current address.
        "mailboxId" mailbox: String,
    }
    /// A folder of a mailbox.
    FolderPath {
        /// The mailbox: its `public_id`, its alias id, or its current address.
        "mailboxId" mailbox: String,
        /// The id of the folder.
        "folderId" folder: FolderId,
    }
    /// An email of a mailbox.
    EmailPath {
        /// The mailbox: its `public_id`, its alias id, or its current address.
        "mailboxId" mailbox: String,
        /// The id of the email.
        "emailId" email: EmailId,
    }
    /// A draft of a mailbox.
    DraftPath {
        /// The mailbox: its `public_id`, its alias id, or its current address.
        "mailboxId" mailbox: String,
        /// The id of the draft.
        "draftId" draft: EmailId,
    }
    /// A scheduled send of a mailbox.
    ScheduledSendPath {
        /// The mailbox: its `public_id`, its alias id, or its current address.
        "mailboxId" mailbox: String,
        /// The id of the scheduled send.
        "scheduledSendId" scheduled: EmailId,
    }
    /// An attachment of an email.
    EmailAttachmentPath {
        /// The mailbox: its `public_id`, its alias id, or its current address.
        "mailboxId" mailbox: String,
        /// The id of the email.
        "emailId" email: EmailId,
        /// The id of the attachment.
        "attachmentId" attachment: AttachmentId,
    }
    /// A file of a mailbox.
    AttachmentPath {
        /// The mailbox: its `public_id`, its alias id, or its current address.
        "mailboxId" mailbox: String,
        /// The id of the attachment.
        "attachmentId" attachment: AttachmentId,
    }
    /// A thread of a mailbox.
    ThreadPath {
        /// The mailbox: its `public_id`, its alias id, or its current address.
        "mailboxId" mailbox: String,
        /// The id of the thread.
        "threadId" thread: ThreadId,
    }
    /// A conversation with the agent of a mailbox.
    ConversationPath {
        /// The mailbox: its `public_id`, its alias id, or its current address.
        "mailboxId" mailbox: String,
        /// The id of the conversation.
        "conversationId" conversation: ConversationId,
    }
    /// A connection to an outside tool server.
    ConnectionPath {
        /// The id of the connection.
        "connectionId" connection: ConnectionId,
    }
    /// A label of a mailbox.
    LabelPath {
        /// The mailbox: its `public_id`, its alias id, or its current address.
        "mailboxId" mailbox: String,
        /// The id of the label.
        "labelId" label: LabelId,
    }
    /// A triager of a mailbox.
    TriagerPath {
        /// The mailbox: its `public_id`, its alias id, or its current address.
        "mailboxId" mailbox: String,
        /// The id of the triager.
        "triagerId" triager: TriagerId,
    }
    /// A task that a triager of a mailbox found.
    TaskPath {
        /// The mailbox: its `public_id`, its alias id, or its current address.
        "mailboxId" mailbox: String,
        /// The id of the task.
        "taskId" task: TaskId,
    }
}
