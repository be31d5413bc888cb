//! DKIM keys of custom domains and of this server's own.
//!
//! Each algorithm has two selectors that alternate: a new key is published beside the old one, signs from the moment it
//! is seen in DNS, and the old record stays for mail that is still in transit. The next rotation replaces the old one.

use std::sync::Arc;

use mail::sign::{Algorithm, Key, SignError};
use model::{
    DomainId, Timestamp, WorkspaceId,
    audit::{AuditChange, AuditDetails},
    domains::{DnsRecord, RecordStatus},
};
use store::{
    audit::{self, AuditEntry},
    domains::{self, KeyRecord},
    hosted_keys, system,
    vault::VaultError,
};
use zeroize::Zeroizing;

use super::records;
use crate::core::{
    app::App,
    audit::Author,
    error::{Error, Result},
    state::{recent::Moment, signing_keys::SigningKeys},
};

/// The sealing purpose of private keys.
const PURPOSE: &str = "dkim key";
/// The alternating selectors.
const SELECTORS: [[&str; 2]; 2] =
    [["agentmailbox-rsa1", "agentmailbox-ed1"], ["agentmailbox-rsa2", "agentmailbox-ed2"]];

/// Generates the key pairs of a domain on a blocking thread.
pub(super) async fn make(app: &App) -> Result<[Key; 2]> {
    let _turn = app.key_making().acquire().await.map_err(Error::internal)?;
    let make = || Ok([Key::generate(Algorithm::Rsa)?, Key::generate(Algorithm::Ed25519)?]);
    let made: Result<[Key; 2], SignError> =
        tokio::task::spawn_blocking(make).await.map_err(Error::internal)?;
    made.map_err(Error::internal)
}

/// Key pairs as they are stored.
pub(super) fn sealed(
    pairs: [Key; 2],
    turn: usize,
    now: Timestamp,
    seal: impl Fn(&str, &[u8]) -> Result<Vec<u8>, VaultError>,
) -> Result<Vec<KeyRecord>> {
    let record = |(selector, pair): (&str, Key)| {
        Ok(KeyRecord {
            selector: selector.to_owned(),
            algorithm: pair.algorithm().as_str().to_owned(),
            private: seal(PURPOSE, pair.private_bytes()).map_err(store::Error::from)?,
            public_record: pair.record(),
            published: false,
            created_at: now,
        })
    };
    SELECTORS[turn % SELECTORS.len()].into_iter().zip(pairs).map(record).collect()
}

/// Opens the private half of a key (PKCS#8).
fn open(
    key: &KeyRecord,
    open: &impl Fn(&str, &[u8]) -> Result<Vec<u8>, VaultError>,
) -> Result<Zeroizing<Vec<u8>>> {
    Ok(Zeroizing::new(open(PURPOSE, &key.private).map_err(store::Error::from)?))
}

/// The signing keys by selector: of each algorithm the newest key that is in DNS.
fn usable(
    keys: &[KeyRecord],
    unseal: impl Fn(&str, &[u8]) -> Result<Vec<u8>, VaultError>,
) -> Result<Vec<(String, Key)>> {
    let newest = |algorithm: Algorithm| {
        let fits = |key: &&KeyRecord| key.published && key.algorithm == algorithm.as_str();
        keys.iter().filter(fits).max_by_key(|key| key.created_at).map(|key| (algorithm, key))
    };
    [Algorithm::Rsa, Algorithm::Ed25519]
        .into_iter()
        .filter_map(newest)
        .map(|(algorithm, key)| {
            let private = open(key, &unseal)?;
            Ok((key.selector.clone(), Key::from_private(algorithm, &private).map_err(Error::internal)?))
        })
        .collect()
}

