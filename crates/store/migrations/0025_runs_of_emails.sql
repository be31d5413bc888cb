-- The runs of triagers on the emails of a thread were looked for among all runs of a mailbox.
CREATE INDEX triager_run_email ON triager_run (workspace_id, mailbox_id, email_id);
