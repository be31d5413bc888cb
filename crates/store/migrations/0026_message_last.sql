-- The message of a content, behind all its other columns: SQLite finds a column by walking through those before it, and a
-- message is often many pages long. Contents from before have it in the column raw.
ALTER TABLE content ADD COLUMN message BYTEA;
-- Sealed bytes do not become smaller.
-- only postgres: ALTER TABLE content ALTER COLUMN message SET STORAGE EXTERNAL;