/// The keys that mail from a domain is signed with, by their selectors; none where the workspace has no such domain or
/// it is not verified.
pub(crate) async fn signing_keys(app: &App, workspace: &WorkspaceId, domain: &str) -> Result<SigningKeys> {
    // A domain of this server is no workspace's.
    let is_hosted = is_hosted(app, domain);
    let name = if is_hosted { domain.to_owned() } else { format!("{workspace} {domain}") };
    let now = Moment::now(app.db());
    if let Some(found) = app.outbox().signing_keys().find(now, &name) {
        return Ok(found);
    }
    let wanted = domain.to_owned();
    let keys = if is_hosted {
        let found = app.db().system_read(async move |tx| hosted_keys::list(tx, &wanted).await).await?;
        usable(&found, |purpose, sealed| app.master_key().open(purpose, sealed))?
    } else {
        let found =
            app.db().read(workspace, async move |tx| domains::signing_keys(tx, &wanted).await).await?;
        let data_key = app.data_key(workspace).await?;
        usable(&found, |purpose, sealed| data_key.open(purpose, sealed))?
    };
    let keys: SigningKeys = Arc::from(keys);
    app.outbox().signing_keys().keep(now, &name, keys.clone());
    Ok(keys)
}

fn is_hosted(app: &App, domain: &str) -> bool {
    app.settings().hosted_domains.iter().any(|hosted| hosted == domain)
}

/// A public key as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PublicKey {
    /// The name of its TXT record.
    pub name: String,
    /// The record's text.
    pub value: String,
    /// Whether it was seen in DNS: mail is signed with the newest that was.
    pub published: bool,
}

fn show(domain: &str, keys: &[KeyRecord]) -> Vec<PublicKey> {
    let one = |key: &KeyRecord| PublicKey {
        name: records::dkim_name(domain, &key.selector),
        value: key.public_record.clone(),
        published: key.published,
    };
    keys.iter().map(one).collect()
}

/// The public keys of a domain, for an operator. A domain of this server gets its first keys by it.
#[crate::boxed]
pub async fn list(app: &App, domain: &str) -> Result<Vec<PublicKey>> {
    if is_hosted(app, domain) {
        return Ok(show(domain, &check_hosted(app, domain).await?));
    }
    let (workspace, id) = owner(app, domain).await?;
    let keys = app.db().read(&workspace, async move |tx| domains::keys(tx, &id).await).await?;
    Ok(show(domain, &keys))
}

/// What the audit log calls it.
pub(crate) const ROTATE_DKIM: &str = "rotateDkimKeys";

/// Generates the next keys of a domain, for an operator. They sign as soon as they are seen in DNS.
#[crate::boxed]
pub async fn rotate(app: &App, domain: &str, author: &Author) -> Result<Vec<PublicKey>> {
    let entry = app.audit_entry(author, ROTATE_DKIM);
    if is_hosted(app, domain) {
        return rotate_hosted(app, domain, entry).await;
    }
    let (workspace, id) = owner(app, domain).await?;
    let (pairs, data_key, now) = (make(app).await?, app.data_key(&workspace).await?, app.now());
    let written = app.db().write(&workspace, async move |tx| {
        domains::find_for_change(tx, &id).await?.ok_or_else(records::missing)?;
        let keys = domains::keys(tx, &id).await?;
        let turn = next_turn(&keys)?;
        for selector in SELECTORS[turn] {
            domains::delete_key(tx, &id, selector).await?;
        }
        let made = sealed(pairs, turn, now, |purpose, plain| data_key.seal(purpose, plain))?;
        domains::insert_keys(tx, &id, &made).await?;
        let mut details = AuditDetails::default();
        audit::insert(tx, &[(&entry, details.about("domain", &id).changed(rotated()))]).await?;
        Ok::<_, Error>(domains::keys(tx, &id).await?)
    });
    Ok(show(domain, &written.await?))
}

/// What the audit log says of new keys: that there are some.
fn rotated() -> Vec<AuditChange> {
    vec![AuditChange::hidden("dkim_keys")]
}

