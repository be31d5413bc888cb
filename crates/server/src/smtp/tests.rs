//! SMTP over real sockets: STARTTLS with either certificate, limits, shutdown.

use std::{net::Ipv4Addr, path::Path, sync::Mutex};

use bytes::Bytes;
use mail::smtp::{ForwardPath, Reply, ReversePath, TransactionRecord};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use super::*;
use crate::config::{Sources, TlsFiles};

#[derive(Default)]
struct Memory(Mutex<Vec<(bool, Bytes)>>);

impl Reception for Memory {
    type Recipient = ();
    type Note = ();

    async fn mail(&self, _: &Client, _: &ReversePath, _: Option<u64>) -> Result<(), Reply> {
        Ok(())
    }
    async fn rcpt(&self, _: &Client, _: &ReversePath, _: &ForwardPath) -> Result<(), Reply> {
        Ok(())
    }
    async fn data(
        &self,
        client: &Client,
        _: ReversePath,
        recipients: Vec<()>,
        message: Bytes,
    ) -> (Vec<Result<String, Reply>>, ()) {
        self.0.lock().unwrap().push((client.tls.is_some(), message));
        (vec![Ok("Kept".to_owned()); recipients.len()], ())
    }

    fn ended(&self, _: &Client, _: TransactionRecord, _: Option<()>, _: Duration) {}
}

/// A server on a port of its own.
struct Server {
    address: SocketAddr,
    folder: tempfile::TempDir,
    memory: Arc<Memory>,
    stop: watch::Sender<bool>,
}

impl Server {
    fn start(protocol: Protocol, change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sources = Sources { working_dir: folder.path().to_owned(), ..Sources::default() };
        let mut config = Config::load(&sources).unwrap();
        config.data_dir = folder.path().to_owned();
        config.smtp.hostname = Some("mx.test".to_owned());
        change(&mut config);
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        (config.smtp.listen, config.smtp.lmtp_listen) = (nowhere, Some(nowhere));
        let listeners = bind(&config).unwrap();
        let (listener, _) = listeners.into_iter().find(|(_, spoken)| *spoken == protocol).unwrap();
        let address = listener.local_addr().unwrap();
        let memory = Arc::new(Memory::default());
        let (stop, stopping) = watch::channel(false);
        let options = Options::from_config(&config).unwrap();
        tokio::spawn(serve(Arc::new(listener), protocol, memory.clone(), options, stopping));
        Self { address, folder, memory, stop }
    }

    async fn connect(&self) -> Peer<TcpStream> {
        Peer(BufReader::new(TcpStream::connect(self.address).await.unwrap()))
    }
}

struct Peer<S>(BufReader<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    async fn reply(&mut self) -> String {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).await.unwrap();
            if line.as_bytes().get(3) != Some(&b'-') {
                return line;
            }
        }
    }

    async fn ask(&mut self, text: &str) -> String {
        self.0.write_all(text.as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
        self.reply().await
    }

    async fn send_mail(&mut self) {
        assert!(self.ask("EHLO me\r\n").await.starts_with("250 "));
        assert!(self.ask("MAIL FROM:<>\r\n").await.starts_with("250 "));
        assert!(self.ask("RCPT TO:<a@b.example>\r\n").await.starts_with("250 "));
        assert!(self.ask("DATA\r\n").await.starts_with("354 "));
        assert_eq!(self.ask("hi\r\n.\r\n").await, "250 2.0.0 Kept\r\n");
    }
}

/// Switches to TLS, trusting only the certificate in this file.
async fn secure(mut peer: Peer<TcpStream>, trusted: &Path) -> Peer<TlsStream<TcpStream>> {
    peer.reply().await;
    peer.ask("EHLO me\r\n").await;
    assert!(peer.ask("STARTTLS\r\n").await.starts_with("220 "));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("mx.test").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, peer.0.into_inner()).await.unwrap();
    Peer(BufReader::new(stream))
}

#[tokio::test]
async fn mail_comes_in_with_and_without_tls() {
    let server = Server::start(Protocol::Smtp, |_| {});
    let mut plain = server.connect().await;
    assert_eq!(plain.reply().await, "220 mx.test ESMTP\r\n");
    plain.send_mail().await;
    assert!(plain.ask("QUIT\r\n").await.starts_with("221 "));
    let mut secured = secure(server.connect().await, &server.folder.path().join("smtp-mx.test.pem")).await;
    secured.send_mail().await;
    assert!(secured.ask("QUIT\r\n").await.starts_with("221 "));
    let messages = server.memory.0.lock().unwrap().clone();
    assert_eq!(messages, [(false, Bytes::from("hi\r\n")), (true, Bytes::from("hi\r\n"))]);
}

