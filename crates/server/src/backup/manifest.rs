//! `manifest.json`: the content of a backup. It is written last, so that a backup without it is incomplete, and
//! sealed, so that changes are detected.

use std::{fs, io, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use model::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::vault::{MasterKey, VaultError};

use super::sealed::{SealedFile, sync_folder, write_private};
use crate::failure::{Failure, Result};

/// The version of the format.
pub const FORMAT: u32 = 1;
/// The file that marks a backup as complete and lists its content.
const MANIFEST: &str = "manifest.json";
/// The purpose of the manifest's own seal.
const PURPOSE: &str = "backup/manifest";

/// The content of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the format.
    pub format: u32,
    /// The version of the program that wrote it.
    pub program: String,
    /// When it was started.
    pub made_at: Timestamp,
    /// The engine that the rows come from, for information.
    pub engine: String,
    /// The version of the schema that the rows belong to.
    pub schema_version: i64,
    /// The tables, parents before children.
    pub tables: Vec<TableEntry>,
    /// The blobs.
    pub blobs: BlobEntry,
    /// The hash of all the above, sealed: it shows that the key is right and that the manifest was not changed.
    pub seal: String,
}

/// The rows of one table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TableEntry {
    /// The table.
    pub name: String,
    /// Its columns, in the order of the values in a row.
    pub columns: Vec<String>,
    /// The number of rows.
    pub rows: u64,
    /// The file that holds them.
    #[serde(flatten)]
    pub file: SealedFile,
}

/// The blobs of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlobEntry {
    /// The number of blobs.
    pub count: u64,
    /// Their total size.
    pub total_bytes: u64,
    /// The file that lists them.
    #[serde(flatten)]
    pub file: SealedFile,
}

/// One blob, as the index lists it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlobLine {
    /// Its space.
    pub space: String,
    /// Its name.
    #[serde(rename = "hash")]
    pub name: String,
    /// The SHA-256 of its stored bytes.
    pub sha256: String,
}

impl Manifest {
    /// Seals the hash of the manifest's content.
    pub fn seal(&mut self, key: &MasterKey) -> Result<()> {
        self.seal = STANDARD.encode(key.seal(PURPOSE, &self.digest()?)?);
        Ok(())
    }

    /// Checks that the manifest is unchanged since it was sealed with this key.
    pub fn verify(&self, key: &MasterKey) -> Result<()> {
        let changed = || Failure::new("The backup's manifest.json was changed after it was made");
        let sealed = STANDARD.decode(&self.seal).map_err(|_| changed())?;
        match key.open(PURPOSE, &sealed) {
            Ok(digest) if digest == self.digest()? => Ok(()),
            Ok(_) => Err(changed()),
            Err(VaultError::Refused) => Err(Failure::new("This backup was made with another master key")
                .with_fix("Configure the key of the server that it was made on (vault.master_key, or the file master.key).")),
            Err(other) => Err(other.into()),
        }
    }

    fn digest(&self) -> Result<Vec<u8>> {
        let unsealed = Self { seal: String::new(), ..self.clone() };
        Ok(Sha256::digest(to_json(&unsealed)?).to_vec())
    }

    /// Writes the manifest, durably and atomically.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let failed = |error: io::Error| Failure::new(format!("Cannot write the manifest: {error}"));
        let temporary = folder.join(".manifest.json");
        write_private(&temporary, &to_json(self)?).map_err(failed)?;
        fs::rename(&temporary, folder.join(MANIFEST)).map_err(failed)?;
        sync_folder(folder)
    }

    /// Reads the manifest of a backup.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let shown = folder.display();
                return Err(Failure::new(format!("{shown} is not a backup, or an unfinished one"))
                    .with_fix("A finished backup has a file manifest.json."));
            }
            Err(error) => return Err(Failure::new(format!("Cannot read {}: {error}", path.display()))),
        };
        let strange = |why: String| Failure::new(format!("{} cannot be understood: {why}", path.display()));
        let value: serde_json::Value =
            serde_json::from_slice(&text).map_err(|error| strange(error.to_string()))?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => {
                return Err(strange(format!("it has format {format}, this program knows {FORMAT}")));
            }
            None => return Err(strange("it has no format".to_owned())),
        }
        serde_json::from_value(value).map_err(|error| strange(error.to_string()))
    }
}

fn to_json(manifest: &Manifest) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(manifest).map_err(|error| Failure::new(error.to_string()))?;
    text.push(b'\n');
    Ok(text)
}
