-- Custom domains with the keys they sign with; webhooks and what was sent to them.

-- Which workspace a domain belongs to, across all of them. A claim whose proof is gone is open: whoever comes next may
-- have it.
CREATE TABLE domain_claim (
    domain TEXT NOT NULL PRIMARY KEY,
    owner_workspace TEXT NOT NULL,
    open BIGINT NOT NULL
); -- clustered
CREATE INDEX domain_claim_owner ON domain_claim (owner_workspace);

CREATE TABLE email_domain (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    -- In lower case and A-labels.
    domain TEXT NOT NULL,
    status TEXT NOT NULL,
    -- What the owner publishes to show that the domain is theirs.
    token TEXT NOT NULL,
    -- What was found of each record, as JSON.
    found TEXT NOT NULL,
    last_error TEXT,
    verified_at BIGINT,
    -- Since when a verified domain lacks something.
    failing_since BIGINT,
    next_check_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, domain)
); -- clustered
CREATE INDEX email_domain_check ON email_domain (next_check_at);

CREATE TABLE domain_key (
    workspace_id TEXT NOT NULL,
    domain_id TEXT NOT NULL,
    selector TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    -- Sealed.
    private BYTEA NOT NULL,
    public_record TEXT NOT NULL,
    -- Whether the public half was found in DNS, so that signing with it makes sense.
    published BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, domain_id, selector),
    FOREIGN KEY (workspace_id, domain_id) REFERENCES email_domain (workspace_id, id) ON DELETE CASCADE
); -- clustered

-- The keys of this server's own domains, sealed with the master key: no workspace owns them.
CREATE TABLE hosted_key (
    domain TEXT NOT NULL,
    selector TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    private BYTEA NOT NULL,
    public_record TEXT NOT NULL,
    published BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (domain, selector)
); -- clustered

-- The custom domain of a mailbox's address; null on a hosted one.
ALTER TABLE mailbox ADD COLUMN email_domain_id TEXT;
CREATE INDEX mailbox_domain ON mailbox (workspace_id, email_domain_id) WHERE email_domain_id IS NOT NULL;

CREATE TABLE webhook (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    url TEXT NOT NULL,
    -- JSON lists; no mailboxes means all.
    event_types TEXT NOT NULL,
    mailbox_ids TEXT,
    status TEXT NOT NULL,
    -- Sealed, as is the one before it, which is good for a while.
    secret BYTEA NOT NULL,
    old_secret BYTEA,
    old_secret_until BIGINT,
    -- The last event that deliveries were made of.
    sequence BIGINT NOT NULL,
    -- When its next delivery is due; null when none waits.
    due_at BIGINT,
    -- Until when one worker has it to itself.
    claimed_until BIGINT NOT NULL,
    -- Rounds in a row that did not get through, and until when it is left alone for that.
    failures BIGINT NOT NULL,
    rests_until BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX webhook_due ON webhook (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE webhook_delivery (
    workspace_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    -- Where the event stands in the log; null for a test, whose event is here, sealed.
    sequence BIGINT,
    event BYTEA,
    status TEXT NOT NULL,
    -- What came of each attempt, as JSON.
    attempts TEXT NOT NULL,
    -- Attempts since it was last asked for, and when that was.
    tries BIGINT NOT NULL,
    begun_at BIGINT NOT NULL,
    next_attempt_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id, id),
    FOREIGN KEY (workspace_id, webhook_id) REFERENCES webhook (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX webhook_delivery_due ON webhook_delivery (workspace_id, webhook_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_delivery_age ON webhook_delivery (created_at);

-- postgres: secure email_domain domain_key webhook webhook_delivery
