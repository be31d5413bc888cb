-- Queues are worked on in turns over workspaces: their indexes begin with the workspace.

-- The pieces of a document's text while they are indexed, sealed: a slice of them at a time, without reading it again.
ALTER TABLE document ADD COLUMN pieces BYTEA;
DROP INDEX document_work;
CREATE INDEX document_turn ON document (workspace_id, id) WHERE status = 'indexing';

DROP INDEX email_unscanned;
CREATE INDEX email_unscanned ON email (workspace_id, arrived_at) WHERE scan_status IS NULL AND outgoing = 0;

CREATE INDEX delivery_turn ON delivery (destination, workspace_id, coalesce(claimed_until, next_attempt_at))
  WHERE state = 'queued';

CREATE INDEX draft_turn ON draft (workspace_id, coalesce(claimed_until, scheduled_at))
  WHERE state IN ('scheduled', 'deferred', 'sending');

CREATE INDEX triage_job_turn ON triage_job (workspace_id, coalesce(claimed_until, due_at));

DROP INDEX webhook_due;
CREATE INDEX webhook_due ON webhook (workspace_id, due_at) WHERE due_at IS NOT NULL;
