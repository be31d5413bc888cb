-- Confirmations of destructive tools: what is allowed once, for a few minutes, as exactly the same call by the same key.
-- `used_by` is the idempotency key of the call that used it, so that the same call can ask for its answer again.
CREATE TABLE confirmation (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    token_hash BYTEA NOT NULL,
    fingerprint BYTEA NOT NULL,
    expires_at BIGINT NOT NULL,
    used_by TEXT,
    PRIMARY KEY (workspace_id, token_hash)
);
CREATE INDEX confirmation_expiry ON confirmation (expires_at);

-- postgres: secure confirmation
