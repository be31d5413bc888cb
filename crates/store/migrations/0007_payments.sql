-- The keyless interface: wallets that own workspaces, what they paid, and the ledger of test networks.

-- Spans workspaces: a wallet is found before its workspace is known.
CREATE TABLE wallet (
    -- In lower case.
    address TEXT NOT NULL PRIMARY KEY,
    owner_workspace TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL
); -- clustered

-- Every proof that was used, paid or not. Spans workspaces: a wallet may show itself before it has one.
CREATE TABLE payment (
    network TEXT NOT NULL,
    -- The token; `siwx` for a sign-in.
    asset TEXT NOT NULL,
    payer TEXT NOT NULL,
    nonce TEXT NOT NULL,
    id TEXT NOT NULL,
    owner_workspace TEXT,
    protocol TEXT NOT NULL,
    operation TEXT NOT NULL,
    -- The path of the request.
    subject TEXT NOT NULL,
    -- The hash of method, path, query and body.
    fingerprint BYTEA NOT NULL,
    -- In the token's smallest unit.
    amount BIGINT NOT NULL,
    state TEXT NOT NULL,
    -- Why it failed or waits.
    reason TEXT,
    -- The transaction that moved the money.
    reference TEXT,
    -- What was signed, sealed, until the money has moved or never will.
    proof BYTEA,
    -- The kept answer of a call that changed nothing, sealed; that of a write is kept with its effect.
    status BIGINT,
    answer BYTEA,
    -- Until when somebody works on it.
    claimed_until BIGINT NOT NULL,
    -- Until when the proof itself is good.
    expires_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (network, asset, payer, nonce)
); -- clustered
-- What cost nothing is forgotten with its proof.
CREATE INDEX payment_ended ON payment (expires_at) WHERE amount = 0;
CREATE INDEX payment_age ON payment (created_at, id) WHERE amount > 0;
CREATE INDEX payment_open ON payment (claimed_until) WHERE proof IS NOT NULL;

-- The money of test networks where no chain is asked.
CREATE TABLE ledger_account (
    address TEXT NOT NULL PRIMARY KEY,
    balance BIGINT NOT NULL
); -- clustered
CREATE TABLE ledger_transfer (
    payer TEXT NOT NULL,
    nonce TEXT NOT NULL,
    recipient TEXT NOT NULL,
    amount BIGINT NOT NULL,
    reference TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (payer, nonce)
); -- clustered
