-- What nodes have charged to a pool ahead of the calls that spend it. It is part of `allowance.spent` already, so a
-- node that is lost can have spent nothing that is not charged. All figures count from the first advance of the
-- node's run in the period.
CREATE TABLE allowance_advance (
    workspace_id TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    node_id TEXT NOT NULL,
    period_start BIGINT NOT NULL,
    -- Charged.
    granted BIGINT NOT NULL CHECK (granted >= 0),
    -- Spent by reads, as the node last said.
    reads BIGINT NOT NULL CHECK (reads >= 0),
    -- Spent by writes and folded from the ledger.
    writes BIGINT NOT NULL CHECK (writes >= 0),
    -- Until when the node is taken for alive; others may ask it to return what it does not use.
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, kind, node_id)
); -- clustered
-- postgres: secure allowance_advance

-- The ledger was charged when it was folded; from here on advances cover it from the start.
INSERT INTO allowance (workspace_id, kind, period_start, spent)
    SELECT workspace_id, 'credits', period_start, CAST(sum(amount) AS BIGINT) FROM credit_ledger AS entry
    WHERE period_start = (SELECT max(newest.period_start) FROM credit_ledger AS newest
                          WHERE newest.workspace_id = entry.workspace_id)
    GROUP BY workspace_id, period_start
    ON CONFLICT (workspace_id, kind) DO UPDATE SET
        spent = CASE WHEN allowance.period_start = excluded.period_start
                     THEN allowance.spent + excluded.spent ELSE allowance.spent END;

DROP TABLE allowance_lease;
