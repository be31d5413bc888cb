-- usable since: 32
-- The migrations from this one on, and from which schema on programs can use the store after each: see `migrations.rs`.
CREATE TABLE migration (
    version BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at BIGINT NOT NULL,
    usable_since BIGINT NOT NULL
);
-- The nodes of the service, as they last said. Only PostgreSQL has several.
CREATE TABLE node (
    id TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    process BIGINT NOT NULL,
    version TEXT NOT NULL,
    schema_version BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    -- By the store's clock, and how far the node's own clock was ahead of it.
    seen_at BIGINT NOT NULL,
    clock_ahead BIGINT NOT NULL
);
-- Work that one node does for all: which one, and until when it counts as alive.
CREATE TABLE lease (
    name TEXT NOT NULL PRIMARY KEY,
    node_id TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
