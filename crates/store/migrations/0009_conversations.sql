-- Conversations with the mailbox agent, and connections to outside tool servers whose tools it may use.

CREATE TABLE conversation (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    thread_id TEXT,
    -- The triager that it belongs to, if it is one's own.
    triager_id TEXT,
    message_count BIGINT NOT NULL,
    -- Until when a message that is being answered has it to itself; 0 when none is.
    busy_until BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX conversation_used ON conversation (workspace_id, mailbox_id, updated_at, id);
CREATE UNIQUE INDEX conversation_triager ON conversation (workspace_id, mailbox_id, triager_id) WHERE triager_id IS NOT NULL;

CREATE TABLE conversation_message (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    -- Its place in the conversation, from 1.
    position BIGINT NOT NULL,
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    -- What was said and which tools were used, sealed.
    content BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, conversation_id, position),
    UNIQUE (workspace_id, mailbox_id, conversation_id, id),
    FOREIGN KEY (workspace_id, mailbox_id, conversation_id) REFERENCES conversation (workspace_id, mailbox_id, id) ON DELETE CASCADE
);

CREATE TABLE integration_connection (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    url_host TEXT NOT NULL,
    -- Address and headers, sealed: both hold secrets.
    target BYTEA NOT NULL,
    status TEXT NOT NULL,
    -- The tools as the server described them, as JSON.
    tools TEXT NOT NULL,
    -- The names of those that the agent may use, as a JSON list; null for those that only read.
    allowed_tools TEXT,
    last_error TEXT,
    synced_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

-- postgres: secure conversation conversation_message integration_connection
