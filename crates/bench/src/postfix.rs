//! A private Postfix: it listens on a free port and queues under `bench-results/`.
//!
//! Messages go straight to the hold queue, where nothing processes them, so that the whole machine is left for
//! receiving; or, on request, to a Maildir or a relay. It must be started by root, as any Postfix.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use crate::{machine, measured_store::FOLDER, program::free_address};

/// A running Postfix. It is stopped and its queue is removed when this value is dropped.
pub(crate) struct Postfix {
    folder: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    /// The folder in which each message ends as a file.
    store: &'static str,
}

/// How often the Maildir is counted while messages are delivered.
const DELIVERY_POLL: Duration = Duration::from_millis(5);
/// Where messages end that nothing processes.
const HOLD_QUEUE: &str = "queue/hold";
/// Where the delivering Postfix puts them.
const MAILDIR: &str = "mail/inbox/new";

impl Postfix {
    /// A Postfix that delivers nothing.
    pub(crate) async fn start() -> Self {
        Self::start_with("smtpd_client_restrictions = check_client_access static:HOLD\n", HOLD_QUEUE).await
    }

    /// A Postfix that delivers every message to one Maildir, and flushes it there too.
    pub(crate) async fn delivering() -> Self {
        let owner = owner();
        let settings = format!(
            "mydestination =
virtual_mailbox_domains = agents.test
virtual_mailbox_base = $data_directory/../mail
virtual_mailbox_maps = static:inbox/
virtual_uid_maps = static:{owner}
virtual_gid_maps = static:{owner}
virtual_minimum_uid = 1
virtual_mailbox_limit = 0
"
        );
        Self::start_with(&settings, MAILDIR).await
    }

    /// A Postfix that sends everything to a relay, over connections that it keeps open.
    pub(crate) async fn relaying_to(relay: SocketAddr) -> Self {
        Self::start_with(&format!("relayhost = [{}]:{}\n", relay.ip(), relay.port()), HOLD_QUEUE).await
    }

    async fn start_with(settings: &str, store: &'static str) -> Self {
        fs::create_dir_all(FOLDER).expect("the folder for results can be made");
        let folder = tempfile::Builder::new().prefix("postfix-").tempdir_in(FOLDER).expect("a folder");
        let address = free_address().await;
        let postfix = Self { folder, address, store };
        let root = postfix.root();
        for part in ["etc", "queue", "data", "mail"] {
            fs::create_dir(root.join(part)).expect("a folder for Postfix");
        }
        for part in ["data", "mail"] {
            chown(root.join(part), Some(owner()), None).expect("only root can start Postfix");
        }
        fs::write(root.join("etc/main.cf"), main_cf(&root) + settings)
            .expect("the configuration can be written");
        fs::write(root.join("etc/master.cf"), master_cf(address)).expect("the configuration can be written");
        let started = postfix.control("start").output().expect("Postfix is installed: run scripts/bench");
        assert!(started.status.success(), "Postfix starts: {}", String::from_utf8_lossy(&started.stderr));
        postfix
    }

    /// Waits until it has stored so many messages where they end. Held messages are there when they are acknowledged.
    pub(crate) async fn wait_until_stored(&self, messages: usize) {
        if self.store == HOLD_QUEUE {
            return;
        }
        let started = Instant::now();
        while fs::read_dir(self.root().join(self.store)).map_or(0, Iterator::count) < messages {
            assert!(started.elapsed() < Duration::from_mins(2), "Postfix delivers what it acknowledged");
            tokio::time::sleep(DELIVERY_POLL).await;
        }
    }

    /// Deletes the messages that it has stored, so that no folder grows from turn to turn. Returns how many there were.
    pub(crate) fn empty(&self) -> usize {
        let stored = fs::read_dir(self.root().join(self.store)).expect("the queue can be read");
        stored
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
virtual unix - n n - - virtual
error unix - - n - - error
retry unix - - n - - error
"
    )
}
