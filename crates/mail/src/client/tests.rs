//! The client against scripts of servers: honest, strict, lost and hostile ones.

mod hostile;
mod roundtrip;
mod transcripts;

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::{Connection, Error, MailObject, Options, Outcome, Security, Timeouts};

fn options() -> Options {
    Options {
        hello: "us.test".to_owned(),
        server_name: "mx.test".to_owned(),
        security: Security::None,
        credentials: None,
        timeouts: Timeouts::default(),
    }
}

/// Content that must be stuffed.
const CONTENT: &[u8] = b"Subject: Hi\r\n\r\n.\r\n..\r\n.x\r\nBye\r\n";

/// A server that says the lines of `S: ` and demands those of `C: `, over a stream that holds so many bytes. The lines
/// `S! ` are said without a line end, and after `END` the connection is closed.
fn server(script: &str, room: usize) -> (DuplexStream, JoinHandle<()>) {
    let (ours, mut theirs) = duplex(room);
    let script = script.to_owned();
    let task = tokio::spawn(async move {
        for line in script.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
            let text = line.get(3..).unwrap_or_default();
            if line.starts_with("S: ") {
                theirs.write_all(format!("{text}\r\n").as_bytes()).await.unwrap();
            } else if line.starts_with("S! ") {
                theirs.write_all(text.as_bytes()).await.unwrap();
            } else if line == "END" {
                return;
            } else {
                assert!(line.starts_with("C:"), "{line}");
                let mut said = vec![0; text.len() + 2];
                theirs.read_exact(&mut said).await.unwrap_or_else(|error| panic!("{error} before {line:?}"));
                assert_eq!(String::from_utf8_lossy(&said), format!("{text}\r\n"));
            }
        }
        // Nothing more may come.
        let mut rest = Vec::new();
        let _ = theirs.read_to_end(&mut rest).await;
        assert_eq!(String::from_utf8_lossy(&rest), "");
    });
    (ours, task)
}

/// What comes of one mail for these recipients.
async fn deliver(script: &str, room: usize, recipients: &[&str]) -> Result<Vec<Outcome>, Error> {
    let (stream, task) = server(script, room);
    let mut connection = Connection::start(stream, &options()).await?;
    let recipients: Vec<String> = recipients.iter().map(|name| (*name).to_owned()).collect();
    let mail = MailObject { from: Some("ann@us.test"), recipients: &recipients, content: CONTENT };
    let outcomes = connection.send(&mail).await.unwrap();
    connection.quit().await;
    task.await.unwrap();
    Ok(outcomes)
}

/// An outcome as a word and a code.
fn brief(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Accepted(reply) => format!("accepted {}", reply.code()),
        Outcome::Refused(reply) if reply.is_permanent() => format!("never {}", reply.code()),
        Outcome::Refused(reply) => format!("later {}", reply.code()),
        Outcome::Failed(error) => format!("failed: {error}"),
        Outcome::Uncertain(error) => format!("uncertain: {error}"),
    }
}

/// Waits that end soon, for tests that wait for real.
fn hasty() -> Timeouts {
    Timeouts { total: Duration::from_secs(20), ..Timeouts::default() }
}
