//! A small authoritative name server over UDP, for names that only a test knows. Only tests are built with it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what only tests use fails by panicking")]

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

const A: u16 = 1;
const PTR: u16 = 12;
const MX: u16 = 15;
const TXT: u16 = 16;
const AAAA: u16 = 28;

/// Records by name and type; and names that are never answered, or answered with a failure.
#[derive(Default)]
struct Zone {
    records: HashMap<(String, u16), Vec<Vec<u8>>>,
    names: HashSet<String>,
    silent: HashSet<String>,
    failing: HashSet<String>,
}

/// The server; it stops when dropped.
pub struct NameServer {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    questions: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl NameServer {
    /// Serves lines such as `example.com TXT v=spf1 -all`; the types `SILENT` and `SERVFAIL` are failures.
    pub async fn start(zone: &str) -> Self {
        let zone = Arc::new(Mutex::new(Zone::read(zone)));
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let questions = Arc::new(AtomicUsize::new(0));
        let (counter, served) = (Arc::clone(&questions), Arc::clone(&zone));
        let task = tokio::spawn(async move {
            let mut buffer = [0; 2048];
            while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
                counter.fetch_add(1, Ordering::Relaxed);
                let answer = served.lock().unwrap().answer(&buffer[..length]);
                if let Some(answer) = answer {
                    socket.send_to(&answer, client).await.unwrap();
                }
            }
        });
        Self { address, zone, questions, task }
    }

    /// Replaces the zone.
    pub fn set(&self, zone: &str) {
        *self.zone.lock().unwrap() = Zone::read(zone);
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of queries received.
    pub fn questions(&self) -> usize {
        self.questions.load(Ordering::Relaxed)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Zone {
    fn read(text: &str) -> Self {
        let mut zone = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut words = line.splitn(3, ' ');
            let name = words.next().unwrap().to_ascii_lowercase();
            let kind = words.next().unwrap();
            let value = words.next().unwrap_or_default();
            match kind {
                "SILENT" => drop(zone.silent.insert(name)),
                "SERVFAIL" => drop(zone.failing.insert(name)),
                _ => {
                    let (number, data) = encode(kind, value);
                    zone.names.insert(name.clone());
                    zone.records.entry((name, number)).or_default().push(data);
                }
            }
        }
        zone
    }

    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let mut labels = Vec::new();
        let mut at = 12;
        while question[at] != 0 {
            let length = usize::from(question[at]);
            labels.push(String::from_utf8_lossy(&question[at + 1..=at + length]).to_ascii_lowercase());
            at += length + 1;
        }
        let name = labels.join(".");
        if self.silent.contains(&name) {
            return None;
        }
        let kind = u16::from_be_bytes([question[at + 1], question[at + 2]]);
        let end = at + 5;
        let empty = Vec::new();
        let found = self.records.get(&(name.clone(), kind)).unwrap_or(&empty);
        let code = match () {
            () if self.failing.contains(&name) => 2,
            () if self.names.contains(&name) => 0,
            () => 3,
        };
        let mut answer = question[..2].to_vec();
        answer.extend([0x85, 0x80 | code, 0, 1, 0, u8::try_from(found.len()).unwrap(), 0, 0, 0, 0]);
        answer.extend(&question[12..end]);
        for data in found {
            answer.extend([0xc0, 12]);
            answer.extend(kind.to_be_bytes());
            answer.extend([0, 1, 0, 0, 0, 60]);
            answer.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            answer.extend(data);
        }
        Some(answer)
    }
}

fn encode(kind: &str, value: &str) -> (u16, Vec<u8>) {
    match kind {
        "A" | "AAAA" => match value.parse().unwrap() {
            IpAddr::V4(address) => (A, address.octets().to_vec()),
            IpAddr::V6(address) => (AAAA, address.octets().to_vec()),
        },
        "PTR" => (PTR, encode_name(value)),
        "MX" => {
            let (preference, host) = value.split_once(' ').unwrap();
            let mut data = preference.parse::<u16>().unwrap().to_be_bytes().to_vec();
            data.extend(encode_name(host));
            (MX, data)
        }
        "TXT" => {
            let chunks = value.as_bytes().chunks(255);
            (TXT, chunks.flat_map(|chunk| [&[u8::try_from(chunk.len()).unwrap()], chunk].concat()).collect())
        }
        other => panic!("no such record type: {other}"),
    }
}

fn encode_name(name: &str) -> Vec<u8> {
    let mut data = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        data.push(u8::try_from(label.len()).unwrap());
        data.extend(label.as_bytes());
    }
    data.push(0);
    data
}
