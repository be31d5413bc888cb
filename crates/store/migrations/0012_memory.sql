-- Memory and knowledge: what a workspace remembers, its documents, and the passages of both and of its mail that recall
-- looks through.

-- One row a workspace. Whoever changes passages takes numbers here and holds the row until its commit, so that the
-- numbers that others see have no gaps.
CREATE TABLE memory_counter (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspace (id) ON DELETE CASCADE,
    last BIGINT NOT NULL,
    -- Bytes of memories and documents.
    stored_bytes BIGINT NOT NULL
); -- clustered

CREATE TABLE memory (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    size BIGINT NOT NULL,
    -- The text and what was noted with it, sealed.
    text BYTEA NOT NULL,
    metadata BYTEA,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

CREATE TABLE document (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    size BIGINT NOT NULL,
    -- The SHA-256 of its bytes.
    hash TEXT NOT NULL,
    -- Its bytes, sealed; null when they lie in the blob store under the hash.
    content BYTEA,
    status TEXT NOT NULL,
    -- Why it failed.
    reason TEXT,
    -- 0 until its text was read.
    chunk_count BIGINT NOT NULL,
    chunks_done BIGINT NOT NULL,
    -- Until when somebody works on it.
    claimed_until BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX document_work ON document (claimed_until) WHERE status = 'indexing';
CREATE INDEX document_hash ON document (workspace_id, hash);

-- A piece of a text that fits into the model.
CREATE TABLE passage (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    -- What it is a piece of: one of these.
    memory_id TEXT,
    document_id TEXT,
    mailbox_id TEXT,
    email_id TEXT,
    -- Its place there, from 0.
    position BIGINT NOT NULL,
    -- Sealed.
    text BYTEA NOT NULL,
    -- The vector with 32 bits a number.
    vector BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, number),
    FOREIGN KEY (workspace_id, memory_id) REFERENCES memory (workspace_id, id) ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, document_id) REFERENCES document (workspace_id, id) ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, mailbox_id, email_id) REFERENCES email (workspace_id, mailbox_id, id) ON DELETE CASCADE
);
CREATE INDEX passage_memory ON passage (workspace_id, memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX passage_document ON passage (workspace_id, document_id, position) WHERE document_id IS NOT NULL;
CREATE INDEX passage_email ON passage (workspace_id, mailbox_id, email_id) WHERE email_id IS NOT NULL;

-- What the index in memory is made of, apart from the texts so that it is read fast, and in the order of its changes.
CREATE TABLE passage_index (
    workspace_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    number BIGINT NOT NULL,
    -- 'memory', 'document', or the mailbox.
    scope TEXT NOT NULL,
    -- What made the vector, and how many numbers it has.
    model TEXT NOT NULL,
    dimension BIGINT NOT NULL,
    -- The vector with 8 bits a number.
    code BYTEA NOT NULL,
    -- Keyed hashes of the words, and how often each stands there.
    words BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, version),
    FOREIGN KEY (workspace_id, number) REFERENCES passage (workspace_id, number) ON DELETE CASCADE
); -- clustered
CREATE UNIQUE INDEX passage_index_number ON passage_index (workspace_id, number);
CREATE INDEX passage_index_model ON passage_index (model, workspace_id, version);

-- How far the mail of a mailbox was taken into memory.
CREATE TABLE memory_cursor (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    -- The arrival of the last mail that was looked at.
    arrival BIGINT NOT NULL,
    claimed_until BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
); -- clustered

-- postgres: secure memory_counter memory document passage passage_index memory_cursor
