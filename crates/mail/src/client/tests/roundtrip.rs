//! Messages to our own receiving side, in the clear and encrypted, over real connections.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::super::{Credentials, Extension, Phase, Tls};
use super::*;
use crate::smtp::tests::reception::Memory;
use crate::smtp::tests::settings;
use crate::smtp::{Client, Conversation, Protocol, RunEnd};

/// A server, its address and what it has taken.
struct Server {
    address: std::net::SocketAddr,
    memory: Arc<Memory>,
    task: JoinHandle<()>,
    authority: CertificateDer<'static>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An acceptor for `mx.test`, and the authority that vouches for it.
fn acceptor() -> (TlsAcceptor, CertificateDer<'static>) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["mx.test".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), authority_certificate.der().clone())
}

async fn start() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let memory = Arc::new(Memory::default());
    let (acceptor, authority) = acceptor();
    let kept = Arc::clone(&memory);
    let task = tokio::spawn(async move {
        let (_stop, stopping) = watch::channel(false);
        while let Ok((mut stream, peer)) = listener.accept().await {
            let client = Client::new(peer, Protocol::Smtp);
            let mut conversation = Conversation::new(settings(), client, Arc::clone(&kept), stopping.clone());
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(RunEnd::StartTls) = conversation.run(&mut stream).await {
                    let Ok(mut secured) = acceptor.accept(stream).await else { return };
                    conversation.secured(crate::Encryption::of(secured.get_ref().1));
                    let _ = conversation.run(&mut secured).await;
                }
            });
        }
    });
    Server { address, memory, task, authority }
}

impl Server {
    async fn connect(&self, security: Security) -> Result<Connection, Error> {
        Connection::connect(self.address, &Options { security, timeouts: hasty(), ..options() }).await
    }
}

const RECIPIENTS: [&str; 3] = ["one@agents.example", "two@elsewhere.example", "three@agents.example"];

async fn check(server: &Server, mut connection: Connection, secured: bool) {
    assert_eq!(connection.is_secured(), secured);
    let recipients = RECIPIENTS.map(str::to_owned);
    let large = b"Subject: Large\r\n\r\n.\r\n"
        .iter()
        .copied()
        .chain(b".line\r\n".repeat(10_000))
        .collect::<Vec<u8>>();
    for content in [CONTENT, &large, b"A: b\r\n\r\n", b".\r\n", b"."] {
        let mail = MailObject { from: Some("ann@us.test"), recipients: &recipients, content };
        let found: Vec<String> = connection.send(&mail).await.unwrap().iter().map(brief).collect();
        assert_eq!(found, ["accepted 250", "never 550", "accepted 250"]);
        let (client, from, to, message) = server.memory.taken().pop().unwrap();
        assert_eq!((client.tls.is_some(), client.helo.as_deref()), (secured, Some("us.test")));
        assert_eq!(from.as_str(), Some("ann@us.test"));
        assert_eq!(to, ["one@agents.example", "three@agents.example"]);
        let expected =
            if content.ends_with(b"\r\n") { content.to_vec() } else { [content, b"\r\n"].concat() };
        assert_eq!(message, expected);
    }
    let blocked = MailObject { from: Some("a@blocked.example"), recipients: &recipients, content: CONTENT };
    assert_eq!(brief(&connection.send(&blocked).await.unwrap()[0]), "never 550");
    let after = MailObject { from: None, recipients: &recipients, content: CONTENT };
    assert_eq!(brief(&connection.send(&after).await.unwrap()[0]), "accepted 250");
    connection.quit().await;
}

#[tokio::test]
async fn our_own_server_takes_mail_in_the_clear_and_encrypted() {
    let server = start().await;
    let tls = Tls::with_roots(vec![server.authority.clone()]).unwrap();
    check(&server, server.connect(Security::None).await.unwrap(), false).await;
    check(&server, server.connect(Security::StartTls(tls.clone())).await.unwrap(), true).await;
    check(&server, server.connect(Security::Opportunistic(tls)).await.unwrap(), true).await;
}

