//! The real program as a process: started on a free port with a folder of its own, talked to over sockets, and gone
//! when the test ends.

mod backup;
mod cli;
mod crash;
mod doctor;
mod documentation;
mod failover;
mod faults;
mod import;
mod kept_connections;
mod load;
mod lost_database;
mod mail;
mod mail_backup;
mod mail_clients;
mod mail_crash;
mod mail_faults;
mod mail_log;
mod mail_scan;
mod mail_senders;
mod memory;
mod metrics;
mod nodes;
mod outbound;
mod outbound_faults;
mod review_crash;
mod scaling;
mod send_crash;
mod serve;
mod terminal;
mod triage;
mod two_nodes;
mod upgrade;
mod webhooks;
mod workers;

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// A password that is long enough.
pub const PASSWORD: &str = "correct horse battery";

/// The program under test.
pub fn program() -> PathBuf {
    let named = std::env::var_os("AGENT_MAILBOX_BIN").map(PathBuf::from);
    let built = || {
        // This test lies in `deps`, beside which the program is built.
        let own = std::env::current_exe().unwrap();
        own.parent().and_then(Path::parent).unwrap().join("agent-mailbox")
    };
    let program = named.unwrap_or_else(built);
    assert!(program.exists(), "{} is missing: run `cargo build -p server`", program.display());
    program
}

/// A PostgreSQL database of its own, gone when dropped.
struct Database {
    admin: String,
    name: String,
}

impl Database {
    fn create() -> Option<Self> {
        std::env::var("AGENT_MAILBOX_TEST_POSTGRES").ok().map(Self::create_on)
    }

    fn create_on(admin: String) -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let name = format!("process_{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        execute(&admin, &format!("CREATE DATABASE {name} TEMPLATE template0"));
        Self { admin, name }
    }

