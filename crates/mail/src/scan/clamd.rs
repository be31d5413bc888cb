//! A client of clamd over TCP or a Unix socket, which accepts only its two definite answers.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// The most bytes that are sent at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// The most bytes of an answer that are read.
const MAX_ANSWER_BYTES: u64 = 4096;

/// Where clamd listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClamdAddress {
    /// A host and port.
    Tcp(String),
    /// A socket.
    Socket(PathBuf),
}

impl FromStr for ClamdAddress {
    type Err = ClamdError;

    /// Reads `host:port` or the path of a socket.
    fn from_str(text: &str) -> Result<Self, ClamdError> {
        let path = text.strip_prefix("unix:").unwrap_or(text);
        if path.starts_with('/') || path.starts_with("./") {
            return Ok(Self::Socket(PathBuf::from(path)));
        }
        let has_port =
            text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if has_port { Ok(Self::Tcp(text.to_owned())) } else { Err(ClamdError::Address) }
    }
}

/// What clamd answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClamVerdict {
    /// Nothing was found.
    Clean,
    /// Something was found, by this name.
    Found(String),
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClamdError {
    /// The address is neither a host with a port nor a path.
    #[error("a clamd address is host:port or the path of a socket")]
    Address,
    /// The connection failed.
    #[error("clamd cannot be reached")]
    Unreachable(#[from] std::io::Error),
    /// The scan timed out.
    #[error("clamd did not answer in time")]
    TimedOut,
    /// An unknown answer.
    #[error("clamd gave an answer that is none")]
    Answer,
}

/// Scans `bytes` with clamd, with the timeout `limit`.
pub async fn scan(address: &ClamdAddress, bytes: &[u8], limit: Duration) -> Result<ClamVerdict, ClamdError> {
    let work = async {
        match address {
            ClamdAddress::Tcp(address) => exchange(TcpStream::connect(address.as_str()).await?, bytes).await,
            ClamdAddress::Socket(path) => exchange(UnixStream::connect(path).await?, bytes).await,
        }
    };
    timeout(limit, work).await.map_err(|_| ClamdError::TimedOut)?
}

/// Sends the bytes and reads the answer.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    bytes: &[u8],
) -> Result<ClamVerdict, ClamdError> {
    let (reader, mut writer) = tokio::io::split(stream);
    // clamd may answer and close while we still send: its answer counts.
    let sent = send(&mut writer, bytes).await;
    let mut answer = Vec::new();
    let read = reader.take(MAX_ANSWER_BYTES).read_to_end(&mut answer).await;
    if answer.is_empty() {
        sent?;
        read?;
    }
    verdict(&answer)
}

async fn send(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> std::io::Result<()> {
    writer.write_all(b"zINSTREAM\0").await?;
    for chunk in bytes.chunks(CHUNK_BYTES) {
        let length = u32::try_from(chunk.len()).unwrap_or_default();
        writer.write_all(&length.to_be_bytes()).await?;
        writer.write_all(chunk).await?;
    }
    writer.write_all(&[0; 4]).await?;
    writer.flush().await
}

/// Reads an answer such as `stream: Eicar-Signature FOUND`.
fn verdict(answer: &[u8]) -> Result<ClamVerdict, ClamdError> {
    let answer = std::str::from_utf8(answer).map_err(|_| ClamdError::Answer)?;
    let answer = answer.trim_end_matches(['\0', '\n']).strip_prefix("stream: ").ok_or(ClamdError::Answer)?;
    if answer == "OK" {
        return Ok(ClamVerdict::Clean);
    }
    match answer.strip_suffix(" FOUND") {
        Some(name) if !name.is_empty() && name.len() <= 200 => Ok(ClamVerdict::Found(name.to_owned())),
        _ => Err(ClamdError::Answer),
    }
}
