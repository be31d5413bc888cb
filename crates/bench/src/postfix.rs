//! A private Postfix: it listens on a free port and queues under `bench-results/`.
//!
//! Messages go straight to the hold queue, where nothing processes them, so that the whole machine is left for
//! receiving; or, on request, to a relay. It must be started by root, as any Postfix.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{machine, measured_store::FOLDER, program::free_address};

/// A running Postfix. It is stopped and its queue is removed when this value is dropped.
pub(crate) struct Postfix {
    folder: tempfile::TempDir,
    pub(crate) address: SocketAddr,
}

impl Postfix {
    /// A Postfix that delivers nothing.
    pub(crate) async fn start() -> Self {
        Self::start_with("smtpd_client_restrictions = check_client_access static:HOLD\n").await
    }

    /// A Postfix that sends everything to a relay, over connections that it keeps open.
    pub(crate) async fn relaying_to(relay: SocketAddr) -> Self {
        Self::start_with(&format!("relayhost = [{}]:{}\n", relay.ip(), relay.port())).await
    }

    async fn start_with(settings: &str) -> Self {
        fs::create_dir_all(FOLDER).expect("the folder for results can be made");
        let folder = tempfile::Builder::new().prefix("postfix-").tempdir_in(FOLDER).expect("a folder");
        let address = free_address().await;
        let postfix = Self { folder, address };
        let root = postfix.root();
        for part in ["etc", "queue", "data"] {
            fs::create_dir(root.join(part)).expect("a folder for Postfix");
        }
        chown(root.join("data"), Some(owner()), None).expect("only root can start Postfix");
        fs::write(root.join("etc/main.cf"), main_cf(&root) + settings)
            .expect("the configuration can be written");
        fs::write(root.join("etc/master.cf"), master_cf(address)).expect("the configuration can be written");
        let started = postfix.control("start").output().expect("Postfix is installed: run scripts/bench");
        assert!(started.status.success(), "Postfix starts: {}", String::from_utf8_lossy(&started.stderr));
        postfix
    }

    /// Empties the queue, so that no folder grows from turn to turn. Returns how many messages it held.
    pub(crate) fn empty(&self) -> usize {
        let queued = fs::read_dir(self.root().join("queue/hold")).expect("the queue can be read");
        queued
            .map(|entry| {
                fs::remove_file(entry.expect("a queued message").path()).expect("the queue can be emptied");
            })
            .count()
    }

    /// The CPU time of all its processes so far. The master starts and ends all others.
    pub(crate) fn cpu(&self) -> Duration {
        let master = fs::read_to_string(self.root().join("queue/pid/master.pid"))
            .ok()
            .and_then(|process| process.trim().parse().ok());
        machine::cpu_of_family(master.expect("Postfix runs"))
    }

    fn root(&self) -> PathBuf {
        std::path::absolute(self.folder.path()).expect("the working directory is known")
    }

    fn control(&self, what: &str) -> Command {
        let mut command = Command::new("/usr/sbin/postfix");
        command.arg("-c").arg(self.root().join("etc")).arg(what);
        command
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        let _ = self.control("stop").output();
    }
}

/// The user that Debian's package creates.
fn owner() -> u32 {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let id = users.lines().find_map(|line| line.strip_prefix("postfix:x:")?.split(':').next()?.parse().ok());
    id.expect("Postfix is installed: run scripts/bench")
}

fn main_cf(root: &Path) -> String {
    let root = root.display();
    format!(
        "compatibility_level = 3.6
queue_directory = {root}/queue
data_directory = {root}/data
myhostname = mx.agents.test
mydestination = agents.test
local_recipient_maps =
alias_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
# Clients in these networks are exempt from the limits for each client.
mynetworks = 127.0.0.0/8
in_flow_delay = 0
queue_run_delay = 1h
# What makes flushes slow must reach the programs that flush.
import_environment = MAIL_CONFIG TZ LANG=C LD_PRELOAD AGENT_MAILBOX_BENCH_FLUSH
"
    )
}

/// The services that receive and send mail, and those they depend on.
fn master_cf(address: SocketAddr) -> String {
    format!(
        "{address} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
anvil unix - - n - 1 anvil
smtp unix - - n - - smtp
scache unix - - n - 1 scache
error unix - - n - - error
retry unix - - n - - error
"
    )
}
