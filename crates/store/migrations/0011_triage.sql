-- Triagers: what looks at mail on its owner's behalf, what waits for it, what it did and what it found.

CREATE TABLE triager (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    instructions TEXT NOT NULL,
    -- Whether it is the one that drafts answers where the mailbox asks for them; every mailbox has one of those.
    is_default BIGINT NOT NULL,
    enabled BIGINT NOT NULL,
    -- JSON lists: when it runs, and what it does then.
    triggers TEXT NOT NULL,
    tasks TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
); -- clustered
CREATE UNIQUE INDEX triager_default ON triager (workspace_id, mailbox_id) WHERE is_default = 1;

-- Whether mail that is sent could set a triager off, so that sending need not look at them.
ALTER TABLE mailbox ADD COLUMN triages_sent BIGINT NOT NULL DEFAULT 0;

-- Mail that waits to be looked at. It is written with the mail and goes with what came of it.
CREATE TABLE triage_job (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    id TEXT NOT NULL,
    email_id TEXT NOT NULL,
    -- Whether the mail was sent from here, not received.
    outgoing BIGINT NOT NULL,
    -- The envelope's sender of a mail that arrived; null for a null sender.
    sender TEXT,
    -- How often in a row somebody took it on and was not heard of again.
    attempts BIGINT NOT NULL,
    -- How often the model gave no answer.
    failures BIGINT NOT NULL,
    -- Rises whenever somebody takes it on: the fence against whoever took it on before or after.
    version BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    claimed_until BIGINT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX triage_job_due ON triage_job (coalesce(claimed_until, due_at));
CREATE INDEX triage_job_age ON triage_job (created_at);

CREATE TABLE triager_run (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    id TEXT NOT NULL,
    -- The job it belongs to; its own id when somebody asked for it.
    job_id TEXT NOT NULL,
    triager_id TEXT NOT NULL,
    -- As it was called then: the triager may be gone.
    triager_name TEXT NOT NULL,
    source_kind TEXT NOT NULL,
    email_id TEXT NOT NULL,
    status TEXT NOT NULL,
    summary TEXT NOT NULL,
    -- What came of each task, as JSON.
    tasks TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    finished_at BIGINT,
    PRIMARY KEY (workspace_id, mailbox_id, id),
    UNIQUE (workspace_id, mailbox_id, job_id, triager_id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX triager_run_recent ON triager_run (workspace_id, mailbox_id, started_at, id);
CREATE INDEX triager_run_age ON triager_run (started_at);

CREATE TABLE task (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    due_at BIGINT,
    priority TEXT NOT NULL,
    status TEXT NOT NULL,
    email_id TEXT NOT NULL,
    triager_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, id),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX task_status ON task (workspace_id, mailbox_id, status, id);
CREATE INDEX task_age ON task (updated_at) WHERE status <> 'open';

-- The events of calendars that invitations told of, so that a change is told from something new.
CREATE TABLE calendar_event (
    workspace_id TEXT NOT NULL,
    mailbox_id TEXT NOT NULL,
    -- The hash of its UID.
    uid TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    -- The job that told of it last, and what that was: the same job finds the same when it is tried again.
    job_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, mailbox_id, uid),
    FOREIGN KEY (workspace_id, mailbox_id) REFERENCES mailbox (workspace_id, id) ON DELETE CASCADE
); -- clustered
CREATE INDEX calendar_event_age ON calendar_event (updated_at);

-- Mailboxes that are there already get the triager that every new one has; its ids are made from the mailbox's.
INSERT INTO triager (workspace_id, mailbox_id, id, name, instructions, is_default, enabled, triggers, tasks, created_at, updated_at)
SELECT workspace_id, id, 'trg_' || substr(id, 5), 'E-mail response', '', 1, 1,
  '[{"id":"tgr_' || substr(id, 5) || '","kind":"mail.received","enabled":true,"mailDomains":[],"onlyInbox":true,"filter":""}]',
  '[{"id":"stp_' || substr(id, 5) || '","kind":"draft_response","enabled":true,"config":{}}]', created_at, created_at
FROM mailbox;

-- postgres: secure triager triage_job triager_run task calendar_event