async fn owner(app: &App, domain: &str) -> Result<(WorkspaceId, DomainId)> {
    let name = domain.to_owned();
    let found = app.db().system_read(async move |tx| domains::owner(tx, &name).await).await?;
    let workspace = found.ok_or_else(records::missing)?;
    let name = domain.to_owned();
    let found = app.db().read(&workspace, async move |tx| domains::find_by_name(tx, &name).await).await?;
    Ok((workspace, found.ok_or_else(records::missing)?.id))
}

/// What belongs to the server is recorded in the workspace of its operator.
async fn rotate_hosted(app: &App, domain: &str, entry: AuditEntry) -> Result<Vec<PublicKey>> {
    check_hosted(app, domain).await?;
    let (pairs, now, name, app_) = (make(app).await?, app.now(), domain.to_owned(), app.clone());
    let written = app.db().system_write(async move |tx| {
        let turn = next_turn(&hosted_keys::list(tx, &name).await?)?;
        let made = sealed(pairs, turn, now, |purpose, plain| app_.master_key().seal(purpose, plain))?;
        for key in &made {
            hosted_keys::delete(tx, &name, &key.selector).await?;
            hosted_keys::insert(tx, &name, key).await?;
        }
        if let Some(operator) = system::operator_workspace(tx).await? {
            let mut details = AuditDetails::default();
            details.about("hosted_domain", &name).changed(rotated());
            audit::insert(tx.enter(&operator), &[(&entry, &details)]).await?;
        }
        Ok::<_, Error>(hosted_keys::list(tx, &name).await?)
    });
    Ok(show(domain, &written.await?))
}

/// The next selector. The newest keys must be in use first: otherwise the rotation would replace keys in use.
fn next_turn(keys: &[KeyRecord]) -> Result<usize> {
    let Some(newest) = keys.iter().max_by_key(|key| key.created_at) else { return Ok(0) };
    let rsa = keys.iter().filter(|key| key.algorithm == Algorithm::Rsa.as_str());
    if rsa.max_by_key(|key| key.created_at).is_some_and(|key| !key.published) {
        return Err(Error::invalid(
            "domain",
            "its newest key was not found in DNS yet: publish that key first",
        ));
    }
    let turn = SELECTORS.iter().position(|turn| turn.contains(&newest.selector.as_str()));
    Ok(turn.map_or(0, |turn| (turn + 1) % SELECTORS.len()))
}

/// Checks the keys of the hosted domains in DNS; domains without keys get some.
#[crate::boxed]
pub async fn check_all_hosted(app: &App) -> Result<()> {
    for domain in &app.settings().hosted_domains {
        check_hosted(app, domain).await?;
    }
    Ok(())
}

async fn check_hosted(app: &App, domain: &str) -> Result<Vec<KeyRecord>> {
    let mut keys = hosted(app, domain).await?;
    if keys.is_empty() {
        let made =
            sealed(make(app).await?, 0, app.now(), |purpose, plain| app.master_key().seal(purpose, plain))?;
        let name = domain.to_owned();
        let written = app.db().system_write(async move |tx| {
            for key in &made {
                hosted_keys::insert(tx, &name, key).await?;
            }
            Ok::<_, Error>(())
        });
        written.await?;
        keys = hosted(app, domain).await?;
    }
    let wanted: Vec<DnsRecord> = keys.iter().map(|key| records::dkim(domain, key, false)).collect();
    let check = records::look_up_all(app, &wanted).await;
    for key in &mut keys {
        // An unavailable name server changes nothing.
        let Some(found) = check.found.get(&records::dkim_key(domain, &key.selector)) else { continue };
        let published = *found == RecordStatus::Verified;
        if published != key.published {
            key.published = published;
            let (name, selector) = (domain.to_owned(), key.selector.clone());
            let noted = app.db().system_write(async move |tx| {
                hosted_keys::set_published(tx, &name, &selector, published).await
            });
            noted.await?;
        }
    }
    Ok(keys)
}

async fn hosted(app: &App, domain: &str) -> Result<Vec<KeyRecord>> {
    let name = domain.to_owned();
    Ok(app.db().system_read(async move |tx| hosted_keys::list(tx, &name).await).await?)
}
