-- Programs that do not know these tables check all stored mail by themselves, as before.
-- usable since: 32
-- The daily check of everything stored. The nodes share it: each claims a range of workspaces after the other.
CREATE TABLE storage_round (
    id BIGINT NOT NULL PRIMARY KEY,
    started_at BIGINT NOT NULL,
    -- The last workspace in a range that was claimed, and when no range was left.
    claimed_up_to TEXT NOT NULL,
    ended_at BIGINT
);
-- The ranges that are being checked: which node does so, until when it counts as alive, and how far it is.
CREATE TABLE storage_range (
    last_workspace TEXT NOT NULL PRIMARY KEY,
    checked_up_to TEXT NOT NULL,
    node_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
-- Whether a node delivers mail to other servers: these nodes share the connections to each of them.
ALTER TABLE node ADD COLUMN sends BIGINT NOT NULL DEFAULT 0;
