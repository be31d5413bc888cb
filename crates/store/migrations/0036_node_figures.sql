-- What a node says of itself beside its version, so that the others can name what is wrong with it.
-- usable since: 32
-- Where it answers HTTP; empty when it does not.
ALTER TABLE node ADD COLUMN address TEXT NOT NULL DEFAULT '';
-- Its connections to PostgreSQL: the most that it opens, those in use, and for how many microseconds a call waited for one
-- at most since it last said so. A size of 0: a program that does not say.
ALTER TABLE node ADD COLUMN pool_size BIGINT NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN pool_in_use BIGINT NOT NULL DEFAULT 0;
ALTER TABLE node ADD COLUMN pool_wait BIGINT NOT NULL DEFAULT 0;
-- The most that it opens to the server itself: those to a pooler are the pooler's affair.
ALTER TABLE node ADD COLUMN server_connections BIGINT NOT NULL DEFAULT 0;
-- Its connections to other mail servers.
ALTER TABLE node ADD COLUMN sending BIGINT NOT NULL DEFAULT 0;
-- A keyed digest of each setting that must be the same on all nodes, by name, as JSON.
ALTER TABLE node ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
