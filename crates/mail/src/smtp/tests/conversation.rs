//! The driver: streams, time, TLS and stopping. Tokio's clock is paused and advances when all tasks are idle.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::{reception::Memory, *};

/// A client, the server that it speaks with, and what that has taken.
struct Peer {
    stream: DuplexStream,
    server: JoinHandle<std::io::Result<RunEnd>>,
    memory: Arc<Memory>,
    stop: watch::Sender<bool>,
}

impl Peer {
    fn connect() -> Self {
        Self::connect_with(Protocol::Smtp, b"")
    }

    fn connect_with(protocol: Protocol, early: &[u8]) -> Self {
        let (mut stream, mut theirs) = duplex(64 * 1024);
        let memory = Arc::new(Memory::default());
        let (stop, stopping) = watch::channel(false);
        let address = ([192, 0, 2, 1], 4321).into();
        let client = Client::new(address, protocol);
        let mut conversation = Conversation::new(settings(), client, memory.clone(), stopping);
        // The stream has room, so this is done at once.
        let _ = futures_now(stream.write_all(early));
        let server = tokio::spawn(async move {
            loop {
                match conversation.run(&mut theirs).await? {
                    RunEnd::Closed => return Ok(RunEnd::Closed),
                    RunEnd::StartTls => conversation.secured(Encryption::UNKNOWN),
                }
            }
        });
        Self { stream, server, memory, stop }
    }

    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// The next replies up to one that is the last of its lines.
    async fn reply(&mut self) -> String {
        let mut text = String::new();
        loop {
            let line_start = text.len();
            while !text[line_start..].ends_with("\r\n") {
                match self.stream.read_u8().await {
                    Ok(byte) => text.push(char::from(byte)),
                    Err(_) => return text,
                }
            }
            if text.as_bytes()[line_start + 3] == b' ' {
                return text;
            }
        }
    }

    async fn ask(&mut self, text: &str) -> String {
        self.send(text).await;
        self.reply().await
    }

    async fn hello(&mut self) {
        self.reply().await;
        self.ask("EHLO me\r\n").await;
    }

    async fn begin_data(&mut self) {
        self.hello().await;
        self.send("MAIL FROM:<a@b.example>\r\nRCPT TO:<bob@agents.example>\r\nDATA\r\n").await;
        for _ in 0..2 {
            self.reply().await;
        }
        assert!(self.reply().await.starts_with("354 "));
    }

    async fn ends(&mut self) {
        assert_eq!(self.reply().await, "", "nothing more is said");
    }
}

/// Polls once.
fn futures_now<F: Future>(future: F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_mail_is_taken_and_told_of() {
    let mut peer = Peer::connect();
    peer.begin_data().await;
    let reply = peer.ask("Subject: x\r\n\r\n..\r\n.\r\nQUIT\r\n").await;
    assert_eq!(reply, "250 2.0.0 Kept for bob@agents.example\r\n");
    assert_eq!(peer.reply().await, "221 2.0.0 Bye\r\n");
    peer.ends().await;
    assert_eq!(peer.server.await.unwrap().unwrap(), RunEnd::Closed);
    let (client, from, recipients, message) = peer.memory.taken().remove(0);
    assert_eq!((client.helo.as_deref(), client.protocol, client.tls), (Some("me"), Protocol::Esmtp, None));
    assert_eq!(client.address.to_string(), "192.0.2.1:4321");
    assert_eq!(
        (from.to_string(), recipients),
        ("a@b.example".to_owned(), vec!["bob@agents.example".to_owned()])
    );
    assert_eq!(message, "Subject: x\r\n\r\n.\r\n");
}

#[tokio::test(start_paused = true)]
async fn the_reception_decides() {
    let mut peer = Peer::connect();
    peer.hello().await;
    assert_eq!(peer.ask("MAIL FROM:<a@blocked.example>\r\n").await, "550 5.7.1 You are blocked\r\n");
    assert!(peer.ask("RCPT TO:<bob@agents.example>\r\n").await.starts_with("503 "));
    assert!(peer.ask("MAIL FROM:<>\r\n").await.starts_with("250 "));
    assert_eq!(peer.ask("RCPT TO:<bob@other.example>\r\n").await, "550 5.7.1 We do not relay\r\n");
    assert_eq!(peer.ask("DATA\r\n").await, "554 5.5.1 No valid recipients\r\n");
}

#[tokio::test(start_paused = true)]
async fn pipelined_replies_come_in_one_go() {
    let mut peer = Peer::connect();
    peer.hello().await;
    peer.send("MAIL FROM:<a@b.example>\r\nRCPT TO:<bob@agents.example>\r\nRCPT TO:<x@y.example>\r\nDATA\r\n")
        .await;
    let mut space = [0; 1000];
    let length = peer.stream.read(&mut space).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&space[..length]).lines().count(), 4);
}

#[tokio::test(start_paused = true)]
async fn large_mails_come_in_whole() {
    let mut peer = Peer::connect();
    peer.begin_data().await;
    let message = "0123456789\r\n".repeat(8000);
    let reply = peer.ask(&format!("{message}.\r\n")).await;
    assert!(reply.starts_with("250 "));
    assert_eq!(peer.memory.taken()[0].3, message);
}

/// rules: RECV-10
#[tokio::test(start_paused = true)]
async fn talking_before_the_greeting_is_refused() {
    let mut peer = Peer::connect_with(Protocol::Smtp, b"EHLO me\r\n");
    assert_eq!(peer.reply().await, "554 5.5.0 You sent before our greeting\r\n");
    peer.ends().await;
}

