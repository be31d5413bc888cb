-- Outgoing mail: drafts and schedules, the queue with one record for each recipient, what plans count of it.

-- What its writer put into a draft, and when it is to leave. The mail itself is the email of the same id.
CREATE TABLE draft (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    email_id TEXT NOT NULL,
    state TEXT NOT NULL,
    -- Rises with every change: whoever works on a draft finds out whether it is still the one that was read.
    version BIGINT NOT NULL,
    -- Sealed, as written: recipients, subject, body.
    source BYTEA NOT NULL,
    -- The Message-ID that it will have, fixed before the first attempt to send it.
    message_id TEXT NOT NULL,
    scheduled_at BIGINT,
    -- Until when a node that is sending it is believed to be alive.
    claimed_until BIGINT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, email_id),
    FOREIGN KEY (workspace_id, mailbox_id, email_id) REFERENCES email (workspace_id, mailbox_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX draft_due ON draft (coalesce(claimed_until, scheduled_at)) WHERE state IN ('scheduled', 'deferred', 'sending');
CREATE INDEX draft_schedule ON draft (workspace_id, mailbox_id, scheduled_at, email_id) WHERE state IN ('scheduled', 'deferred', 'sending', 'failed');

-- A mail on its way out, or one that has left.
CREATE TABLE outbound (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    -- The mailbox it leaves from; null for mail of the service itself.
    mailbox_id TEXT,
    -- Its email; null for automatic mail, and once the email is deleted.
    email_id TEXT,
    kind TEXT NOT NULL,
    content_id TEXT NOT NULL,
    -- Header lines that stand before the message on its way.
    prefix TEXT NOT NULL,
    -- The envelope's sender; null for a null sender.
    sender TEXT,
    message_id TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- Whether its sender has to be told that it failed: none, due, done.
    report TEXT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, content_id) REFERENCES content (workspace_id, id)
); -- clustered
CREATE INDEX outbound_email ON outbound (workspace_id, mailbox_id, email_id);
CREATE INDEX outbound_message ON outbound (workspace_id, mailbox_id, message_id);
CREATE INDEX outbound_content ON outbound (workspace_id, content_id);
CREATE INDEX outbound_report ON outbound (report) WHERE report = 'due';

-- The queue: one record for each recipient of a mail.
CREATE TABLE delivery (
    workspace_id TEXT NOT NULL,
    outbound_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    recipient TEXT NOT NULL,
    -- Which line of the mail names the recipient: to, cc, bcc.
    line TEXT NOT NULL,
    -- The domain, as far as bounds and back-off go; empty for a mailbox of this server.
    destination TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    next_attempt_at BIGINT,
    last_attempt_at BIGINT,
    finished_at BIGINT,
    -- What the other server said last.
    reply TEXT,
    claimed_by TEXT,
    claimed_until BIGINT,
    PRIMARY KEY (workspace_id, outbound_id, position),
    FOREIGN KEY (workspace_id, outbound_id) REFERENCES outbound (workspace_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX delivery_due ON delivery (destination, coalesce(claimed_until, next_attempt_at)) WHERE state = 'queued';
CREATE INDEX delivery_claim ON delivery (claimed_by) WHERE claimed_by IS NOT NULL;

-- Destinations that could not be reached, and until when nobody tries.
CREATE TABLE destination (
    name TEXT NOT NULL PRIMARY KEY,
    failures BIGINT NOT NULL,
    resting_until BIGINT NOT NULL
); -- clustered
CREATE INDEX destination_rest ON destination (resting_until);

-- What was sent, for limits that count the last minute, hour and day.
CREATE TABLE send_use (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    -- Recipients outside the workspace.
    recipients BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
); -- clustered
CREATE INDEX send_use_time ON send_use (workspace_id, at);
CREATE INDEX send_use_age ON send_use (at);

-- Who got an automatic answer, and when.
CREATE TABLE auto_reply (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    -- A hash of the address.
    sender BYTEA NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, sender),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX auto_reply_age ON auto_reply (at);

-- postgres: secure draft outbound delivery send_use auto_reply
