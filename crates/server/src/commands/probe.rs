//! What listens on our port: this service, another program, or nothing.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Timeout for a response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum bytes read of a response: our own are far shorter.
const MAX_ANSWER_BYTES: u64 = 16 * 1024;

/// The result of probing an address.
pub(super) enum Listener {
    /// Nothing, and we could listen there.
    Free,
    /// This service, in this version.
    Us(String),
    /// Another program.
    Other,
    /// Nothing, but we could not listen there either.
    Unusable(std::io::Error),
}

/// Identifies what listens on an address.
pub(super) async fn identify(address: SocketAddr) -> Listener {
    match tokio::time::timeout(ANSWER_TIMEOUT, get(reachable(address), "/api/status")).await {
        Ok(Ok(answer)) => version(&answer).map_or(Listener::Other, Listener::Us),
        // A program that accepts connections and sends nothing.
        Err(_) => Listener::Other,
        Ok(Err(_)) => match TcpListener::bind(address).await {
            Ok(_) => Listener::Free,
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Listener::Other,
            Err(error) => Listener::Unusable(error),
        },
    }
}

/// The readiness document of this service; `None` when there is none.
pub(super) async fn readiness(address: SocketAddr) -> Option<serde_json::Value> {
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, get(reachable(address), "/readyz")).await.ok()?.ok()?;
    let is_ready = answer.lines().next().is_some_and(|line| line.contains(" 200 "));
    object(&answer).filter(|_| is_ready)
}

/// The address to connect to for one that is listened on.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let local: std::net::IpAddr =
            if address.is_ipv4() { [127, 0, 0, 1].into() } else { [0, 0, 0, 0, 0, 0, 0, 1].into() };
        address.set_ip(local);
    }
    address
}

async fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The JSON object of a response.
fn object(answer: &str) -> Option<serde_json::Value> {
    let (_, body) = answer.split_once("\r\n\r\n")?;
    // Chunked or not, the document is the only object in it.
    serde_json::from_str(body.get(body.find('{')?..=body.rfind('}')?)?).ok()
}

/// The version in our status document, if the response is one.
fn version(answer: &str) -> Option<String> {
    let status = object(answer)?;
    let is_ours = status.get("ok").is_some_and(serde_json::Value::is_boolean);
    let version = status.get("version").and_then(serde_json::Value::as_str);
    version.filter(|_| is_ours).map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_status_is_recognised() {
        let ours = "HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n{\"ok\":true,\"version\":\"0.1.0\"}";
        assert_eq!(version(ours), Some("0.1.0".to_owned()));
        let chunked = "HTTP/1.1 200 OK\r\n\r\n1d\r\n{\"ok\":true,\"version\":\"0.1.0\"}\r\n0\r\n\r\n";
        assert_eq!(version(chunked), Some("0.1.0".to_owned()));
        for other in [
            "",
            "SSH-2.0-OpenSSH",
            "HTTP/1.1 200 OK\r\n\r\n<html>{}</html>",
            "HTTP/1.1 200 OK\r\n\r\n{\"ok\":1}",
        ] {
            assert_eq!(version(other), None, "{other}");
        }
    }
}
