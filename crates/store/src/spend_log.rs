//! What this process has spent of its advances, in a local file that survives the process but not a power failure.
//!
//! Every workspace has a slot that is overwritten with each answered call, without a flush: the page cache survives a
//! killed process, and the next process returns unspent advances to the pools. After a power failure the file may be
//! stale, so it is only valid on the same boot of the same machine; otherwise the advances stay charged.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use model::{Timestamp, WorkspaceId};

/// Magic bytes of the file.
const MAGIC: &[u8; 8] = b"AMSPEND1";
/// The header: magic, node and boot.
const HEADER_BYTES: usize = 256;
/// A slot: the workspace's id, and the figures from the middle on.
const SLOT_BYTES: usize = 128;
const ID_BYTES: usize = 64;
const NAME_BYTES: usize = 64;

/// What a node spent of one pool in one period, from its first advance on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodSpend {
    /// The period.
    pub period_start: Timestamp,
    /// Spent without a ledger entry.
    pub reads: i64,
}

impl PeriodSpend {
    /// Nothing, in no period.
    pub const NOTHING: Self = Self { period_start: Timestamp::from_micros(0), reads: 0 };
}

impl Default for PeriodSpend {
    fn default() -> Self {
        Self::NOTHING
    }
}

/// The figures of a workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceSpend {
    /// Credits of the month.
    pub credits: PeriodSpend,
    /// Requests of the minute.
    pub requests: PeriodSpend,
}

impl WorkspaceSpend {
    fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let numbers = [
            self.credits.period_start.as_micros(),
            self.credits.reads,
            self.requests.period_start.as_micros(),
            self.requests.reads,
        ];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
            i64::from_le_bytes(number)
        };
        let spent =
            |at| PeriodSpend { period_start: Timestamp::from_micros(number(at)), reads: number(at + 1) };
        Self { credits: spent(0), requests: spent(2) }
    }
}

/// The log of a running process. Its file is locked while the process lives.
pub struct SpendLog {
    file: File,
    path: PathBuf,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    /// Slots in the file.
    count: u64,
    free: Vec<u64>,
    /// Whether writing failed; the file is deleted then.
    broken: bool,
}

/// The log of a process that has ended.
pub struct OrphanedLog {
    /// Its node name.
    pub node: String,
    /// What it had spent, by workspace.
    pub figures: Vec<(WorkspaceId, WorkspaceSpend)>,
    path: PathBuf,
    // Keeps the lock, so that no other process recovers it too.
    _file: File,
}

impl OrphanedLog {
    /// Removes the file, once its figures are stored.
    pub fn delete(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

impl SpendLog {
    /// Creates a log in a folder, which is created if it is missing.
    pub fn create(folder: &Path, node: &str) -> io::Result<Arc<Self>> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{node}.log"));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        file.lock()?;
        let mut header = [0; HEADER_BYTES];
        header[..MAGIC.len()].copy_from_slice(MAGIC);
        put_name(&mut header[8..8 + NAME_BYTES], node);
        put_name(&mut header[8 + NAME_BYTES..8 + 2 * NAME_BYTES], &boot());
        file.write_all_at(&header, 0)?;
        Ok(Arc::new(Self { file, path, slots: Mutex::default() }))
    }

    /// The logs of ended processes in the folder. Files that are not valid are deleted.
    pub fn orphaned(folder: &Path) -> io::Result<Vec<OrphanedLog>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let Ok(mut file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
            // A live process has its file locked.
            if file.try_lock().is_err() {
                continue;
            }
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            match read(&bytes) {
                Some((node, figures)) => found.push(OrphanedLog { node, figures, path, _file: file }),
                None => fs::remove_file(&path)?,
            }
        }
        Ok(found)
    }

    /// A slot for a workspace's figures.
    pub fn slot(self: &Arc<Self>, workspace: &WorkspaceId) -> Slot {
        let number = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.free.pop().unwrap_or_else(|| {
                slots.count += 1;
                slots.count - 1
            })
        };
        let slot = Slot { log: self.clone(), number };
        let mut bytes = [0; SLOT_BYTES];
        put_name(&mut bytes[..ID_BYTES], workspace.as_str());
        slot.write_at(0, &bytes);
        slot
    }

    /// A log that cannot be written must not be read either: a stale figure would make calls free.
    fn disable(&self, error: &io::Error) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut slots.broken, true) {
            return;
        }
        tracing::warn!(%error, "spend log failed; after a crash, credits charged ahead will stay charged");
        if let Err(error) = fs::remove_file(&self.path).or_else(|_| self.file.set_len(0)) {
            tracing::error!(%error, "spend log could not be removed; operator action needed");
        }
    }
}

impl std::fmt::Debug for SpendLog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SpendLog").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A workspace's slot in the log.
#[derive(Debug)]
pub struct Slot {
    log: Arc<SpendLog>,
    number: u64,
}

impl Slot {
    /// Writes the figures. Calls for one slot must not overlap.
    ///
    /// A write of a few bytes to the page cache takes about a microsecond, so it is done on the calling thread.
    pub fn write(&self, figures: WorkspaceSpend) {
        self.write_at(ID_BYTES as u64, &figures.to_bytes());
    }

    /// Clears the slot, for another workspace. A slot that is merely dropped keeps its figures for the next process.
    pub fn release(self) {
        self.write_at(0, &[0; SLOT_BYTES]);
        self.log.slots.lock().unwrap_or_else(PoisonError::into_inner).free.push(self.number);
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) {
        let slot = HEADER_BYTES as u64 + self.number * SLOT_BYTES as u64;
        if let Err(error) = self.log.file.write_all_at(bytes, slot + offset) {
            self.log.disable(&error);
        }
    }
}

fn put_name(place: &mut [u8], name: &str) {
    let length = name.len().min(place.len());
    place[..length].copy_from_slice(&name.as_bytes()[..length]);
}

fn name(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).ok().filter(|name| !name.is_empty())
}

/// The node and the figures of a valid file.
fn read(bytes: &[u8]) -> Option<(String, Vec<(WorkspaceId, WorkspaceSpend)>)> {
    let (header, slots) = bytes.split_at_checked(HEADER_BYTES)?;
    let node = name(&header[8..8 + NAME_BYTES])?;
    if !header.starts_with(MAGIC) || name(&header[8 + NAME_BYTES..8 + 2 * NAME_BYTES])? != boot() {
        return None;
    }
    let figures = slots.chunks_exact(SLOT_BYTES).filter_map(|slot| {
        let workspace = WorkspaceId::from(name(&slot[..ID_BYTES])?);
        Some((workspace, WorkspaceSpend::from_bytes(&slot[ID_BYTES..ID_BYTES + 32])))
    });
    Some((node.to_owned(), figures.collect()))
}

/// The boot id of this machine; empty where the system has none, and then no file is valid.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