#[tokio::test]
async fn a_certificate_stays_the_same_and_is_private() {
    let server = Server::start(Protocol::Smtp, |_| {});
    let path = server.folder.path().join("smtp-mx.test.pem");
    let first = std::fs::read(&path).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    tls::acceptor(None, server.folder.path(), "mx.test").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first);
    tls::acceptor(None, server.folder.path(), "other.test").unwrap();
    assert_eq!(std::fs::read_dir(server.folder.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn a_given_certificate_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["mx.test".to_owned()]).unwrap();
    let files = TlsFiles { certificate: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let server = Server::start(Protocol::Smtp, |config| config.smtp.tls = Some(files.clone()));
    let mut peer = secure(server.connect().await, &files.certificate).await;
    peer.send_mail().await;

    std::fs::write(&files.key, "no key").unwrap();
    let failure = tls::acceptor(Some(&files), folder.path(), "mx.test").err().unwrap().to_string();
    assert!(failure.contains("key.pem"), "{failure}");
}

#[tokio::test]
async fn lmtp_has_a_listener_of_its_own() {
    let server = Server::start(Protocol::Lmtp, |config| config.smtp.connections_per_minute = 1);
    for _ in 0..3 {
        let mut peer = server.connect().await;
        assert_eq!(peer.reply().await, "220 mx.test LMTP\r\n", "it is not counted by address");
        assert!(peer.ask("LHLO me\r\n").await.starts_with("250 "));
    }
}

#[tokio::test]
async fn connections_at_once_have_a_limit() {
    let server = Server::start(Protocol::Smtp, |config| config.smtp.max_connections = 2);
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    assert!(first.reply().await.starts_with("220 ") && second.reply().await.starts_with("220 "));
    let mut third = server.connect().await;
    assert!(third.reply().await.starts_with("421 4.3.2 "));
    assert_eq!(third.reply().await, "", "and is closed");
    first.ask("QUIT\r\n").await;
    assert_eq!(first.reply().await, "");
    // The permit is released a moment after QUIT.
    for _ in 0..100 {
        if server.connect().await.reply().await.starts_with("220 ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no place became free");
}

/// rules: RECV-11
#[tokio::test]
async fn connections_of_one_address_have_a_limit() {
    let server = Server::start(Protocol::Smtp, |config| config.smtp.connections_per_minute = 3);
    for _ in 0..3 {
        assert!(server.connect().await.reply().await.starts_with("220 "));
    }
    assert!(server.connect().await.reply().await.starts_with("421 4.7.0 "));
}

/// rules: RECV-11
#[test]
fn a_minute_begins_the_count_again() {
    let gate = Gate::new(100, Limits { per_minute: 2, max_open: 100 });
    let start = Instant::now();
    let comes = |address: &str, seconds| {
        gate.admit(Some(address.parse().unwrap()), start + Duration::from_secs(seconds)).is_ok()
    };
    assert!(comes("192.0.2.1", 0) && comes("192.0.2.1", 30) && !comes("192.0.2.1", 59));
    assert!(comes("192.0.2.2", 59) && gate.admit(None, start).is_ok());
    assert!(comes("192.0.2.1", 61));
    assert!(comes("2001:db8::1", 61) && comes("2001:db8::ffff:2", 61) && !comes("2001:db8::1", 61));
}

/// rules: RECV-11
#[test]
fn an_address_has_so_many_connections_open_and_no_more() {
    let gate = Gate::new(100, Limits { per_minute: 1000, max_open: 2 });
    let comes = |address: &str| gate.admit(Some(address.parse().unwrap()), Instant::now());
    let (first, second) = (comes("192.0.2.1").unwrap(), comes("192.0.2.1").unwrap());
    assert!(comes("192.0.2.1").unwrap_err().starts_with("421 4.7.0 "));
    assert!(comes("192.0.2.2").is_ok(), "another address has its own");
    let network = [comes("2001:db8::1").unwrap(), comes("2001:db8::ffff:2").unwrap()];
    assert!(comes("2001:db8::3").is_err(), "a host with IPv6 owns a /64");
    drop((first, network));
    let again = comes("192.0.2.1").unwrap();
    assert!(comes("192.0.2.1").is_err() && comes("2001:db8::3").is_ok());
    drop((second, again));
    // Programs on this machine share one address, and a mail server in front relays everyone's mail.
    let local: Vec<_> = (0..10).map(|_| comes("127.0.0.1").unwrap()).collect();
    let front: Vec<_> = (0..10).map(|_| gate.admit(None, Instant::now()).unwrap()).collect();
    assert_eq!(local.len() + front.len(), 20);
}

#[tokio::test]
async fn stopping_ends_the_listener_and_the_idle() {
    let server = Server::start(Protocol::Smtp, |_| {});
    let mut peer = server.connect().await;
    peer.reply().await;
    server.stop.send(true).unwrap();
    assert!(peer.reply().await.starts_with("421 4.3.2 "));
    tokio::time::timeout(Duration::from_secs(5), server.stop.closed()).await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}
