-- Until when every proof that cost nothing and was ever taken is good, on a server that has its store alone: such proofs
-- are kept in memory there, and after a start none that could be among them is taken. Sign-ins are good for another time
-- than authorisations, and neither should keep the other waiting.
CREATE TABLE free_proof_mark (
    kind TEXT NOT NULL PRIMARY KEY,
    taken_until BIGINT NOT NULL
); -- clustered
INSERT INTO free_proof_mark (kind, taken_until)
    SELECT 'authorization', max(expires_at) FROM payment WHERE amount = 0 AND protocol <> 'siwx'
    HAVING max(expires_at) IS NOT NULL;
INSERT INTO free_proof_mark (kind, taken_until)
    SELECT 'sign-in', max(expires_at) FROM payment WHERE amount = 0 AND protocol = 'siwx'
    HAVING max(expires_at) IS NOT NULL;
