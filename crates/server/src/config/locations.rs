//! The locations of the stores and the key. No message repeats a value, which may hold secrets.

use std::path::Path;

use store::{
    DatabaseLocation, PostgresLocation,
    blobs::BlobLocation,
    is_postgres_url,
    vault::{MasterKey, VaultError},
};

use super::{layers::Sources, sections::KeySource};

pub(super) fn database(url: &str, data_dir: &Path) -> Result<DatabaseLocation, String> {
    if url.is_empty() {
        return Ok(DatabaseLocation::Sqlite(data_dir.join("agent-mailbox.db")));
    }
    let url = postgres_url(url)?;
    Ok(DatabaseLocation::Postgres(PostgresLocation::new(url)))
}

/// A PostgreSQL server's URL.
pub(super) fn postgres_url(text: &str) -> Result<String, String> {
    let hint =
        "expected postgres://user:password@host/name; in the password, write special characters as %XX";
    if is_postgres_url(text) { Ok(text.to_owned()) } else { Err(hint.to_owned()) }
}

pub(super) fn blobs(url: &str, data_dir: &Path, sources: &Sources) -> Result<BlobLocation, String> {
    if url.is_empty() {
        return Ok(BlobLocation::Directory(data_dir.join("blobs")));
    }
    let environment = sources.environment.iter().cloned().collect();
    match BlobLocation::parse(url, &environment) {
        Ok(BlobLocation::Directory(path)) => Ok(BlobLocation::Directory(sources.working_dir.join(path))),
        Ok(location) => Ok(location),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn master_key(text: &str, data_dir: &Path) -> Result<KeySource, String> {
    if text.is_empty() {
        return Ok(KeySource::File(data_dir.join("master.key")));
    }
    // 64 digits are a hexadecimal key; no base64 key is that long.
    let key = if text.len() == 64 { MasterKey::from_hex(text) } else { MasterKey::from_base64(text) };
    key.map(KeySource::Given).map_err(|error| match error {
        VaultError::NotBase64 => "expected 64 hexadecimal digits, or 32 bytes in base64".to_owned(),
        other => other.to_string(),
    })
}
