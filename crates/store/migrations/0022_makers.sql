-- Who made a webhook or a connection: an account. Nothing for what an API key made, and for what was made before: that belongs to the
-- workspace.
ALTER TABLE webhook ADD COLUMN created_by TEXT;
ALTER TABLE integration_connection ADD COLUMN created_by TEXT;
