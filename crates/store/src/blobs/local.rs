//! Blobs as files in a folder: `space/aa/bb/rest-of-the-name`, mode 0600 in folders of mode 0700.
//!
//! A file is written under a temporary name, synced and renamed, and then its folder is synced. So a name that exists
//! always has complete content, and an acknowledged write survives a power failure.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::blob_name::BlobName;
use super::blocking::blocking;
use super::durable;
use super::error::BlobError;
use super::frames::MAX_STORED_BYTES;
use super::hash::is_hex;
use super::listing::{BlobPage, ListedBlob};
use super::names::PROBES;
use crate::vault::{hex, random};

/// Where files are until they are complete; no space can have this name.
const TEMPORARY: &str = ".tmp";

/// How many folders are remembered as durable before the set is cleared.
const MAX_DURABLE_FOLDERS: usize = 65_536;

/// A folder of blobs.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    /// Folders whose names this process has synced. That a folder exists is not enough: the process that created it
    /// may have died, or another thread may not have synced it yet.
    durable_folders: Mutex<HashSet<PathBuf>>,
}

impl Folder {
    /// Opens the folder and creates it if it is missing; blocks.
    pub(super) fn open(root: PathBuf) -> Result<Self, BlobError> {
        let made = durable::make_folder(&root);
        made.map_err(|cause| failure("make the folder", &root, cause))?;
        // For a folder that was created before a crash. A parent that we may not open is not one that we just wrote
        // to.
        let _ = durable::sync_folder(durable::folder_of(&root));
        Ok(Self { root, durable_folders: Mutex::default() })
    }

    /// Writes a file durably; an older one of the same name is replaced atomically.
    pub(super) async fn write(self: &Arc<Self>, name: String, content: Bytes) -> Result<(), BlobError> {
        self.run("write", name, move |folder, path| match folder.write_file(path, &content) {
            // A folder was removed. Forget them all and create what is needed again.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                folder.durable_folders().clear();
                folder.write_file(path, &content)
            }
            outcome => outcome,
        })
        .await
    }

    /// Reads a file, if it exists.
    pub(super) async fn read(self: &Arc<Self>, name: String) -> Result<Option<Bytes>, BlobError> {
        self.run("read", name, |_, path| optional(read_file(path))).await
    }

    /// Whether a file exists.
    pub(super) async fn exists(self: &Arc<Self>, name: String) -> Result<bool, BlobError> {
        self.run("look for", name, |_, path| Ok(optional(fs::metadata(path))?.is_some())).await
    }

    /// Deletes a file, if it exists.
    pub(super) async fn delete(self: &Arc<Self>, name: String) -> Result<(), BlobError> {
        // Not synced: after a power failure the file may be back, an orphan for the next sweep.
        self.run("delete", name, |_, path| optional(fs::remove_file(path)).map(drop)).await
    }

    /// Deletes a file that was last written before a time (microseconds UTC), and returns whether it did.
    ///
    /// The file is renamed first and checked there: a concurrent writer that renews it either finds it missing and
    /// writes it again, or has renewed it in time, and then it is put back.
    pub(super) async fn delete_older(self: &Arc<Self>, name: String, before: i64) -> Result<bool, BlobError> {
        self.run("delete", name, move |folder, path| {
            let aside = folder.temporary()?;
            if optional(fs::rename(path, &aside))?.is_none() {
                return Ok(false);
            }
            if micros(fs::metadata(&aside)?.modified()?).is_some_and(|at| at < before) {
                return Ok(optional(fs::remove_file(&aside))?.is_some());
            }
            fs::rename(&aside, path)?;
            durable::sync_folder(durable::folder_of(path))?;
            Ok(false)
        })
        .await
    }

    /// Sets the time of a file to now and syncs it; returns whether it (still) exists.
    pub(super) async fn renew(self: &Arc<Self>, name: String) -> Result<bool, BlobError> {
        self.run("renew", name, |folder, path| {
            let now = folder.now()?;
            let Some(file) = optional(File::open(path))? else { return Ok(false) };
            file.set_modified(now)?;
            file.sync_all()?;
            let parent = durable::folder_of(path);
            folder.make_durable(parent)?;
            durable::sync_folder(parent)?;
            // Checked last: a file that a sweeper deleted meanwhile must be written again.
            Ok(optional(fs::metadata(path))?.is_some())
        })
        .await
    }

    /// Lists the blobs of a space by ascending name.
    pub(super) async fn list(
        self: &Arc<Self>,
        space: String,
        after: Option<BlobName>,
        limit: usize,
    ) -> Result<BlobPage, BlobError> {
        let after = after.map_or(String::new(), |name| name.to_string());
        let list = move |_: &Self, path: &Path| {
            // One more than requested tells whether there is a next page.
            let mut blobs = Vec::new();
            collect(path, &after, limit + 1, &mut blobs)?;
            let more = blobs.len() > limit;
            blobs.truncate(limit);
            let next = if more { blobs.last().map(|last| last.name.clone()) } else { None };
            Ok(BlobPage { blobs, next })
        };
        self.run("list", space, list).await
    }

    /// Deletes temporary files and probes that are older than the given time.
    pub(super) async fn sweep_temporary(self: &Arc<Self>, older_than: Duration) -> Result<u64, BlobError> {
        let sweep = move |folder: &Self, _: &Path| {
            let now = folder.now()?;
            let mut removed = 0;
            for place in [TEMPORARY, PROBES] {
                let Some(entries) = optional(fs::read_dir(folder.root.join(place)))? else { continue };
                for entry in entries {
                    let entry = entry?;
                    let Some(about) = optional(entry.metadata())? else { continue };
                    let age = now.duration_since(about.modified()?).unwrap_or_default();
                    if about.is_file()
                        && age > older_than
                        && optional(fs::remove_file(entry.path()))?.is_some()
                    {
                        removed += 1;
                    }
                }
            }
            Ok(removed)
        };
        self.run("sweep", TEMPORARY.to_owned(), sweep).await
    }

    /// Runs blocking work on the path of a name.
    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        action: &'static str,
        name: String,
        work: impl FnOnce(&Self, &Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, BlobError> {
        let folder = Arc::clone(self);
        blocking(move || {
            let path = folder.root.join(name);
            work(&folder, &path).map_err(|cause| failure(action, &path, cause))
        })
        .await
    }

    fn write_file(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let parent = durable::folder_of(path);
        let temporary = self.temporary()?;
        let renamed = durable::write_new(&temporary, content)
            .and_then(|()| self.make_durable(parent))
            .and_then(|()| fs::rename(&temporary, path));
        if renamed.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        renamed?;
        durable::sync_folder(parent)
    }

    /// Creates a folder below the root and syncs its name and those above it: once per process.
    fn make_durable(&self, folder: &Path) -> io::Result<()> {
        if folder == self.root || self.durable_folders().contains(folder) {
            return Ok(());
        }
        self.make_durable(durable::folder_of(folder))?;
        durable::ensure_folder(folder)?;
        let mut durable_folders = self.durable_folders();
        if durable_folders.len() >= MAX_DURABLE_FOLDERS {
            durable_folders.clear();
        }
        durable_folders.insert(folder.to_owned());
        Ok(())
    }

    fn durable_folders(&self) -> std::sync::MutexGuard<'_, HashSet<PathBuf>> {
        // A panic elsewhere cannot leave the set half changed.
        self.durable_folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new path for an incomplete file.
    fn temporary(&self) -> io::Result<PathBuf> {
        let folder = self.root.join(TEMPORARY);
        durable::make_folder(&folder)?;
        let name = random::<16>().map_err(io::Error::other)?;
        Ok(folder.join(hex(&name)))
    }

    /// The time by the clock that stamps our files, which may be another machine's.
    fn now(&self) -> io::Result<SystemTime> {
        let path = self.temporary()?;
        let time = File::create_new(&path)?.metadata()?.modified();
        fs::remove_file(&path)?;
        time
    }
}

