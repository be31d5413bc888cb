//! Raises the limit of open files: a shell's default is far lower than our maximum of connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are not connections of callers: databases, blobs, logs.
const RESERVED_DESCRIPTORS: u64 = 256;

/// Raises the limit of open files as far as the system allows, and returns how many connections fit.
pub(super) fn allow(connections: usize) -> usize {
    let needed = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(RESERVED_DESCRIPTORS);
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    let possible = needed.min(limit.maximum.unwrap_or(u64::MAX));
    let mut allowed = current;
    if current < possible {
        let raised = Rlimit { current: Some(possible), maximum: limit.maximum };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => allowed = possible,
            Err(error) => {
                tracing::warn!(%error, "raising the limit of open files failed; operator action needed");
            }
        }
    }
    if allowed >= needed {
        return connections;
    }
    let max_connections =
        usize::try_from(allowed.saturating_sub(RESERVED_DESCRIPTORS).max(16)).unwrap_or(connections);
    tracing::info!(
        limit = allowed,
        connections = max_connections,
        "connections reduced to what the limit of open files allows"
    );
    max_connections
}
