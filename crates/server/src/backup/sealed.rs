//! Files of sealed chunks: each chunk is compressed, sealed with its number, and prefixed with its length. All
//! functions block.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufReader, BufWriter, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::vault::{MasterKey, hex};

use crate::failure::{Failure, Result};

const COMPRESSION_LEVEL: i32 = 3;
/// The largest chunk that is read; written ones are far smaller.
const MAX_CHUNK_BYTES: u32 = 1 << 30;

/// A finished file, as the manifest describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SealedFile {
    /// Its path below the backup's folder.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its content.
    pub sha256: String,
}

impl SealedFile {
    /// Checks that the file exists with its recorded content.
    pub fn verify(&self, folder: &Path) -> Result<()> {
        let path = folder.join(&self.file);
        let failed = |error: io::Error| Failure::new(format!("Cannot read {}: {error}", path.display()));
        let mut file = File::open(&path).map_err(failed)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let count = file.read(&mut buffer).map_err(failed)?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
        }
        if hex(&hasher.finalize()) == self.sha256 {
            return Ok(());
        }
        Err(Failure::new(format!(
            "{} is damaged: its SHA-256 is not the one in the manifest",
            path.display()
        )))
    }
}

/// Writes a file of chunks.
pub struct SealedWriter {
    output: BufWriter<File>,
    hasher: Sha256,
    key: MasterKey,
    name: String,
    file: String,
    path: PathBuf,
    chunk: u64,
    bytes: u64,
}

impl SealedWriter {
    /// Creates a file below the backup's folder; `name` says what it holds.
    pub fn create(folder: &Path, file: String, name: &str, key: &MasterKey) -> Result<Self> {
        let path = folder.join(&file);
        let output = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let output = output.map_err(|error| cannot("write", &path, &error))?;
        Ok(Self {
            output: BufWriter::new(output),
            hasher: Sha256::new(),
            key: key.clone(),
            name: name.to_owned(),
            file,
            path,
            chunk: 0,
            bytes: 0,
        })
    }

    /// Adds a chunk.
    pub fn write(&mut self, content: &[u8]) -> Result<()> {
        let packed = zstd::bulk::compress(content, COMPRESSION_LEVEL);
        let packed = packed.map_err(|error| cannot("write", &self.path, &error))?;
        let sealed = self.key.seal(&purpose(&self.name, self.chunk), &packed)?;
        let length = u32::try_from(sealed.len()).ok().filter(|length| *length <= MAX_CHUNK_BYTES);
        let length = length.ok_or_else(|| Failure::new(format!("A piece of {} is too large", self.name)))?;
        for part in [length.to_le_bytes().as_slice(), &sealed] {
            self.output.write_all(part).map_err(|error| cannot("write", &self.path, &error))?;
            self.hasher.update(part);
            self.bytes += part.len() as u64;
        }
        self.chunk += 1;
        Ok(())
    }

    /// Syncs the file to disk and describes it.
    pub fn finish(self) -> Result<SealedFile> {
        let flushed = self.output.into_inner().map_err(io::IntoInnerError::into_error);
        let synced = flushed.and_then(|file| file.sync_all());
        synced.map_err(|error| cannot("write", &self.path, &error))?;
        Ok(SealedFile { file: self.file, bytes: self.bytes, sha256: hex(&self.hasher.finalize()) })
    }
}

/// Reads a file of chunks.
pub struct SealedReader {
    input: BufReader<File>,
    key: MasterKey,
    name: String,
    path: PathBuf,
    chunk: u64,
}

impl SealedReader {
    /// Opens a file below the backup's folder.
    pub fn open(folder: &Path, file: &SealedFile, name: &str, key: &MasterKey) -> Result<Self> {
        let path = folder.join(&file.file);
        let input = File::open(&path).map_err(|error| cannot("read", &path, &error))?;
        Ok(Self { input: BufReader::new(input), key: key.clone(), name: name.to_owned(), path, chunk: 0 })
    }

    /// The next chunk; `None` after the last.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let mut length = [0; 4];
        match self.input.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            outcome => outcome.map_err(|error| cannot("read", &self.path, &error))?,
        }
        let length = u32::from_le_bytes(length);
        let damaged = || Failure::new(format!("{} is damaged", self.path.display()));
        if length > MAX_CHUNK_BYTES {
            return Err(damaged());
        }
        let mut sealed = Vec::new();
        let read = (&mut self.input).take(length.into()).read_to_end(&mut sealed);
        read.map_err(|error| cannot("read", &self.path, &error))?;
        let packed = self.key.open(&purpose(&self.name, self.chunk), &sealed).map_err(|_| damaged())?;
        self.chunk += 1;
        // Anyone who could seal this could have written anything, so its size needs no second bound.
        zstd::stream::decode_all(packed.as_slice()).map(Some).map_err(|_| damaged())
    }
}

/// The purpose of a chunk's seal, so that chunks cannot be exchanged.
fn purpose(name: &str, chunk: u64) -> String {
    format!("backup/{name}/{chunk}")
}

fn cannot(action: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("Cannot {action} {}: {error}", path.display()))
}

/// Writes a file that only its owner may read, and syncs its content (not its directory entry).
pub(super) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Syncs a folder's entries to disk.
pub fn sync_folder(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| cannot("write", folder, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_back_in_order_and_only_with_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let key = MasterKey::generate().unwrap();
        let mut writer = SealedWriter::create(folder.path(), "rows".to_owned(), "account", &key).unwrap();
        for content in ["one\n", "", "three\n"] {
            writer.write(content.as_bytes()).unwrap();
        }
        let file = writer.finish().unwrap();
        file.verify(folder.path()).unwrap();
        let mut reader = SealedReader::open(folder.path(), &file, "account", &key).unwrap();
        let mut read = Vec::new();
        while let Some(content) = reader.next().unwrap() {
            read.push(String::from_utf8(content).unwrap());
        }
        assert_eq!(read, ["one\n", "", "three\n"]);

        let other = MasterKey::generate().unwrap();
        assert!(SealedReader::open(folder.path(), &file, "account", &other).unwrap().next().is_err());
        assert!(SealedReader::open(folder.path(), &file, "session", &key).unwrap().next().is_err());
        let path = folder.path().join("rows");
        let mut bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(3).any(|part| part == b"one"), "nothing is readable");
        bytes[10] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(file.verify(folder.path()).is_err());
    }
}
