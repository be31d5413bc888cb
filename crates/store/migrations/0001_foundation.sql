-- The foundation: people, workspaces, keys, mailboxes with folders and labels, metering, idempotency, affiliates.
-- Written in PostgreSQL's types; for SQLite they are translated, and every table is STRICT.
-- "-- clustered" stores a table in the order of its primary key where the engine can.

CREATE TABLE account (
    id TEXT NOT NULL PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    is_admin BIGINT NOT NULL,
    address TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE session (
    id TEXT NOT NULL PRIMARY KEY,
    secret_hash BYTEA NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    chosen_workspace TEXT NOT NULL,
    user_agent TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX session_account ON session (account_id);
CREATE INDEX session_expiry ON session (expires_at);

CREATE TABLE workspace (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    owner_address TEXT NOT NULL,
    timezone TEXT NOT NULL,
    plan TEXT NOT NULL,
    data_key BYTEA NOT NULL,
    referred_by TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE member (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    joined_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, account_id)
); -- clustered
CREATE INDEX member_account ON member (account_id);

CREATE TABLE invite (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    token_hash BYTEA NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, email)
); -- clustered

CREATE TABLE api_key (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    hint TEXT NOT NULL,
    secret_hash BYTEA NOT NULL UNIQUE,
    expires_at BIGINT,
    last_used_at BIGINT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
); -- clustered

CREATE TABLE mailbox (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    public_id TEXT NOT NULL,
    email TEXT NOT NULL,
    name TEXT NOT NULL,
    settings TEXT NOT NULL,
    disabled_at BIGINT,
    disabled_reason TEXT,
    deleted_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, public_id)
); -- clustered
CREATE INDEX mailbox_email ON mailbox (workspace_id, email);
CREATE INDEX mailbox_deleted ON mailbox (deleted_at) WHERE deleted_at IS NOT NULL;

-- Which workspace an address belongs to, across all of them. It outlives the mailbox: an address that once was
-- somebody's must not start to receive for somebody else.
CREATE TABLE address (
    address TEXT NOT NULL PRIMARY KEY,
    owner_workspace TEXT NOT NULL,
    mailbox_id TEXT
); -- clustered
CREATE INDEX address_owner ON address (owner_workspace);

CREATE TABLE folder (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    position BIGINT NOT NULL,
    system BIGINT NOT NULL,
    unread_count BIGINT NOT NULL,
    total_count BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
); -- clustered

CREATE TABLE label (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    slug TEXT NOT NULL,
    rules TEXT NOT NULL,
    color TEXT NOT NULL,
    sort_order BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, id),
    UNIQUE (workspace_id, mailbox_id, slug),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
); -- clustered

-- Figures of a mailbox that are kept, not counted: stored bytes, blobs, unread mails by category.
CREATE TABLE mailbox_counter (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    name TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, name),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
); -- clustered

-- A pool that calls draw from: the credits of a month, the requests of a minute.
CREATE TABLE allowance (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    period_start BIGINT NOT NULL,
    spent BIGINT NOT NULL CHECK (spent >= 0),
    PRIMARY KEY (workspace_id, kind)
); -- clustered

-- What one node may still spend of a pool without asking.
CREATE TABLE allowance_lease (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    node_id TEXT NOT NULL,
    period_start BIGINT NOT NULL,
    amount BIGINT NOT NULL CHECK (amount >= 0),
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, kind, node_id)
); -- clustered

-- Credits of writes, written with the effect they pay for and later folded into the pool.
CREATE TABLE credit_ledger (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    period_start BIGINT NOT NULL,
    day BIGINT NOT NULL,
    class TEXT NOT NULL,
    amount BIGINT NOT NULL CHECK (amount >= 0),
    -- Whose lease it was spent from; empty where the pool has no limit.
    node_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, id)
); -- clustered

CREATE TABLE usage_day (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    day BIGINT NOT NULL,
    metric TEXT NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, day, metric)
); -- clustered

CREATE TABLE idempotency (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    fingerprint BYTEA NOT NULL,
    status BIGINT NOT NULL,
    answer BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE audit (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    operation TEXT NOT NULL,
    subject TEXT NOT NULL,
    request_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, id)
); -- clustered
CREATE INDEX audit_age ON audit (at);

CREATE TABLE affiliate (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    code TEXT NOT NULL UNIQUE,
    payout_email TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE affiliate_day (
    workspace_id TEXT NOT NULL REFERENCES affiliate (workspace_id) ON DELETE CASCADE,
    day BIGINT NOT NULL,
    clicks BIGINT NOT NULL,
    sign_ups BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, day)
); -- clustered

CREATE TABLE commission (
    workspace_id TEXT NOT NULL REFERENCES affiliate (workspace_id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    referred_workspace TEXT NOT NULL,
    plan TEXT NOT NULL,
    amount_cents BIGINT NOT NULL,
    currency TEXT NOT NULL,
    status TEXT NOT NULL,
    period_start BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, referred_workspace, period_start)
); -- clustered

CREATE TABLE payout (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    amount_cents BIGINT NOT NULL,
    currency TEXT NOT NULL,
    status TEXT NOT NULL,
    period_start BIGINT NOT NULL,
    period_end BIGINT NOT NULL,
    reference TEXT,
    paid_at BIGINT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
); -- clustered

-- tenant tables: the second wall stands around them
-- postgres: secure member invite api_key mailbox folder label mailbox_counter allowance allowance_lease
-- postgres: secure credit_ledger usage_day idempotency audit affiliate affiliate_day commission payout
