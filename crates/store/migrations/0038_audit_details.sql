-- Who made a change by name, from where, what it is about, and what changed. Programs that do not know these columns leave
-- them empty.
-- usable since: 32
ALTER TABLE audit ADD COLUMN actor_name TEXT;
-- An IP address, or the operator's user on the server.
ALTER TABLE audit ADD COLUMN address TEXT;
-- Both or none: without them it is the mailbox, and else the workspace.
ALTER TABLE audit ADD COLUMN resource_kind TEXT;
ALTER TABLE audit ADD COLUMN resource_id TEXT;
ALTER TABLE audit ADD COLUMN mailbox_id TEXT;
-- JSON; empty for operations that record only the fact.
ALTER TABLE audit ADD COLUMN changes TEXT;
-- Changes of what a workspace has, without the everyday work with mail, which is nearly everything: they are found quickly,
-- and that work has no index to keep.
-- index: CREATE INDEX audit_lasting ON audit (workspace_id, id) WHERE operation NOT IN ('sendEmail', 'replyToEmail', 'forwardEmail', 'updateEmail', 'moveEmail', 'deleteEmail', 'bulkReadEmails', 'bulkMoveEmails', 'bulkDeleteEmails', 'importEmails', 'readThread', 'moveThread', 'emptyTrash', 'saveDraft', 'sendDraft', 'deleteDraft', 'regenerateDraft', 'scheduleSend', 'rescheduleSend', 'cancelScheduledSend', 'sendAgentMessage', 'createAgentConversation', 'updateAgentConversation', 'deleteAgentConversation', 'getTriagerAgentConversation', 'runTaskTriager', 'updateTask', 'remember', 'forget');
