//! `import`: reads an mbox file or a folder of messages into a mailbox, the same way as arriving mail.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use bytes::Bytes;
use operations::{App, admin, maintenance};
use serde_json::json;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};

use super::{admin::operator, progress::Progress};
use crate::{
    config::Config,
    failure::{Failure, Result},
    open, output,
};

/// Messages stored concurrently: enough to share commits.
const MAX_CONCURRENT_MESSAGES: usize = 256;
/// The largest message that is read.
const MAX_MESSAGE_BYTES: usize = 256 << 20;
/// Memory for messages in flight: one of the largest, or many small ones.
const MEMORY_CAPACITY_KIB: usize = 256 << 10;

/// Imports a file or folder into the mailbox with this address or id.
pub async fn run(config: Config, mailbox: String, path: PathBuf) -> Result<ExitCode> {
    let app = open::attach(&config).await?;
    let target = admin::find_mailbox(&app, &mailbox).await.map_err(|error| {
        Failure::from(error)
            .or_fix("Give the address or the id of a mailbox on this server; the console lists them.")
    })?;
    let total = size_of(&path)?;
    admin::begin_import(&app, &target, &operator("import")).await?;
    let mut counts = Counts { bytes: 0, messages: 0, progress: Progress::new(total) };
    // Without statistics the planner of an empty server would scan all messages for each one.
    let statistics = tokio::spawn(maintenance::keep_statistics(app.clone()));
    let outcome = import_all(&app, &target, &path, &mut counts).await;
    // A server running next to this would index the last ones only later.
    if let Err(error) = app.db().index_texts().await {
        tracing::warn!(%error, "indexing the last messages failed; leaving it to the server");
    }
    statistics.abort();
    counts.progress.end();
    // For a retry it matters what is already stored.
    outcome.map_err(|failure| failure.with_value("imported", counts.messages)).inspect_err(|_| {
        if counts.messages > 0 && !output::is_json() {
            output::line(format!(
                "Imported {} before it failed.",
                output::plural(counts.messages, "message")
            ));
        }
    })?;
    if counts.messages == 0 {
        return Err(Failure::new(format!("There are no messages in {}", path.display()))
            .with_fix("Give an mbox file, a message (.eml), or a folder of messages such as a Maildir."));
    }
    output::result(
        &json!({ "mailbox": mailbox, "imported": counts.messages, "bytes": counts.bytes }),
        || format!("Imported {}.", output::plural(counts.messages, "message")),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Imports everything at the path.
async fn import_all(app: &App, target: &admin::ImportTarget, path: &Path, counts: &mut Counts) -> Result<()> {
    let (sender, mut messages) = mpsc::channel(MAX_CONCURRENT_MESSAGES);
    let reading = path.to_owned();
    let queue = MessageQueue {
        messages: sender,
        memory: Arc::new(Semaphore::new(MEMORY_CAPACITY_KIB)),
        runtime: Handle::current(),
    };
    let reader = tokio::task::spawn_blocking(move || read_all(&reading, &queue));
    let mut running = tokio::task::JoinSet::new();
    while let Some(message) = messages.recv().await {
        let Message { raw, bytes, memory } =
            message.map_err(|error| Failure::new(format!("Cannot read {}: {error}", path.display())))?;
        if running.len() >= MAX_CONCURRENT_MESSAGES {
            finish(running.join_next().await, counts)?;
        }
        let (app, target) = (app.clone(), target.clone());
        running.spawn(async move {
            let _memory = memory;
            import_one(&app, target, raw).await.map(|()| bytes)
        });
    }
    while let Some(done) = running.join_next().await {
        finish(Some(done), counts)?;
    }
    let _ = reader.await;
    Ok(())
}

/// A message in flight.
struct Message {
    raw: Bytes,
    /// The bytes of the file that are read when it is done.
    bytes: u64,
    /// Its permit of the memory.
    memory: OwnedSemaphorePermit,
}

/// The queue of messages that were read. Few large ones or many small ones are in flight at once.
struct MessageQueue {
    messages: mpsc::Sender<std::io::Result<Message>>,
    memory: Arc<Semaphore>,
    runtime: Handle,
}

impl MessageQueue {
    /// Queues a message as soon as there is memory for it; false when the receiver is closed.
    fn send(&self, raw: Bytes, bytes: u64) -> bool {
        let kibibytes = (raw.len() / 1024 + 1).min(MEMORY_CAPACITY_KIB);
        let share = u32::try_from(kibibytes).unwrap_or(u32::MAX);
        let Ok(memory) = self.runtime.block_on(self.memory.clone().acquire_many_owned(share)) else {
            return false;
        };
        self.messages.blocking_send(Ok(Message { raw, bytes, memory })).is_ok()
    }
}

/// What was imported so far.
struct Counts {
    bytes: u64,
    messages: u64,
    progress: Progress,
}

impl Counts {
    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.messages += 1;
        self.progress.reach(self.bytes, self.messages);
    }
}

async fn import_one(app: &App, target: admin::ImportTarget, raw: Bytes) -> Result<()> {
    admin::import_message(app, target, raw).await?;
    Ok(())
}

fn finish(
    done: Option<std::result::Result<Result<u64>, tokio::task::JoinError>>,
    counts: &mut Counts,
) -> Result<()> {
    match done {
        Some(Ok(outcome)) => counts.add(outcome?),
        Some(Err(error)) => return Err(Failure::new(format!("The import was interrupted: {error}"))),
        None => {}
    }
    Ok(())
}

fn size_of(path: &Path) -> Result<u64> {
    let failed = |error: std::io::Error| Failure::new(format!("Cannot read {}: {error}", path.display()));
    let about = std::fs::metadata(path).map_err(failed)?;
    if !about.is_dir() {
        return Ok(about.len());
    }
    let sizes = files_in(path).map_err(failed)?;
    Ok(sizes.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|about| about.len()).sum())
}

