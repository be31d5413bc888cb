-- How many threads each folder has, beside the other counters of a mailbox: counting them for every page took the longer,
-- the more there were.
INSERT INTO mailbox_counter (workspace_id, mailbox_id, name, value)
    SELECT workspace_id, mailbox_id, 'threads.' || folder_id, count(*) FROM thread_folder
    GROUP BY workspace_id, mailbox_id, folder_id;
