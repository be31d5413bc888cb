-- Links that set a new password. Like sessions they belong to an account, not to a workspace, and only their hash is kept.
CREATE TABLE password_reset (
    token_hash BYTEA NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX password_reset_account ON password_reset (account_id);
CREATE INDEX password_reset_expiry ON password_reset (expires_at);
