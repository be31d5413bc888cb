//! Full and read-only disks, power cuts, and a PostgreSQL that stops. Most of these need root to mount file systems;
//! without it they say so and pass.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;

use super::{Home, Server, text};

pub fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A mounted file system, unmounted when dropped.
pub struct Mount(pub PathBuf);

impl Mount {
    pub fn new(at: PathBuf, arguments: &[&str]) -> Option<Self> {
        std::fs::create_dir_all(&at).unwrap();
        let mounted = run("mount", &[arguments, &[at.to_str().unwrap()]].concat());
        if !mounted {
            println!("skipped: this needs the right to mount file systems");
        }
        mounted.then_some(Self(at))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &["-l", self.0.to_str().unwrap()]);
    }
}

/// A disk that writes nothing back by itself: its image, copied while it is mounted, is what a power cut leaves.
pub struct Disk {
    mount: Mount,
    image: PathBuf,
    copy: PathBuf,
}

impl Disk {
    /// Mounts one where a home keeps its data, if this machine lets us.
    pub fn new(home: &Home) -> Option<Self> {
        let (image, copy) = (home.folder.path().join("disk.img"), home.folder.path().join("copy.img"));
        std::fs::File::create(&image).unwrap().set_len(256 << 20).unwrap();
        if !run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]) {
            println!("skipped: no mkfs.ext4");
            return None;
        }
        let mount = Mount::new(home.data(), &["-o", "loop,commit=600", image.to_str().unwrap()])?;
        Some(Self { mount, image, copy })
    }

    /// Keeps what would be left if the power failed now.
    pub fn cut(&self) {
        std::fs::copy(&self.image, &self.copy).unwrap();
    }

    /// Puts what was left in place of the disk.
    pub fn after_the_cut(self) -> Option<Mount> {
        let place = self.mount.0.clone();
        drop(self.mount);
        Mount::new(place, &["-o", "loop", self.copy.to_str().unwrap()])
    }
}

/// A server with a workspace, a mailbox and a key.
struct World {
    server: Server,
    key: String,
    folders: String,
}

impl World {
    fn new(home: &Home) -> Self {
        let workspace = home.create_account("owner@people.test", "enterprise");
        let (_, key) = home.create_key(&workspace, &[]);
        let server = home.serve();
        let mailbox = server.call(&key, "POST", "/api/v1/mailboxes", &json!({ "name": "Box" })).json();
        let folders = format!("/api/v1/mailboxes/{}/folders", text(&mailbox, "public_id"));
        Self { server, key, folders }
    }

    fn write(&self, name: &str) -> super::Answer {
        self.server.call(&self.key, "POST", &self.folders, &json!({ "name": name }))
    }

    fn names(&self) -> Vec<String> {
        let folders = self.server.call(&self.key, "GET", &self.folders, &json!(null)).json();
        folders.as_array().unwrap().iter().map(|folder| text(folder, "id")).collect()
    }

