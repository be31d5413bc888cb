-- Mail: contents as they came, emails in mailboxes, threads, labels on mail, the event log, the index for search.
-- "-- only sqlite: " and "-- only postgres: " begin lines that one engine alone sees.

-- What a mail consists of, kept once in a workspace however many of its mailboxes got it. Everything is sealed.
CREATE TABLE content (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    -- The SHA-256 of the message as it came.
    id TEXT NOT NULL,
    -- Bytes of the message as it came.
    size BIGINT NOT NULL,
    -- The message; null when it lies in the blob store under the id.
    raw BYTEA,
    -- The header block, when the message is not here to take it from.
    headers BYTEA,
    -- The body for people, here or in the blob store under this hash.
    body BYTEA,
    body_blob TEXT,
    -- The text for agents, likewise; neither where it is the same as the body.
    safe BYTEA,
    safe_blob TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

CREATE TABLE thread (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    id TEXT NOT NULL,
    -- A hash of the bare subject and of who takes part, by which a mail without references finds its thread.
    subject_key BYTEA,
    newest_at BIGINT NOT NULL,
    mail_count BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX thread_subject ON thread (workspace_id, mailbox_id, subject_key, newest_at) WHERE subject_key IS NOT NULL;

-- The Message-IDs that belong to a thread: those of its mails and those they refer to, as hashes.
CREATE TABLE thread_reference (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    message_id BYTEA NOT NULL,
    thread_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, message_id),
    FOREIGN KEY (workspace_id, mailbox_id, thread_id) REFERENCES thread (workspace_id, mailbox_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX thread_reference_thread ON thread_reference (workspace_id, mailbox_id, thread_id);

-- What a thread is inside one folder; the folder '' stands for all but Trash and Spam.
CREATE TABLE thread_folder (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    folder_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    newest_at BIGINT NOT NULL,
    newest_email TEXT NOT NULL,
    mail_count BIGINT NOT NULL,
    unread_count BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, folder_id, thread_id),
    FOREIGN KEY (workspace_id, mailbox_id, thread_id) REFERENCES thread (workspace_id, mailbox_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX thread_folder_newest ON thread_folder (workspace_id, mailbox_id, folder_id, newest_at, newest_email);
CREATE INDEX thread_folder_thread ON thread_folder (workspace_id, mailbox_id, thread_id);

CREATE TABLE email (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    folder_id TEXT NOT NULL,
    content_id TEXT NOT NULL,
    outgoing BIGINT NOT NULL,
    -- Whether lists without a folder show it: not in Trash and not in Spam.
    listed BIGINT NOT NULL,
    -- The number of the event that told of its arrival.
    arrival BIGINT NOT NULL,
    arrived_at BIGINT NOT NULL,
    date BIGINT NOT NULL,
    subject TEXT NOT NULL,
    sender TEXT NOT NULL,
    sender_address TEXT NOT NULL,
    recipient TEXT NOT NULL,
    to_line TEXT NOT NULL,
    cc TEXT,
    bcc TEXT,
    reply_to TEXT,
    -- Short forms in lower case, for sorting.
    subject_order TEXT NOT NULL,
    sender_order TEXT NOT NULL,
    recipient_order TEXT NOT NULL,
    read BIGINT NOT NULL,
    starred BIGINT NOT NULL,
    is_urgent BIGINT NOT NULL,
    category TEXT NOT NULL,
    snippet TEXT NOT NULL,
    body_format TEXT NOT NULL,
    safe_source TEXT NOT NULL,
    safe_divergent BIGINT NOT NULL,
    size BIGINT NOT NULL,
    stored_objects BIGINT NOT NULL,
    message_id TEXT,
    in_reply_to TEXT,
    email_references TEXT,
    delivery_status TEXT,
    automatic TEXT,
    scan_status TEXT,
    scan_threats TEXT NOT NULL,
    sender_authentication TEXT NOT NULL,
    attachments TEXT NOT NULL,
    attachment_count BIGINT NOT NULL,
    label_count BIGINT NOT NULL,
    -- Until when a draft of an answer keeps it out of sight.
    held_until BIGINT,
    -- Its row in the index for search, where the engine needs to be told.
    text_row BIGINT,
    PRIMARY KEY (workspace_id, mailbox_id, id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, content_id) REFERENCES content (workspace_id, id)
);
CREATE INDEX email_folder ON email (workspace_id, mailbox_id, folder_id, date, id);
CREATE INDEX email_listed ON email (workspace_id, mailbox_id, listed, date, id);
CREATE INDEX email_thread ON email (workspace_id, mailbox_id, thread_id, date, id);
CREATE INDEX email_arrival ON email (workspace_id, mailbox_id, arrival);
CREATE INDEX email_unread ON email (workspace_id, mailbox_id, read, date, id);
CREATE INDEX email_starred ON email (workspace_id, mailbox_id, starred, date, id);
CREATE INDEX email_subject ON email (workspace_id, mailbox_id, subject_order, id);
CREATE INDEX email_sender ON email (workspace_id, mailbox_id, sender_order, id);
CREATE INDEX email_recipient ON email (workspace_id, mailbox_id, recipient_order, id);
CREATE INDEX email_held ON email (workspace_id, mailbox_id, held_until) WHERE held_until IS NOT NULL;
CREATE INDEX email_content ON email (workspace_id, content_id);
CREATE INDEX email_unscanned ON email (arrived_at) WHERE scan_status IS NULL AND outgoing = 0;

CREATE TABLE attachment (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    id TEXT NOT NULL,
    email_id TEXT NOT NULL,
    filename TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size BIGINT NOT NULL,
    content_id TEXT,
    disposition TEXT,
    -- Where its encoded bytes stand in the message.
    place_start BIGINT NOT NULL,
    place_end BIGINT NOT NULL,
    encoding TEXT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, id),
    FOREIGN KEY (workspace_id, mailbox_id, email_id) REFERENCES email (workspace_id, mailbox_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX attachment_email ON attachment (workspace_id, mailbox_id, email_id);

CREATE TABLE email_label (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    email_id TEXT NOT NULL,
    label_id TEXT NOT NULL,
    date BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, email_id, label_id),
    FOREIGN KEY (workspace_id, mailbox_id, email_id) REFERENCES email (workspace_id, mailbox_id, id) ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, mailbox_id, label_id) REFERENCES label (workspace_id, mailbox_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX email_label_label ON email_label (workspace_id, mailbox_id, label_id, date, email_id);

-- The event log. Sequences of a workspace have no gaps.
CREATE TABLE event_counter (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspace (id) ON DELETE CASCADE,
    last BIGINT NOT NULL
); -- clustered

CREATE TABLE event (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    sequence BIGINT NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    occurred_at BIGINT NOT NULL,
    mailbox_id TEXT,
    -- Sealed, since it holds text of mails.
    data BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, sequence)
); -- clustered
CREATE INDEX event_age ON event (occurred_at);

-- The index for search. It can be made anew from the rest at any time.
-- only sqlite: CREATE VIRTUAL TABLE email_text USING fts5(email_id UNINDEXED, scope, subject, sender, recipient, body, content='', contentless_delete=1, contentless_unindexed=1, tokenize='unicode61 remove_diacritics 0 categories ''L* M* N* P* S* C*''');
-- only postgres: CREATE TABLE email_text (workspace_id TEXT NOT NULL, mailbox_id TEXT NOT NULL, email_id TEXT NOT NULL, words TSVECTOR NOT NULL, PRIMARY KEY (workspace_id, mailbox_id, email_id), FOREIGN KEY (workspace_id, mailbox_id, email_id) REFERENCES email (workspace_id, mailbox_id, id) ON DELETE CASCADE);
-- only postgres: CREATE INDEX email_text_words ON email_text USING gin (words) WITH (fastupdate = off);

-- postgres: secure content thread thread_reference thread_folder email attachment email_label event_counter event email_text
