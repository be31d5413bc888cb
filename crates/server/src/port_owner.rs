//! Which process listens on a port, as far as the system tells this user: `/proc` of Linux, and nothing elsewhere.

use std::{
    fmt, fs,
    net::{IpAddr, SocketAddr},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// The file in the data folder that a server on SQLite has open and locked.
pub const LOCK_FILE: &str = "serve.lock";

/// A process that listens on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOwner {
    pub process: u32,
    /// The program's short name.
    pub name: String,
    /// The data folder, if it is an Agent Mailbox on SQLite.
    pub data_dir: Option<PathBuf>,
}

impl fmt::Display for PortOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, process {}", self.name, self.process)?;
        self.data_dir.as_ref().map_or(Ok(()), |folder| write!(f, ", data folder {}", folder.display()))
    }
}

/// The state of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// Finds who listens on an address; `None` where that cannot be told.
pub fn find(address: SocketAddr) -> Option<PortOwner> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let sockets: Vec<String> = tables
        .iter()
        .flat_map(|table| inodes(table, address))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let processes =
        fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    processes.into_iter().find_map(|process: u32| {
        let files = open_files(process);
        let listens =
            files.iter().any(|file| sockets.iter().any(|socket| file.as_os_str() == socket.as_str()));
        listens.then(|| PortOwner {
            process,
            name: fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default().trim().to_owned(),
            data_dir: files
                .iter()
                .find(|file| file.file_name().is_some_and(|name| name == LOCK_FILE))
                .and_then(|file| file.parent().map(Path::to_owned)),
        })
    })
}

/// What the descriptors of a process lead to; nothing of other users' processes.
fn open_files(process: u32) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).collect()
}

/// The inodes of sockets that listen on an address, or on its port of all addresses.
fn inodes(table: &str, address: SocketAddr) -> Vec<String> {
    let matching = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (host, port) = fields.get(1)?.split_once(':')?;
        let listens = *fields.get(3)? == LISTENING && u16::from_str_radix(port, 16).ok()? == address.port();
        let host = host_of(host)?;
        let same = host == address.ip() || host.is_unspecified() || address.ip().is_unspecified();
        (listens && same).then(|| fields.get(9).map(ToString::to_string)).flatten()
    });
    matching.collect()
}

/// An address as the kernel writes it: words of 32 bits in the order of the machine.
fn host_of(hexadecimal: &str) -> Option<IpAddr> {
    let words: Option<Vec<[u8; 4]>> = hexadecimal
        .as_bytes()
        .chunks(8)
        .map(|word| {
            let text = std::ffi::OsStr::from_bytes(word).to_str()?;
            Some(u32::from_str_radix(text, 16).ok()?.to_ne_bytes())
        })
        .collect();
    let bytes = words?.concat();
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(|bytes| std::net::Ipv6Addr::from(bytes).to_canonical()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_of_this_process_is_found() {
        if !Path::new("/proc/net/tcp").exists() {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let _lock = fs::File::create(folder.path().join(LOCK_FILE)).unwrap();
        let owner = find(listener.local_addr().unwrap()).unwrap();
        assert_eq!(owner.process, std::process::id());
        assert!(!owner.name.is_empty());
        assert_eq!(owner.data_dir.as_deref(), Some(folder.path()));
    }

    #[test]
    fn the_table_of_the_kernel_is_understood() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0\n   \
             1: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0\n   \
             2: 00000000:09DD 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4713 1 0\n";
        let found = |address: &str| inodes(table, address.parse().unwrap());
        if cfg!(target_endian = "little") {
            assert_eq!(found("127.0.0.1:8080"), ["4711"]);
            assert_eq!(found("127.0.0.2:8080"), [""; 0]);
        }
        assert_eq!(found("127.0.0.1:2525"), ["4713"], "all addresses");
        assert_eq!(found("127.0.0.1:1"), [""; 0]);
    }
}