    /// Waits until `/readyz` has this status.
    fn is_ready_within(&self, most: Duration, status: u16) {
        let started = Instant::now();
        while self.server.get("/readyz", &[]).status != status {
            assert!(started.elapsed() < most, "/readyz is still not {status}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn heals_within(&self, most: Duration) {
        let started = Instant::now();
        while self.write(&format!("healed {}", started.elapsed().as_millis())).status != 201 {
            assert!(started.elapsed() < most, "still failing");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn assert_unavailable(answer: &super::Answer) {
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (503, &json!("storage_unavailable")),
        "{}",
        answer.body
    );
    assert!(answer.head.to_lowercase().contains("retry-after: "), "{}", answer.head);
}

/// rules: STORE-5, STORE-6
#[test]
fn a_full_disk_refuses_writes_and_heals() {
    let home = Home::sqlite();
    let Some(_mount) = Mount::new(home.data(), &["-t", "tmpfs", "-o", "size=24m", "tmpfs"]) else { return };
    let world = World::new(&home);
    let filler = home.data().join("filler");
    std::io::copy(&mut std::io::repeat(0), &mut std::fs::File::create(&filler).unwrap()).unwrap_err();
    let mut acknowledged = Vec::new();
    let refused = (0..2000).find_map(|number| {
        let answer = world.write(&format!("full {number}"));
        if answer.status == 201 {
            acknowledged.push(text(&answer.json(), "id"));
            return None;
        }
        Some(answer)
    });
    assert_unavailable(&refused.expect("the disk never ran full"));
    assert!(world.names().len() >= 7, "reads go on");
    world.is_ready_within(Duration::from_secs(5), 503);
    std::fs::remove_file(&filler).unwrap();
    world.heals_within(Duration::from_secs(5));
    world.is_ready_within(Duration::from_secs(5), 200);
    let names = world.names();
    assert!(acknowledged.iter().all(|name| names.contains(name)));
}

/// rules: STORE-6, API-9
#[test]
fn a_read_only_disk_refuses_writes_and_heals() {
    let home = Home::sqlite();
    let Some(mount) = Mount::new(home.data(), &["-t", "tmpfs", "-o", "size=64m", "tmpfs"]) else { return };
    let world = World::new(&home);
    let at = mount.0.to_str().unwrap();
    assert_eq!(world.write("before").status, 201);
    // A file system with files open for writing cannot be remounted; a bind of it over itself can.
    if !run("mount", &["-o", "remount,ro", at]) {
        println!("skipped: the file system is busy");
        return;
    }
    assert_unavailable(&world.write("during"));
    assert!(world.names().contains(&"before".to_owned()));
    assert!(run("mount", &["-o", "remount,rw", at]));
    world.heals_within(Duration::from_secs(5));
}

/// The page cache is lost: what was answered was synced. The image of a file system that writes nothing back by itself
/// is copied while it is mounted; the copy is what a power cut leaves.
/// rules: STORE-2
#[test]
fn a_power_cut_loses_nothing_acknowledged() {
    let home = Home::sqlite();
    let Some(disk) = Disk::new(&home) else { return };
    let world = World::new(&home);
    let mut acknowledged = Vec::new();
    for number in 0..60 {
        let answer = world.write(&format!("cut {number}"));
        assert_eq!(answer.status, 201);
        acknowledged.push(text(&answer.json(), "id"));
    }
    disk.cut();
    let (key, folders) = (world.key.clone(), world.folders.clone());
    drop(world);
    let Some(_again) = disk.after_the_cut() else { return };
    let world = World { server: home.serve(), key, folders };
    let names = world.names();
    assert!(acknowledged.iter().all(|name| names.contains(name)), "{names:?}");
}

/// Runs a program as the owner of a server's folder: PostgreSQL refuses to run as root.
fn run_as_server(folder: &Path, arguments: &[String]) -> bool {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let mut command = if is_root { Command::new("runuser") } else { Command::new("env") };
    if is_root {
        command.args(["--user", "postgres", "--"]);
    }
    let command = command.args(arguments).current_dir(folder.parent().unwrap());
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The first line of the file that says who serves a folder.
fn read_postmaster(folder: &Path) -> String {
    let pid = std::fs::read_to_string(folder.join("postmaster.pid")).unwrap();
    pid.lines().next().unwrap().to_owned()
}

/// A PostgreSQL server of this test alone, so that stopping it disturbs nobody.
pub struct OwnPostgres {
    process: std::process::Child,
    /// The server; of a pair both, the primary first.
    pub url: String,
    /// The standby of a pair, as its administrator.
    standby: String,
    superuser: String,
    folder: PathBuf,
    /// The folder of the server's programs.
    programs: PathBuf,
    postmaster: String,
}

/// Has the script start a server whose writes are on disk when they are acknowledged.
const DURABLE: (&str, &str) = ("AGENT_MAILBOX_PG_DURABLE", "1");

impl OwnPostgres {
    pub fn start() -> Self {
        Self::start_with(None, "AGENT_MAILBOX_TEST_POSTGRES", &[])
    }

    /// A server that loses nothing when it is killed.
    pub fn durable() -> Self {
        Self::start_with(None, "AGENT_MAILBOX_TEST_POSTGRES", &[DURABLE])
    }

    /// A server with a synchronous standby.
    pub fn pair() -> Self {
        Self::start_with(Some("standby"), "AGENT_MAILBOX_TEST_PAIR", &[DURABLE])
    }

    /// A server with the settings of a file.
    pub fn with_settings(file: &str) -> Self {
        let settings = [DURABLE, ("AGENT_MAILBOX_PG_CONF", file)];
        Self::start_with(None, "AGENT_MAILBOX_TEST_POSTGRES", &settings)
    }

    fn start_with(beside: Option<&str>, url: &str, settings: &[(&str, &str)]) -> Self {
        let script = |name: &str| format!("{}/../scripts/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(script("postgres"));
        command.args(beside.map(script)).envs(settings.iter().copied());
        let variables =
            [url, "AGENT_MAILBOX_TEST_POSTGRES_SUPERUSER", "AGENT_MAILBOX_TEST_STANDBY_SUPERUSER"];
        let tell = variables.map(|name| format!("echo \"found ${name}\";")).concat();
        let mut process = command
            .args(["sh", "-c", &format!("{tell} read -r _")])
            .env_remove("AGENT_MAILBOX_TEST_POSTGRES")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut found = lines.filter_map(|line| line.strip_prefix("found ").map(ToOwned::to_owned));
        let mut next = || found.next().expect("the script starts a server");
        let (url, superuser, standby) = (next(), next(), next());
        let ask = |sql: &str| {
            let answer = Command::new("psql").args([&superuser, "-Atc", sql]).output().unwrap();
            PathBuf::from(String::from_utf8(answer.stdout).unwrap().trim())
        };
        let folder = ask("SHOW data_directory");
        let programs = ask("SELECT setting FROM pg_config WHERE name = 'BINDIR'");
        let postmaster = read_postmaster(&folder);
        Self { process, url, standby, superuser, folder, programs, postmaster }
    }

    /// Starts the server again, at the same address, after it was killed.
    pub fn start_again(&mut self) {
        let port = self.superuser.rsplit_once('/').and_then(|(server, _)| server.rsplit_once(':')).unwrap().1;
        let log = self.folder.with_file_name("log");
        let start = [
            self.programs.join("pg_ctl").display().to_string(),
            "start".to_owned(),
            "--silent".to_owned(),
            "--wait".to_owned(),
            format!("--pgdata={}", self.folder.display()),
            format!("--log={}", log.display()),
            format!("--options=-p {port}"),
        ];
        // What the killed server has left must be gone first.
        let started = Instant::now();
        while !run_as_server(&self.folder, &start) {
            assert!(started.elapsed() < Duration::from_mins(1), "it does not start again");
            std::thread::sleep(Duration::from_millis(50));
        }
        self.postmaster = read_postmaster(&self.folder);
    }

    /// Makes the standby the primary.
    pub fn promote(&self) {
        let sql = "SELECT pg_promote(true, 60)";
        let promoted = Command::new("psql").args([&self.standby, "-Atc", sql]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&promoted.stdout).trim(), "t", "{promoted:?}");
    }

    /// Signals the server and all its children.
    pub fn signal(&self, name: &str) {
        run("pkill", &[&format!("-{name}"), "-P", &self.postmaster]);
        run("kill", &[&format!("-{name}"), &self.postmaster]);
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        self.signal("CONT");
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// rules: STORE-7, API-7
#[test]
fn a_postgresql_that_hangs_is_noticed_and_its_return_too() {
    let postgres = OwnPostgres::start();
    let home = Home::postgres_at(&postgres.url);
    let world = World::new(&home);
    postgres.signal("STOP");
    for _ in 0..3 {
        let started = Instant::now();
        let answer = world.write("during");
        assert_unavailable(&answer);
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    }
    assert_eq!(world.server.get("/api/status", &[]).status, 503);
    assert_eq!(world.server.get("/healthz", &[]).status, 200);
    postgres.signal("CONT");
    world.heals_within(Duration::from_secs(5));
}
