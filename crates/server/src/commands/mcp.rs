//! `mcp`: a bridge between an MCP client on standard input and output and a running server.
//!
//! Messages are forwarded unchanged, each in a request of its own. Standard output belongs to the protocol; text
//! for people goes to standard error.

mod wire;

use std::{
    collections::HashMap,
    io::{BufRead, Read, Write},
    path::Path,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, mpsc},
    task::{AbortHandle, JoinSet},
};
use url::Url;

use self::wire::{RequestFailure, Wire};
use crate::{
    cli::Mcp,
    failure::{Failure, Result},
    output,
};

/// The longest message that is read; the server's limit is the same.
const MAX_MESSAGE_BYTES: u64 = 64 << 20;
/// Maximum concurrent requests.
const MAX_CONCURRENT_REQUESTS: usize = 32;
/// Messages buffered between the client and the requests, in each direction.
const MESSAGE_CAPACITY: usize = 64;
/// How long requests may still run after the client has closed its end.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);
/// The environment variable with the key.
const KEY_VARIABLE: &str = "AGENT_MAILBOX_API_KEY";

/// Forwards messages until the client closes its end.
pub async fn run(options: Mcp) -> Result<ExitCode> {
    let key = key(options.key_file.as_deref())?;
    let url = endpoint(&options.url, options.profile.as_deref())?;
    if url.scheme() == "http" && !is_local(&url) {
        output::error(format!("Warning: the key is sent to {url} without encryption. Use https."));
    }
    let (lines, mut incoming) = mpsc::channel(MESSAGE_CAPACITY);
    std::thread::spawn(move || read_lines(&lines));
    let (responses, outgoing) = mpsc::channel(MESSAGE_CAPACITY);
    let writer = std::thread::spawn(move || write_lines(outgoing));
    let bridge = Bridge { wire: Arc::new(Wire::new(url, &key)?), responses, running: Arc::default() };
    let turns = Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS));
    let mut tasks = JoinSet::new();
    while let Some(line) = incoming.recv().await {
        while tasks.try_join_next().is_some() {}
        let Ok(turn) = turns.clone().acquire_owned().await else { break };
        bridge.start_request(line?, &mut tasks, turn).await;
    }
    let ended = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(FINISH_TIMEOUT, ended).await.is_err() {
        tasks.shutdown().await;
    }
    drop(bridge);
    let _ = tokio::task::spawn_blocking(move || writer.join()).await;
    Ok(ExitCode::SUCCESS)
}

/// The API key, from a file or the environment: on the command line every user of the machine could read it.
fn key(file: Option<&Path>) -> Result<String> {
    let text = match file {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| Failure::new(format!("Cannot read the key from {}: {error}", path.display())))?,
        None => std::env::var(KEY_VARIABLE).unwrap_or_default(),
    };
    let key = text.trim();
    if key.is_empty() {
        return Err(Failure::new("There is no API key")
            .with_fix(format!("Set {KEY_VARIABLE}, or name a file with the key: --key-file FILE.")));
    }
    Ok(key.to_owned())
}

/// The URL of the MCP endpoint, from the server's URL or its own.
fn endpoint(text: &str, profile: Option<&str>) -> Result<Url> {
    let wrong = |why: String| {
        Failure::new(format!("--url: {why}"))
            .with_fix("Give the server's URL, such as https://mail.example.com.")
    };
    let mut url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong(format!("{text} is not the URL of a web server")));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&if path.ends_with("/mcp") { path } else { format!("{path}/mcp") });
    url.set_fragment(None);
    if let Some(profile) = profile {
        url.query_pairs_mut().clear().append_pair("profile", profile);
    }
    Ok(url)
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Reads the client's messages, one per line, on a thread of its own because standard input blocks.
fn read_lines(lines: &mpsc::Sender<Result<String>>) {
    let mut input = std::io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let outcome = match input.by_ref().take(MAX_MESSAGE_BYTES + 1).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if line.len() as u64 > MAX_MESSAGE_BYTES => {
                Err(Failure::new("A message has more than 64 MiB"))
            }
            Ok(_) => Ok(String::from_utf8_lossy(&line).trim().to_owned()),
            Err(error) => Err(Failure::new(format!("Cannot read standard input: {error}"))),
        };
        let failed = outcome.is_err();
        let empty = outcome.as_ref().is_ok_and(String::is_empty);
        if !empty && (lines.blocking_send(outcome).is_err() || failed) {
            return;
        }
    }
}