/// The messages of a folder: its files, and those of a Maildir's `cur` and `new`.
fn files_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for place in [folder.to_owned(), folder.join("cur"), folder.join("new")] {
        let Ok(entries) = std::fs::read_dir(&place) else { continue };
        for entry in entries {
            let path = entry?.path();
            let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if path.is_file() && !hidden {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read_all(path: &Path, queue: &MessageQueue) {
    let outcome = if path.is_dir() { read_folder(path, queue) } else { read_file(path, queue) };
    if let Err(error) = outcome {
        // The receiver is closed: the import has already failed, and said why.
        let _ = queue.messages.blocking_send(Err(error));
    }
}

fn read_folder(path: &Path, queue: &MessageQueue) -> std::io::Result<()> {
    for file in files_in(path)? {
        read_file(&file, queue)?;
    }
    Ok(())
}

/// One file: an mbox, or a single message. An mbox is streamed, whatever its size.
fn read_file(path: &Path, queue: &MessageQueue) -> std::io::Result<()> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    let is_mbox = file.fill_buf()?.starts_with(b"From ");
    if !is_mbox && !begins_with_header(file.fill_buf()?) {
        return Err(std::io::Error::other(
            "neither an mbox file nor a message: it does not begin with a header line",
        ));
    }
    let (mut message, mut after_empty, mut first) = (Vec::new(), true, true);
    let mut line = Vec::new();
    loop {
        line.clear();
        // One byte more than a message may have, so that an endless line is noticed.
        if file.by_ref().take(MAX_MESSAGE_BYTES as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if is_mbox && after_empty && line.starts_with(b"From ") && !first {
            enqueue(&mut message, is_mbox, queue)?;
        }
        after_empty = matches!(line.as_slice(), b"\n" | b"\r\n");
        first = false;
        if message.len() + line.len() > MAX_MESSAGE_BYTES {
            return Err(std::io::Error::other("a message is larger than 256 MB"));
        }
        message.extend_from_slice(&line);
    }
    enqueue(&mut message, is_mbox, queue)
}

/// Whether a file can be a message: its first line has a name and a colon. An empty file holds no message, and is
/// no error.
fn begins_with_header(start: &[u8]) -> bool {
    let name: Vec<u8> =
        start.iter().copied().take_while(u8::is_ascii_graphic).take_while(|byte| *byte != b':').collect();
    start.is_empty() || (!name.is_empty() && start.get(name.len()) == Some(&b':'))
}

fn enqueue(message: &mut Vec<u8>, is_mbox: bool, queue: &MessageQueue) -> std::io::Result<()> {
    let whole = Bytes::from(std::mem::take(message));
    let bytes = whole.len() as u64;
    let all = if is_mbox { operations::emails::split_mbox(&whole) } else { vec![whole] };
    let count = all.len() as u64;
    for (index, raw) in all.into_iter().enumerate() {
        // The file's bytes count once, with its last message.
        let counted = if index as u64 + 1 == count { bytes } else { 0 };
        if !raw.is_empty() && !queue.send(raw, counted) {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
    }
    Ok(())
}
