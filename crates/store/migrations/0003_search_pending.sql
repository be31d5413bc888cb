-- PostgreSQL keeps the words of the last mails aside and enters those of many at once: a word that fifty of them share is
-- looked for in the index once. A search reads what is kept aside too, so there is little of it.

-- only postgres: ALTER INDEX email_text_words SET (fastupdate = on, gin_pending_list_limit = 512);