#[tokio::test]
async fn content_goes_by_data_where_there_are_no_chunks() {
    let server = start().await;
    let mut connection = server.connect(Security::None).await.unwrap();
    assert!(connection.extensions().offers(Extension::Chunking));
    connection.extensions.offered.retain(|extension| *extension != Extension::Chunking);
    check(&server, connection, false).await;
    let mut connection = server.connect(Security::None).await.unwrap();
    connection.extensions.offered.clear();
    check(&server, connection, false).await;
}

#[tokio::test]
async fn only_certificates_that_hold_are_believed() {
    let server = start().await;
    let stranger = Tls::with_roots(vec![acceptor().1]).unwrap();
    let error = server.connect(Security::StartTls(stranger.clone())).await.unwrap_err();
    assert!(matches!(error, Error::Tls(_)), "{error:?}");
    assert!(server.connect(Security::Opportunistic(stranger)).await.unwrap().is_secured());

    let tls = Tls::with_roots(vec![server.authority.clone()]).unwrap();
    let security = Security::StartTls(tls.clone());
    let other_name =
        Options { server_name: "other.test".to_owned(), security, timeouts: hasty(), ..options() };
    let error = Connection::connect(server.address, &other_name).await.unwrap_err();
    assert!(matches!(error, Error::Tls(_)), "{error:?}");
    // Our own server has no accounts.
    let security = Security::StartTls(tls);
    let credentials = Some(Credentials::new("a", "b"));
    let with_account = Options { credentials, security, timeouts: hasty(), ..options() };
    assert_eq!(Connection::connect(server.address, &with_account).await.unwrap_err(), Error::NoAuth);
}

/// A server that is encrypted from the first byte on and follows a script.
async fn implicit(script: &'static str) -> (std::net::SocketAddr, CertificateDer<'static>, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (acceptor, authority) = acceptor();
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        for line in script.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
            let text = format!("{}\r\n", line.get(3..).unwrap_or_default());
            if line.starts_with('S') {
                stream.write_all(text.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
            } else {
                let mut said = vec![0; text.len()];
                stream.read_exact(&mut said).await.unwrap();
                assert_eq!(String::from_utf8_lossy(&said), text);
            }
        }
    });
    (address, authority, task)
}

#[tokio::test]
async fn accounts_are_used_under_encryption() {
    let plain = "
        S: 220 x
        C: EHLO us.test
        S: 250-x
        S: 250 AUTH LOGIN PLAIN
        C: AUTH PLAIN AGFubgBzZWNyZXQ=
        S: 235 2.7.0 welcome";
    let login = "
        S: 220 x
        C: EHLO us.test
        S: 250-x
        S: 250 AUTH=LOGIN
        C: AUTH LOGIN
        S: 334 VXNlcm5hbWU6
        C: YW5u
        S: 334 UGFzc3dvcmQ6
        C: c2VjcmV0
        S: 535 5.7.8 no";
    for (script, accepted) in [(plain, true), (login, false)] {
        let (address, authority, task) = implicit(script).await;
        let security = Security::Implicit(Tls::with_roots(vec![authority]).unwrap());
        let credentials = Some(Credentials::new("ann", "secret"));
        let options = Options { security, credentials, timeouts: hasty(), ..options() };
        let found = Connection::connect(address, &options).await;
        task.await.unwrap();
        match found {
            Ok(connection) => assert!(accepted && connection.is_secured()),
            Err(Error::Refused(Phase::Auth, reply)) => assert!(!accepted && reply.code() == 535),
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn nobody_at_home_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = Connection::connect(address, &options()).await.unwrap_err();
    assert!(matches!(error, Error::Network(Phase::Connect, _)), "{error:?}");
    assert!(Tls::system().is_ok());
}
