-- Wrong passwords, counted for each subject: an account, a client network, a device that signed in before. The subject is a keyed hash,
-- so that the table tells nobody which addresses were tried. Rows expire, and upkeep keeps their number bounded.
CREATE TABLE password_guess (
    subject BYTEA NOT NULL PRIMARY KEY,
    failures BIGINT NOT NULL,
    blocked_until BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX password_guess_expiry ON password_guess (expires_at);

-- Sign-ups that wait for the link in a message to be followed. There is one for an address that has an account already, too: nobody gets
-- its token, but it counts against the messages that one address gets.
CREATE TABLE sign_up (
    token_hash BYTEA NOT NULL PRIMARY KEY,
    email TEXT NOT NULL,
    details TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sign_up_email ON sign_up (email);
CREATE INDEX sign_up_expiry ON sign_up (expires_at);
