-- Addresses that are not written to any more, and how deliveries failed.
--
-- A recipient that was left out because of a suppression has the state `bounced` as well, so that programs which do not know
-- suppressions count it among those that got nothing.
-- usable since: 32

CREATE TABLE suppression (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    -- In lower case.
    address TEXT NOT NULL,
    -- The mailbox that does not write to it; empty for the whole workspace.
    mailbox_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- The message that led to it.
    email_id TEXT,
    note TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
); -- clustered
CREATE UNIQUE INDEX suppression_address ON suppression (workspace_id, address, mailbox_id);

-- How a delivery failed, or why it is late; and whether the recipient was left out because of a suppression.
ALTER TABLE delivery ADD COLUMN class TEXT;
ALTER TABLE delivery ADD COLUMN suppressed BIGINT NOT NULL DEFAULT 0;

-- postgres: secure suppression
