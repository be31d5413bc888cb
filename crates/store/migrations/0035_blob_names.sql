-- What tells the blobs of a content from others with the same bytes, behind the hash in their names. So a name is used
-- once, and nobody deletes what another one has just put there. Without it a blob is named by its hash alone.
--
-- Programs that do not know suffixes look under the hash. They can use the store until the first suffix is given, which
-- is not before the last of them is gone; from then on they are refused: see `blob_names.rs`.
-- usable since: 32
ALTER TABLE content ADD COLUMN blob_suffix TEXT;
ALTER TABLE document ADD COLUMN blob_suffix TEXT;
-- Since when all programs have to know the migration, where it was usable by older ones at first.
ALTER TABLE migration ADD COLUMN required_since BIGINT;
