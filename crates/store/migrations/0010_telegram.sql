-- The chat that a mailbox is linked with. `sequence` is its place in the event log: what lies behind it is still to be told.
CREATE TABLE telegram_link (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    chat_id BIGINT NOT NULL,
    chat_title TEXT NOT NULL,
    linked_at BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    blocked_at BIGINT,
    failures BIGINT NOT NULL,
    claimed_until BIGINT NOT NULL,
    rests_until BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX telegram_link_chat ON telegram_link (chat_id);

-- Codes that link a chat, each once and for a short time; only their hash is kept.
CREATE TABLE telegram_code (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    code_hash BYTEA NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX telegram_code_hash ON telegram_code (code_hash);
CREATE INDEX telegram_code_expiry ON telegram_code (expires_at);

-- Notices that were sent: what their buttons and answers to them are about. The id is a secret of the chat.
CREATE TABLE telegram_notice (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    email_id TEXT NOT NULL,
    chat_id BIGINT NOT NULL,
    message_id BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX telegram_notice_id ON telegram_notice (id);
CREATE INDEX telegram_notice_message ON telegram_notice (chat_id, message_id);
CREATE INDEX telegram_notice_age ON telegram_notice (created_at);

-- postgres: secure telegram_link telegram_code telegram_notice

-- Which node asks the bot's server for news, and where it goes on. There is one bot, so one row.
CREATE TABLE telegram_poll (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    held_until BIGINT NOT NULL,
    next_update BIGINT NOT NULL
);
