//! What becomes of mail for other servers.