    fn url(&self) -> String {
        let (server, _) = self.admin.rsplit_once('/').unwrap();
        format!("{server}/{}?sslmode=disable", self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A command that connected as a superuser may still be leaving, and only its like could throw it out.
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let dropped = (0..50).any(|_| {
            let done = try_execute(&self.admin, &sql).is_ok();
            if !done {
                std::thread::sleep(Duration::from_millis(100));
            }
            done
        });
        if !dropped {
            println!("{} could not be dropped", self.name);
        }
    }
}

fn execute(url: &str, sql: &str) {
    try_execute(url, sql).unwrap();
}

/// On a thread of its own, since the caller may be inside a runtime, which cannot hold another.
fn try_execute(url: &str, sql: &str) -> Result<(), tokio_postgres::Error> {
    let execute = async || {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        let connection = tokio::spawn(connection);
        let done = client.batch_execute(sql).await;
        drop(client);
        let _ = connection.await;
        done
    };
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(execute())
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

/// A folder and, on PostgreSQL, a database, with the settings that commands get.
pub struct Home {
    pub folder: TempDir,
    database: Option<Database>,
    settings: Vec<(String, String)>,
}

impl Home {
    pub fn sqlite() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), database: None, settings: Vec::new() }
    }

    /// The same on PostgreSQL, if there is a server for tests.
    pub fn postgres() -> Option<Self> {
        Database::create().map(Self::on)
    }

    /// The same on a PostgreSQL server of one's own.
    pub fn postgres_at(admin: &str) -> Self {
        Self::on(Database::create_on(admin.to_owned()))
    }

    fn on(database: Database) -> Self {
        let url = database.url();
        let home =
            Self { folder: tempfile::tempdir().unwrap(), database: Some(database), settings: Vec::new() };
        home.with("DATABASE__URL", &url)
    }

    /// One home on each engine that is there.
    pub fn on_each_engine() -> Vec<Self> {
        [Some(Self::sqlite()), Self::postgres()].into_iter().flatten().collect()
    }

    /// Sets an option for all commands, by the end of its variable's name.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.push((format!("AGENT_MAILBOX__{name}"), value.to_owned()));
        self
    }

    /// Makes a worker panic at its first starts, with a pause after each. Only debug builds do that.
    pub fn with_panics(mut self, worker: &str, times: u32, pause: Duration) -> Self {
        let value = format!("{worker}:{times}:{}", pause.as_millis());
        self.settings.push(("AGENT_MAILBOX_TEST_WORKER_PANICS".to_owned(), value));
        self
    }

    /// Puts a pooler between the program and its database.
    pub fn behind(self, pooler: &str) -> Self {
        let (direct, name) =
            self.database.as_ref().map(|database| (database.url(), database.name.clone())).unwrap();
        let (server, _) = pooler.rsplit_once('/').unwrap();
        let url = format!("{server}/{name}?sslmode=disable");
        self.with("DATABASE__URL", &url).with("DATABASE__LISTEN_URL", &direct)
    }

    /// Runs statements in the database, which must be PostgreSQL.
    pub fn execute(&self, sql: &str) {
        execute(&self.database.as_ref().unwrap().url(), sql);
    }

    pub fn is_postgres(&self) -> bool {
        self.database.is_some()
    }

    pub fn database(&self) -> store::DatabaseLocation {
        match &self.database {
            Some(database) => store::DatabaseLocation::Postgres(store::PostgresLocation::new(database.url())),
            None => store::DatabaseLocation::Sqlite(self.data().join("agent-mailbox.db")),
        }
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Makes the data folder, in which an account may be created before the first start.
    pub fn make_folder(&self) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(self.data()).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&program(), arguments)
    }

    /// The same of another program, such as an older one.
    pub fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AGENT_MAILBOX__") {
                command.env_remove(name);
            }
        }
        command.env("AGENT_MAILBOX__HTTP__LISTEN", "127.0.0.1:0");
        command.env("AGENT_MAILBOX__SMTP__LISTEN", "127.0.0.1:0");
        command.envs(self.settings.iter().cloned());
        command.current_dir(self.folder.path()).arg("--data-dir").arg(self.data()).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Finished {
        Finished::from(self.command(arguments).output().unwrap())
    }

    /// Runs a command with something on its standard input.
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Finished {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // A command that refuses its arguments does not read.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        Finished::from(child.wait_with_output().unwrap())
    }

    /// Runs an admin command that must succeed, and reads its JSON.
    pub fn admin(&self, arguments: &[&str]) -> Value {
        self.make_folder();
        let arguments = [&["admin"], arguments, &["--json"]].concat();
        self.run_with_input(&arguments, &format!("{PASSWORD}\n")).succeeded().json()
    }

    /// Makes an account and returns its workspace.
    pub fn create_account(&self, email: &str, plan: &str) -> String {
        let created =
            self.admin(&["account", "create", "--email", email, "--password-stdin", "--plan", plan]);
        text(&created, "workspace_id")
    }

    /// Makes a key and returns its id and its secret.
    pub fn create_key(&self, workspace: &str, more: &[&str]) -> (String, String) {
        let created = self.admin(&[&["key", "create", "--workspace", workspace], more].concat());
        (text(&created, "id"), text(&created, "key"))
    }

    pub fn serve(&self) -> Server {
        self.serve_with(&["serve"])
    }

    /// Serves with the log in a file, instead of showing it to whoever runs the test.
    pub fn serve_with_log(&self, log: &Path) -> Server {
        self.serve_with_own(&[], log)
    }

    /// The same with settings that only this node has.
    pub fn serve_with_own(&self, settings: &[(&str, &str)], log: &Path) -> Server {
        let mut command = self.command(&["serve"]);
        for (name, value) in settings {
            command.env(format!("AGENT_MAILBOX__{name}"), value);
        }
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("exec \"$0\" \"$@\" 2>{}", log.display()));
        shell.arg(command.get_program()).args(command.get_args()).current_dir(self.folder.path());
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.stdin(Stdio::null()).stdout(Stdio::piped());
        Server::start(shell)
    }

    pub fn serve_with(&self, arguments: &[&str]) -> Server {
        Server::start(self.command(arguments))
    }
}

/// A member of a JSON object, which is a text.
pub fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