#[tokio::test(start_paused = true)]
async fn after_tls_the_client_begins_anew() {
    let mut peer = Peer::connect();
    peer.hello().await;
    assert!(peer.ask("STARTTLS\r\nMAIL FROM:<evil@example.com>\r\n").await.starts_with("220 "));
    assert!(peer.ask("MAIL FROM:<>\r\n").await.starts_with("503 "));
    assert!(!peer.ask("EHLO again\r\n").await.contains("STARTTLS"));
    peer.send("MAIL FROM:<>\r\nRCPT TO:<bob@agents.example>\r\nBDAT 2 LAST\r\nhi").await;
    for _ in 0..3 {
        assert!(peer.reply().await.starts_with("250 "));
    }
    let (client, ..) = peer.memory.taken().remove(0);
    assert_eq!((client.tls, client.helo.as_deref()), (Some(Encryption::UNKNOWN), Some("again")));
}

#[tokio::test(start_paused = true)]
async fn a_command_may_take_five_minutes() {
    let mut peer = Peer::connect();
    peer.hello().await;
    sleep(Duration::from_secs(299)).await;
    assert!(peer.ask("NOOP\r\n").await.starts_with("250 "));
    let start = Instant::now();
    // Letters now and then are no command.
    for letter in ["N", "O", "O", "P"] {
        sleep(Duration::from_secs(70)).await;
        peer.send(letter).await;
    }
    assert_eq!(peer.reply().await, "421 4.4.2 You took too long\r\n");
    assert_eq!(start.elapsed().as_secs(), 300);
    peer.ends().await;
}

#[tokio::test(start_paused = true)]
async fn slow_content_is_cut_off() {
    let mut peer = Peer::connect();
    peer.begin_data().await;
    let start = Instant::now();
    for _ in 0..100 {
        if peer.stream.write_all(&[b'x'; 100]).await.is_err() || peer.server.is_finished() {
            break;
        }
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(peer.reply().await, "421 4.4.2 You took too long\r\n");
    // 100 bytes a second buy a fifth of a second each second: ten seconds last for twelve and a half.
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert!(peer.memory.taken().is_empty());
}

#[tokio::test(start_paused = true)]
async fn content_that_keeps_coming_may_take_its_time() {
    let mut peer = Peer::connect();
    peer.begin_data().await;
    for _ in 0..120 {
        peer.stream.write_all(&[b'x'; 600]).await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    assert!(peer.ask("\r\n.\r\n").await.starts_with("250 "));
}

/// rules: RECV-11
#[tokio::test(start_paused = true)]
async fn a_flood_of_errors_is_slowed_down_and_ended() {
    let mut peer = Peer::connect();
    peer.hello().await;
    let start = Instant::now();
    for number in 1..=20 {
        assert!(peer.ask("WHAT\r\n").await.starts_with("500 "), "{number}");
    }
    assert_eq!(peer.reply().await, "421 4.7.0 Too many errors\r\n");
    assert_eq!(start.elapsed().as_secs(), 9);
    peer.ends().await;
}

/// rules: RECV-9
#[tokio::test(start_paused = true)]
async fn who_is_turned_away_while_sending_still_gets_the_reply() {
    let mut peer = Peer::connect();
    peer.begin_data().await;
    peer.send("a\nb").await;
    for _ in 0..100 {
        peer.send(&"x".repeat(10_000)).await;
    }
    assert!(peer.reply().await.starts_with("550 5.6.0 "));
    peer.ends().await;
    assert!(!peer.server.is_finished());
    drop(peer.stream);
    peer.server.await.unwrap().unwrap();
    assert!(peer.memory.taken().is_empty());
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_a_message_come_in_and_ends_the_rest() {
    let (mut busy, mut idle) = (Peer::connect(), Peer::connect());
    idle.hello().await;
    busy.begin_data().await;
    busy.stop.send(true).unwrap();
    idle.stop.send(true).unwrap();
    assert_eq!(idle.reply().await, "421 4.3.2 The service is stopping; try again later\r\n");
    idle.server.await.unwrap().unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(busy.ask("hi\r\n.\r\n").await.starts_with("250 "));
    assert!(busy.reply().await.starts_with("421 4.3.2 "));
    busy.server.await.unwrap().unwrap();
    assert_eq!(busy.memory.taken().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_no_replies_is_given_up() {
    let mut peer = Peer::connect();
    peer.hello().await;
    // 900 greetings are more than the stream holds.
    for _ in 0..900 {
        if peer.stream.write_all(b"EHLO me\r\n").await.is_err() {
            break;
        }
        sleep(Duration::from_millis(1)).await;
    }
    let error = peer.server.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_in_mid_message_leaves_nothing() {
    let mut peer = Peer::connect();
    peer.begin_data().await;
    peer.send("half a mes").await;
    drop(peer.stream);
    assert_eq!(peer.server.await.unwrap().unwrap(), RunEnd::Closed);
    assert!(peer.memory.taken().is_empty());
}

#[tokio::test(start_paused = true)]
async fn lmtp_answers_for_each() {
    let mut peer = Peer::connect_with(Protocol::Lmtp, b"");
    peer.reply().await;
    peer.ask("LHLO me\r\n").await;
    peer.send(
        "MAIL FROM:<>\r\nRCPT TO:<a@agents.example>\r\nRCPT TO:<b@agents.example>\r\nBDAT 2 LAST\r\nhi",
    )
    .await;
    for _ in 0..3 {
        peer.reply().await;
    }
    assert_eq!(peer.reply().await, "250 2.0.0 Kept for a@agents.example\r\n");
    assert_eq!(peer.reply().await, "250 2.0.0 Kept for b@agents.example\r\n");
}
