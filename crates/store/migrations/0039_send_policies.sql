-- Send policies, what they count, and reviews of outgoing messages.
--
-- Programs that do not know policies would let every message leave. They can use the store only until the first policy is
-- set; see `send_policies.rs`.
-- usable since: 32

-- The policy of a workspace, where the mailbox is empty, or of one of its mailboxes.
CREATE TABLE send_policy (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    mailbox_id TEXT NOT NULL,
    -- As it was set, JSON.
    policy TEXT NOT NULL,
    -- Rises with every change.
    version BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id)
); -- clustered

-- The addresses that a workspace has sent to ('sent') and got messages from ('received'), in lower case. They stay when the
-- messages are deleted.
CREATE TABLE correspondent (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    direction TEXT NOT NULL,
    address TEXT NOT NULL,
    PRIMARY KEY (workspace_id, direction, address)
); -- clustered

-- The recipients of messages that count towards caps.
CREATE TABLE cap_use (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    -- The message: its name in the queue.
    message_id TEXT NOT NULL,
    recipient TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    -- Whether the workspace had never sent to it.
    is_new BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, message_id, recipient)
); -- clustered
CREATE INDEX cap_use_time ON cap_use (workspace_id, at, mailbox_id, is_new);
CREATE INDEX cap_use_recipient ON cap_use (workspace_id, recipient, at);
CREATE INDEX cap_use_age ON cap_use (at);

CREATE TABLE review (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    email_id TEXT NOT NULL,
    state TEXT NOT NULL,
    -- JSON.
    reasons TEXT NOT NULL,
    findings TEXT NOT NULL,
    -- The key, account, wallet or chat whose message it is.
    requested_by TEXT NOT NULL,
    -- More about that, and what was charged, JSON.
    request TEXT NOT NULL,
    digest TEXT NOT NULL,
    scheduled_at BIGINT,
    expires_at BIGINT NOT NULL,
    decided_by TEXT,
    decided_at BIGINT,
    reason TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX review_state ON review (workspace_id, state, id);
CREATE INDEX review_due ON review (expires_at) WHERE state = 'pending';
CREATE INDEX review_age ON review (decided_at) WHERE state <> 'pending';

-- Links in mails by which a person can decide about one review.
CREATE TABLE review_link (
    workspace_id TEXT NOT NULL,
    token_hash BYTEA NOT NULL,
    review_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, token_hash),
    FOREIGN KEY (workspace_id, review_id) REFERENCES review (workspace_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX review_link_token ON review_link (token_hash);
CREATE INDEX review_link_review ON review_link (workspace_id, review_id);

-- The review that a draft is in, or was approved in; who asked for it to be sent and what was charged, JSON.
ALTER TABLE draft ADD COLUMN review_id TEXT;
ALTER TABLE draft ADD COLUMN request TEXT;
-- Whether an admin gets a mail about each new review.
ALTER TABLE member ADD COLUMN review_mail BIGINT NOT NULL DEFAULT 0;
-- The account of the person who made a key; null for the operator and for older keys.
ALTER TABLE api_key ADD COLUMN created_by TEXT;

-- The caller who linked a chat, by the code that it made.
ALTER TABLE telegram_code ADD COLUMN created_by TEXT;
ALTER TABLE telegram_link ADD COLUMN created_by TEXT;

-- Folders of the name that is the system's now.
UPDATE email SET folder_id = 'review-folder' WHERE folder_id = 'review' AND (workspace_id, mailbox_id) IN
    (SELECT workspace_id, mailbox_id FROM folder WHERE id = 'review' AND system = 0);
UPDATE thread_folder SET folder_id = 'review-folder' WHERE folder_id = 'review' AND (workspace_id, mailbox_id) IN
    (SELECT workspace_id, mailbox_id FROM folder WHERE id = 'review' AND system = 0);
UPDATE folder SET id = 'review-folder', name = 'Review (folder)' WHERE id = 'review' AND system = 0;

INSERT INTO correspondent (workspace_id, direction, address)
    SELECT DISTINCT delivery.workspace_id, 'sent', lower(delivery.recipient) FROM delivery
    JOIN outbound ON outbound.workspace_id = delivery.workspace_id AND outbound.id = delivery.outbound_id
    WHERE outbound.kind = 'mail';
INSERT INTO correspondent (workspace_id, direction, address)
    SELECT DISTINCT workspace_id, 'received', lower(sender_address) FROM email
    WHERE outgoing = 0 AND folder_id <> 'spam' AND sender_address <> '' AND coalesce(scan_status, '') <> 'flagged';

-- postgres: secure send_policy correspondent cap_use review review_link
