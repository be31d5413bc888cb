//! The client of clamd against peers that behave, and peers that do not.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::scan::clamd::{ClamVerdict, ClamdAddress, ClamdError, scan};

/// What a peer got, and what the client made of its answer.
async fn ask(content: &[u8], answer: &'static [u8]) -> (Vec<u8>, Result<ClamVerdict, ClamdError>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = ClamdAddress::Tcp(listener.local_addr().unwrap().to_string());
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut command = [0; 10];
        stream.read_exact(&mut command).await.unwrap();
        assert_eq!(&command, b"zINSTREAM\0");
        let mut got = Vec::new();
        loop {
            let length = stream.read_u32().await.unwrap() as usize;
            if length == 0 {
                break;
            }
            let start = got.len();
            got.resize(start + length, 0);
            stream.read_exact(&mut got[start..]).await.unwrap();
        }
        stream.write_all(answer).await.unwrap();
        got
    };
    let (got, verdict) = tokio::join!(peer, scan(&address, content, Duration::from_secs(10)));
    (got, verdict)
}

#[tokio::test]
async fn answers() {
    let content = vec![7; 200_000];
    let (got, verdict) = ask(&content, b"stream: OK\0").await;
    assert_eq!((got == content, verdict.unwrap()), (true, ClamVerdict::Clean));
    let (_, verdict) = ask(b"", b"stream: Eicar-Signature FOUND\0").await;
    assert_eq!(verdict.unwrap(), ClamVerdict::Found("Eicar-Signature".to_owned()));
    for nonsense in [
        &b""[..],
        b"stream: \0",
        b"OK\0",
        b"INSTREAM size limit exceeded. ERROR\0",
        b"\xff\xfe",
        b"stream: FOUND\0",
    ] {
        let (_, verdict) = ask(b"x", nonsense).await;
        // rules: SCAN-6
        assert!(matches!(verdict, Err(ClamdError::Answer)), "{nonsense:?}: {verdict:?}");
    }
}

#[tokio::test]
async fn peers_that_are_not_there_or_hang() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = ClamdAddress::Tcp(listener.local_addr().unwrap().to_string());
    let hanging = scan(&address, b"x", Duration::from_millis(50)).await;
    // rules: SCAN-6
    assert!(matches!(hanging, Err(ClamdError::TimedOut)), "{hanging:?}");
    drop(listener);
    let gone = scan(&address, b"x", Duration::from_secs(10)).await;
    assert!(matches!(gone, Err(ClamdError::Unreachable(_))), "{gone:?}");
    let nowhere = scan(&"/nonexistent/clamd.sock".parse().unwrap(), b"x", Duration::from_secs(10)).await;
    assert!(matches!(nowhere, Err(ClamdError::Unreachable(_))), "{nowhere:?}");
}

#[test]
fn addresses() {
    assert_eq!(
        "localhost:3310".parse::<ClamdAddress>().unwrap(),
        ClamdAddress::Tcp("localhost:3310".to_owned())
    );
    assert!(matches!("/run/clamd.sock".parse::<ClamdAddress>(), Ok(ClamdAddress::Socket(_))));
    for wrong in ["", "localhost", ":3310", "localhost:x"] {
        assert!(wrong.parse::<ClamdAddress>().is_err(), "{wrong}");
    }
}