fn write_lines(mut outgoing: mpsc::Receiver<String>) {
    let mut standard_output = std::io::stdout();
    while let Some(line) = outgoing.blocking_recv() {
        if writeln!(standard_output, "{line}").and_then(|()| standard_output.flush()).is_err() {
            return;
        }
    }
}

/// The running requests, by their id as text.
type RunningRequests = Arc<Mutex<HashMap<String, AbortHandle>>>;

struct Bridge {
    wire: Arc<Wire>,
    responses: mpsc::Sender<String>,
    running: RunningRequests,
}

impl Bridge {
    /// Starts the request of one client message.
    async fn start_request(
        &self,
        line: String,
        tasks: &mut JoinSet<()>,
        turn: tokio::sync::OwnedSemaphorePermit,
    ) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            self.answer(&failure(&Value::Null, -32700, "The message is not JSON", None)).await;
            return;
        };
        let id = message.get("id").filter(|_| message.get("method").is_some()).cloned();
        if message["method"] == "notifications/cancelled" {
            // Without sessions the server cannot match a cancellation to its request; it notices the closed
            // connection.
            let wanted = message["params"]["requestId"].to_string();
            if let Some(task) = lock(&self.running).remove(&wanted) {
                task.abort();
            }
            return;
        }
        let (wire, responses, running) = (self.wire.clone(), self.responses.clone(), self.running.clone());
        let name = id.as_ref().map(ToString::to_string);
        let registered = name.clone();
        let task = tasks.spawn(async move {
            let _turn = turn;
            let outcome = wire.send(&message, line, &responses).await;
            if let Some(name) = name {
                lock(&running).remove(&name);
            }
            if let (Err(outcome), Some(id)) = (outcome, id) {
                let _ = responses.send(report_failure(&id, outcome).to_string()).await;
            }
        });
        if let Some(name) = registered.filter(|_| !task.is_finished()) {
            lock(&self.running).insert(name, task);
        }
    }

    async fn answer(&self, message: &Value) {
        let _ = self.responses.send(message.to_string()).await;
    }
}

/// A request that failed, for the client and for people.
fn report_failure(id: &Value, outcome: RequestFailure) -> Value {
    let (code, text, data) = match outcome {
        RequestFailure::Unreachable(text) => (-32000, text, None),
        RequestFailure::Refused(status, body) => {
            let reason = body["error"].as_str().unwrap_or("it gave no reason");
            let fix = body["fix"].as_str().unwrap_or_default();
            (
                -32001,
                format!("The server refused with {status}: {reason}. {fix}").trim().to_owned(),
                Some(body),
            )
        }
    };
    output::error(&text);
    failure(id, code, &text, data)
}

fn failure(id: &Value, code: i64, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({ "code": code, "message": message });
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (given, profile, expected) in [
            ("http://127.0.0.1:8080", None, "http://127.0.0.1:8080/mcp"),
            ("https://mail.example.org/", None, "https://mail.example.org/mcp"),
            (
                "https://mail.example.org/mcp",
                Some("agent-inbox"),
                "https://mail.example.org/mcp?profile=agent-inbox",
            ),
            (
                "https://example.org/mail/mcp/?profile=x",
                Some("full"),
                "https://example.org/mail/mcp?profile=full",
            ),
        ] {
            assert_eq!(endpoint(given, profile).unwrap().as_str(), expected);
        }
        for wrong in ["mail.example.org", "ftp://example.org", "", "http://"] {
            assert!(endpoint(wrong, None).is_err(), "{wrong}");
        }
        assert!(
            is_local(&"http://localhost:1".parse().unwrap()) && is_local(&"http://[::1]:1".parse().unwrap())
        );
        assert!(!is_local(&"http://mail.example.org".parse().unwrap()));
    }
}