/// A command that has ended.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            status: output.status,
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Finished {
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {}", self.stderr))
    }

    pub fn succeeded(self) -> Self {
        assert_eq!(self.code(), 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    pub fn failed(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// A running server, killed when dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// Where mail arrives.
    pub smtp: SocketAddr,
    pub welcome: String,
    /// From the start of the process until its welcome was read.
    pub ready_after: Duration,
}

impl Server {
    pub fn start(mut command: Command) -> Self {
        let started = Instant::now();
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut welcome = String::new();
        let (mut address, mut smtp) = (None, None);
        // Its last line is the one after the command to type.
        while !welcome.ends_with("\n\n") || welcome.matches("\n\n").count() < 4 {
            let before = welcome.len();
            let count = stdout.read_line(&mut welcome).unwrap();
            assert!(count > 0, "the server has ended: {:?}\n{welcome}", child.wait());
            if let Some(url) = welcome[before..].trim().strip_prefix("Console  http://") {
                address = Some(url.trim_end_matches('/').parse().unwrap());
            }
            if let Some(place) = welcome[before..].trim().strip_prefix("Mail     ") {
                smtp = Some(place.split(' ').next().unwrap().parse().unwrap());
            }
        }
        let ready_after = started.elapsed();
        // Somebody has to read on, or the server would one day wait for it.
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        let (address, smtp) = (address.expect("a console address"), smtp.expect("an address for mail"));
        let server = Self { child, address, smtp, welcome, ready_after };
        assert_eq!(server.get("/readyz", &[]).status, 200);
        server
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        request(self.address, "GET", path, headers, "")
    }

    /// Calls the API with a key.
    pub fn call(&self, key: &str, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        request(
            self.address,
            method,
            path,
            &[("x-api-key", key), ("content-type", "application/json")],
            &body,
        )
    }

    /// The status of a call with a key.
    pub fn status_with(&self, key: &str) -> u16 {
        self.get("/api/v1/workspaces", &[("x-api-key", key)]).status
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until the process has ended by itself.
    pub fn wait(&mut self, most: Duration) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < most, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends the server as an operator would.
    pub fn stop(mut self) {
        self.signal("TERM");
        assert_eq!(self.wait(Duration::from_secs(15)).code(), Some(0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer over HTTP.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Sends one request on a connection of its own.
pub fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(head(method, path, headers, body.len()).as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    read_answer(&mut stream)
}

/// Posts with an idempotency key to a server that may be killed meanwhile: `None` if it did not answer.
pub fn try_post(
    address: SocketAddr,
    key: &str,
    path: &str,
    idempotency_key: &str,
    body: &Value,
) -> Option<(u16, String)> {
    let body = body.to_string();
    let headers =
        [("x-api-key", key), ("content-type", "application/json"), ("idempotency-key", idempotency_key)];
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(head("POST", path, &headers, body.len()).as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// The head of a request that closes its connection.
pub fn head(method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let _ = write!(head, "Content-Length: {length}\r\n\r\n");
    head
}

/// Reads an answer up to the end of its connection.
pub fn read_answer(stream: &mut TcpStream) -> Answer {
    let (status, head, body) = read_bytes(stream);
    Answer { status, head, body: String::from_utf8(body).unwrap() }
}

/// The same for a body that may be anything.
pub fn read_bytes(stream: &mut TcpStream) -> (u16, String, Vec<u8>) {
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&answer)));
    let body = answer.split_off(end + 4);
    let head = String::from_utf8(answer).unwrap().trim_end().to_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    assert!(!head.to_lowercase().contains("transfer-encoding"), "these tests read plain bodies only");
    (status, head, body)
}

/// A port for a server that is started several times, or that has to be known before it is started.
///
/// From below those that the system gives to connections: one of these could be taken again before the server has it.
/// Tests that run at the same time have different slots, and each takes from its own.
pub fn free_port() -> u16 {
    const FIRST: u16 = 12_000;
    const COUNT: u32 = 8_000;
    const EACH: u32 = 40;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        let slot = std::env::var("NEXTEST_TEST_GLOBAL_SLOT").ok().and_then(|slot| slot.parse().ok());
        let slot: u32 = slot.unwrap_or_else(std::process::id);
        let step = slot.wrapping_mul(EACH).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + u16::try_from(step % COUNT).unwrap();
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free");
}
