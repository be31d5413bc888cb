-- Both engines gather the words of several mails before they sort them into the index.

-- PostgreSQL keeps the words of the last mails aside and enters those of many at once: a word that fifty of them share is
-- looked for in the index once. A search reads what is kept aside too, so there is little of it.
-- only postgres: ALTER INDEX email_text_words SET (fastupdate = on, gin_pending_list_limit = 512);

-- SQLite merges eight parts of the index into one instead of four, so that each word is written less often.
-- only sqlite: INSERT INTO email_text (email_text, rank) VALUES ('automerge', 8);
