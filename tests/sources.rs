//! What must be true of the sources, because nothing else would notice.

use std::{fs, path::Path};

/// Every file of a folder and of those within it, with its name.
fn files(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

/// A public async function that is not boxed is compiled again by every crate that calls it; ARCHITECTURE.md says more.
#[test]
fn operations_are_compiled_once() {
    let mut sources = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/operations/src"), &mut sources);
    let mut boxed = 0;
    for (name, source) in sources {
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        for (place, line) in lines.iter().enumerate() {
            let Some(rest) = line.strip_prefix("pub async fn ") else { continue };
            let is_generic = rest.split('(').next().unwrap().contains('<') || rest.contains(": impl ");
            let has_attribute = lines[..place].iter().rev().take_while(|line| line.starts_with("#["));
            let is_boxed = has_attribute.into_iter().any(|line| *line == "#[crate::boxed]");
            assert!(is_generic || is_boxed, "{name}:{}: give it #[crate::boxed]", place + 1);
            boxed += usize::from(is_boxed);
        }
    }
    assert!(boxed > 200, "{boxed}");
}

/// Writes of `operations` that do not go through `App::write`, which leaves an entry in the audit log: how many each file
/// has. What changes something for a person or a program must not be here; the log-ins, the operator's commands and the
/// chats that are write their entries themselves.
const OTHER_WRITES: [(&str, usize); 52] = [
    ("account/accounts.rs", 4),
    ("account/accounts/invitations.rs", 1),
    ("account/accounts/sign_up.rs", 1),
    ("account/accounts/verification.rs", 2),
    ("account/affiliate.rs", 2),
    ("account/confirmations.rs", 2),
    ("account/password_resets.rs", 3),
    ("agent/conversations/agent.rs", 2),
    ("agent/triage/manual_run.rs", 1),
    ("agent/triage/worker.rs", 7),
    ("core/app/blob_names.rs", 1),
    ("core/app/idempotency.rs", 1),
    ("core/app/write.rs", 3),
    ("core/credentials.rs", 2),
    ("core/ledger.rs", 1),
    ("core/metering/accounts.rs", 2),
    ("core/metering/recovery.rs", 2),
    ("core/passwords/guesses.rs", 2),
    ("core/readiness.rs", 1),
    ("inbox/emails/bulk.rs", 1),
    ("inbox/inbound/deliver.rs", 2),
    ("inbox/postmaster.rs", 1),
    ("inbox/scanning.rs", 1),
    ("mailbox/domains.rs", 2),
    ("mailbox/domains/keys.rs", 4),
    ("notify/telegram/notices.rs", 5),
    ("notify/telegram/updates.rs", 5),
    ("notify/webhooks/outbox.rs", 5),
    ("notify/webhooks/outbox/worker.rs", 1),
    ("outbox/reviews/expiry.rs", 1),
    ("outbox/scheduled_sends/worker.rs", 5),
    ("outbox/send_policies.rs", 1),
    ("outbox/sending/attempts.rs", 4),
    ("outbox/sending/claims.rs", 3),
    ("outbox/sending/outcomes.rs", 1),
    ("outbox/sending/report.rs", 2),
    ("outbox/sending/worker.rs", 1),
    ("outbox/unsubscribing.rs", 2),
    ("payments/checkout.rs", 7),
    ("payments/free.rs", 1),
    ("payments/reconcile.rs", 1),
    ("payments/wallets.rs", 1),
    ("recall/knowledge/worker.rs", 8),
    ("recall/memory.rs", 2),
    ("recall/memory/mail.rs", 5),
    ("recall/memory/renew.rs", 1),
    ("upkeep/admin.rs", 6),
    ("upkeep/counters.rs", 1),
    ("upkeep/maintenance.rs", 2),
    ("upkeep/nodes.rs", 3),
    ("upkeep/storage.rs", 5),
    ("upkeep/storage_rounds.rs", 3),
];

/// rules: AUDIT-1
#[test]
fn other_writes_are_known() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/operations/src");
    let mut sources = Vec::new();
    files(&folder, &mut sources);
    let calls = ["write", "system_write", "shared_write", "batch_write", "asynchronous_system_write"];
    let mut found = Vec::new();
    for (name, source) in sources {
        let dense: String = source.chars().filter(|character| !character.is_whitespace()).collect();
        let count = |call: &&str| {
            dense.matches(&format!("db().{call}(")).count() + dense.matches(&format!("db.{call}(")).count()
        };
        let count: usize = calls.iter().map(count).sum();
        if count > 0 {
            let short = name.strip_prefix(&format!("{}/", folder.display())).unwrap().to_owned();
            found.push((short, count));
        }
    }
    found.sort();
    let known: Vec<(String, usize)> =
        OTHER_WRITES.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    assert_eq!(found, known, "does what was added need an entry in the audit log?");
}