fn failure(action: &'static str, path: &Path, cause: io::Error) -> BlobError {
    BlobError::Folder { action, path: path.into(), cause }
}

/// Turns "not found" into `None`.
fn optional<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_file(path: &Path) -> io::Result<Bytes> {
    let file = File::open(path)?;
    let mut content = Vec::new();
    // A file larger than we ever write is read only this far, and then fails to open.
    file.take(MAX_STORED_BYTES as u64).read_to_end(&mut content)?;
    Ok(content.into())
}

/// Collects the blobs of a space whose name is greater than `after`, up to `limit`.
fn collect(space: &Path, after: &str, limit: usize, blobs: &mut Vec<ListedBlob>) -> io::Result<()> {
    for first in names(space)?.into_iter().filter(|first| first.as_str() >= prefix(after, 2)) {
        let folder = space.join(&first);
        for second in names(&folder)? {
            let start = format!("{first}{second}");
            if start.as_str() < prefix(after, 4) {
                continue;
            }
            let folder = folder.join(&second);
            for rest in sorted_names(&folder, |_| true)? {
                let text = format!("{start}{rest}");
                let Ok(name) = BlobName::parse(&text) else { continue };
                if text.as_str() <= after {
                    continue;
                }
                let Some(about) = optional(fs::metadata(folder.join(&rest)))? else { continue };
                blobs.push(ListedBlob {
                    name,
                    stored_size: about.len(),
                    modified: micros(about.modified()?),
                });
                if blobs.len() == limit {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

fn prefix(name: &str, length: usize) -> &str {
    name.get(..length).unwrap_or_default()
}

/// The folders of a level, sorted: each is named by two digits of a hash; anything else is not ours.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    sorted_names(folder, |name| name.len() == 2 && is_hex(name))
}

fn sorted_names(folder: &Path, is_ours: impl Fn(&str) -> bool) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    let Some(entries) = optional(fs::read_dir(folder))? else { return Ok(names) };
    for entry in entries {
        if let Ok(name) = entry?.file_name().into_string()
            && is_ours(&name)
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn micros(time: SystemTime) -> Option<i64> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_micros()).ok()
}
