-- What a key is narrowed to: a list of scopes and one of mailboxes, as JSON. Null for everything that its role may do.
--
-- Programs that do not know these columns would let a narrowed key do everything. So they must not find it: its row has
-- another hash of its secret than the one they look for; see `api_keys.rs`. They refuse such a key like an unknown one,
-- and can go on with all others.
-- usable since: 32
ALTER TABLE api_key ADD COLUMN scopes TEXT;
ALTER TABLE api_key ADD COLUMN mailbox_ids TEXT;
-- Goes up with every change of what the key may do, so that calls that wait with an earlier state of it are ended.
ALTER TABLE api_key ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
