//! Mail into the real program: what is taken, what is refused, by which door, and in which role.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use store::blobs::BlobHash;

use super::{Home, Server, free_port, head, read_bytes, request, text};

/// One client's side of SMTP or LMTP.
pub struct Smtp {
    stream: BufReader<TcpStream>,
}

impl Smtp {
    /// Connects and introduces itself.
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address, "EHLO").unwrap()
    }

    pub fn try_connect(address: SocketAddr, hello: &str) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut client = Self { stream: BufReader::new(stream) };
        client.reply()?;
        client.try_say(&format!("{hello} client.test"))?;
        Ok(client)
    }

    /// Reads a reply, of which the last line counts.
    pub fn reply(&mut self) -> std::io::Result<(u16, String)> {
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if line.as_bytes().get(3) == Some(&b' ') {
                return Ok((line[..3].parse().unwrap(), line.trim_end().to_owned()));
            }
        }
    }

    pub fn try_say(&mut self, line: &str) -> std::io::Result<(u16, String)> {
        self.write(format!("{line}\r\n").as_bytes())?;
        self.reply()
    }

    /// Says a line and gives the code of the reply.
    pub fn say(&mut self, line: &str) -> u16 {
        self.try_say(line).unwrap().0
    }

    pub fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends a message whose lines do not begin with dots, and gives the code of the last reply.
    pub fn send(&mut self, to: &str, message: &[u8]) -> std::io::Result<(u16, String)> {
        self.send_to(&[to], message)
    }

    /// The same for several recipients.
    pub fn send_to(&mut self, all: &[&str], message: &[u8]) -> std::io::Result<(u16, String)> {
        let recipients = all.iter().map(|to| format!("RCPT TO:<{to}>"));
        let lines = std::iter::once("MAIL FROM:<ann@remote.test>".to_owned()).chain(recipients);
        for line in lines.chain(["DATA".to_owned()]) {
            let reply = self.try_say(&line)?;
            if reply.0 >= 400 {
                return Ok(reply);
            }
        }
        self.write(message)?;
        self.try_say(".")
    }
}

/// A mailbox on a running server.
pub struct Inbox {
    pub key: String,
    pub workspace: String,
    pub address: String,
    /// The path of its resources.
    pub path: String,
}

impl Inbox {
    /// Makes an account on a plan with a key and a mailbox.
    pub fn new(home: &Home, server: &Server, plan: &str) -> Self {
        let workspace = home.create_account(&format!("owner@{plan}.test"), plan);
        let (_, key) = home.create_key(&workspace, &[]);
        Self::add(server, workspace, key)
    }

    /// A further mailbox of a workspace.
    pub fn add(server: &Server, workspace: String, key: String) -> Self {
        let made = server.call(&key, "POST", "/api/v1/mailboxes", &json!({ "name": "Box" }));
        assert_eq!(made.status, 201, "{}", made.body);
        let made = made.json();
        let path = format!("/api/v1/mailboxes/{}", text(&made, "public_id"));
        Self { key, workspace, address: text(&made, "email"), path }
    }

    pub fn get(&self, server: &Server, rest: &str) -> Value {
        let answer = server.call(&self.key, "GET", &format!("{}{rest}", self.path), &Value::Null);
        assert_eq!(answer.status, 200, "{rest}: {}", answer.body);
        answer.json()
    }

    /// All mails, page by page.
    pub fn list(&self, server: &Server) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(server, &format!("/emails?limit=100&metadata_only=true{cursor}"));
            all.extend(page["emails"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return all,
            }
        }
    }

    pub fn raw(&self, server: &Server, id: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let path = format!("{}/emails/{id}/raw", self.path);
        stream.write_all(head("GET", &path, &[("x-api-key", &self.key)], 0).as_bytes()).unwrap();
        let (status, _, body) = read_bytes(&mut stream);
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        body
    }

    /// The only mail with this subject.
    pub fn only(&self, server: &Server, subject: &str) -> Value {
        let found: Vec<Value> =
            self.list(server).into_iter().filter(|mail| mail["subject"] == subject).collect();
        assert_eq!(found.len(), 1, "{subject}: {found:?}");
        self.get(server, &format!("/emails/{}", text(&found[0], "id")))
    }

    /// That a mail is there once, byte for byte, is read as context and found by a word.
    pub fn assert_readable(&self, server: &Server, subject: &str, raw: &[u8], word: &str) -> Value {
        let mail = self.only(server, subject);
        let id = text(&mail, "id");
        assert_eq!(
            String::from_utf8_lossy(&self.raw(server, &id)),
            String::from_utf8_lossy(raw),
            "{subject}"
        );
        let context = self.get(server, &format!("/emails/{id}/context"));
        assert!(context.to_string().contains(word), "{word} is not in {context}");
        let found = self.get(server, &format!("/search?query={word}"));
        assert_eq!(found["emails"][0]["id"], json!(id), "{found}");
        mail
    }
}

pub fn hash(bytes: &[u8]) -> String {
    BlobHash::of(bytes).as_str().to_owned()
}

/// A plain message.
pub fn message(subject: &str, words: &str) -> Vec<u8> {
    format!(
        "From: Ann <ann@remote.test>\r\nTo: you@agents.localhost\r\nSubject: {subject}\r\n\
         Message-ID: <{}@remote.test>\r\n\r\n{words}\r\n",
        subject.replace(' ', ".")
    )
    .into_bytes()
}

/// rules: RECV-1, RECV-5, RECV-6, RECV-7, RECV-11, RECV-12
#[test]
fn smtp_takes_what_is_for_us_and_nothing_else() {
    for home in Home::on_each_engine() {
        let home = home.with("SMTP__MAX_MESSAGE_BYTES", "200000");
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let mut client = Smtp::connect(server.smtp);
        assert_eq!(client.say("MAIL FROM:<\"odd one\"@[192.0.2.1]>"), 250, "a sender that is lawful");
        for (to, code) in [
            ("nobody-here@agents.localhost", 550),
            ("someone@elsewhere.test", 550),
            ("someone%elsewhere.test@agents.localhost", 550),
            ("elsewhere.test!someone@agents.localhost", 550),
            ("@agents.localhost:someone@elsewhere.test", 550),
            ("\"someone@elsewhere.test\"@agents.localhost", 550),
            ("someone@[127.0.0.1]", 550),
            (inbox.address.as_str(), 250),
        ] {
            assert_eq!(client.say(&format!("RCPT TO:<{to}>")), code, "{to}");
        }
        assert_eq!(client.say("VRFY someone"), 252);
        assert_eq!(client.say("EXPN staff"), 502);
        assert_eq!(client.say("NONSENSE"), 500);
        assert_eq!(client.say("RSET"), 250);
        assert_eq!(client.say("MAIL FROM:<a@b.test> SIZE=200001"), 552);
        let (local, domain) = inbox.address.split_once('@').unwrap();
        let tagged = format!("{local}+tag@{domain}");
        let raw = message("Tagged", "plus addresses arrive");
        assert_eq!(client.send(&tagged, &raw).unwrap().0, 250);
        let mail = inbox.assert_readable(&server, "Tagged", &raw, "arrive");
        assert_eq!(mail["recipient"], json!(tagged));
        assert_eq!(mail["sender_authentication"]["inbound_provider"], "edge_routing", "{mail}");

        let circles = [b"Received: from a by b\r\n".repeat(51), message("Round", "and round")].concat();
        assert_eq!(client.send(&inbox.address, &circles).unwrap().0, 554);
        let large = message("Large", &"0123456789abcdef\r\n".repeat(12_000));
        assert_eq!(client.send(&inbox.address, &large).unwrap().0, 552);
        assert_eq!(client.send("postmaster", &message("To the operator", "hello")).unwrap().0, 250);
        assert_eq!(client.send("abuse@agents.localhost", &message("Abuse", "hello")).unwrap().0, 250);
        // The first account operates the server.
        let mailboxes = server.call(&inbox.key, "GET", "/api/v1/mailboxes", &Value::Null).json();
        let postmaster = |mailbox: &&Value| mailbox["email"] == "postmaster@agents.localhost";
        let postmaster = mailboxes.as_array().unwrap().iter().find(postmaster).unwrap();
        let path = format!("/api/v1/mailboxes/{}/emails", text(postmaster, "public_id"));
        let mails = server.call(&inbox.key, "GET", &path, &Value::Null).json();
        assert_eq!(mails["totalCount"], 2, "{mails}");

        assert_eq!(inbox.list(&server).len(), 1);
        assert_eq!(client.say("QUIT"), 221);
        server.stop();
    }
}

/// rules: RECV-8
#[test]
fn smtp_lets_in_whom_the_mailbox_lets_in() {
    for home in Home::on_each_engine() {
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let mut client = Smtp::connect(server.smtp);
        let policy = json!({ "settings": { "senderPolicy": { "allow": [], "block": ["@remote.test"] } } });
        let changed = server.call(&inbox.key, "PUT", &inbox.path, &policy);
        assert_eq!(changed.status, 200, "{}", changed.body);
        for from in ["ann@remote.test", "\"any body\"@REMOTE.test", "x%y@remote.test"] {
            assert_eq!(client.say(&format!("MAIL FROM:<{from}>")), 250);
            assert_eq!(client.say(&format!("RCPT TO:<{}>", inbox.address)), 550, "{from}");
            assert_eq!(client.say("RSET"), 250);
        }
        // Nor does another name on the envelope help, or none.
        for envelope in ["somebody@else.test", ""] {
            assert_eq!(client.say(&format!("MAIL FROM:<{envelope}>")), 250);
            assert_eq!(client.say(&format!("RCPT TO:<{}>", inbox.address)), 250);
            assert_eq!(client.say("DATA"), 354);
            assert_eq!(
                client.say("From: Ann <ann@Remote.test>\r\nSubject: Let me in\r\n\r\nPlease.\r\n."),
                550
            );
        }
        assert_eq!(inbox.list(&server).len(), 0);
        server.stop();
    }
}

/// rules: RECV-27
#[test]
fn a_full_plan_is_told_to_come_later() {
    for home in Home::on_each_engine() {
        let home = home.with("PLANS__DEVELOPER__STORAGE_BYTES", "3000");
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "developer");
        let mut client = Smtp::connect(server.smtp);
        let fits = message("Fits", &"words ".repeat(600));
        assert_eq!(client.send(&inbox.address, &fits).unwrap().0, 250, "the last one may go over");
        let (code, reply) = client.send(&inbox.address, &message("Too much", "no")).unwrap();
        assert_eq!(code, 452, "{reply}");
        assert_eq!(inbox.list(&server).len(), 1);
    }
}

/// Messages for several mailboxes at once, in any order, beside messages for one of them: nobody waits in a circle.
/// rules: RECV-2
#[test]
fn mail_to_several_mailboxes_gets_into_all_of_them() {
    const ROUNDS: usize = 12;
    for home in Home::on_each_engine() {
        let server = home.serve();
        let one = Inbox::new(&home, &server, "enterprise");
        let two = Inbox::add(&server, one.workspace.clone(), one.key.clone());
        let (a, b) = (one.address.as_str(), two.address.as_str());
        let ways: [&[&str]; 6] = [&[a, b], &[b, a], &[a], &[b], &[a, b], &[b, a, b]];
        std::thread::scope(|scope| {
            for (number, way) in ways.iter().enumerate() {
                let smtp = server.smtp;
                scope.spawn(move || {
                    let mut client = Smtp::connect(smtp);
                    for round in 0..ROUNDS {
                        let raw = message(&format!("Round {round} of {number}"), "for all");
                        let (code, reply) = client.send_to(way, &raw).unwrap();
                        assert_eq!(code, 250, "{reply}");
                    }
                });
            }
        });
        let count = |inbox: &Inbox| inbox.list(&server).len();
        assert_eq!((count(&one), count(&two)), (5 * ROUNDS, 5 * ROUNDS), "who is named twice gets it once");
    }
}

/// The program in docs/receiving.md, which must work as it stands there.
fn documented_hook() -> String {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/receiving.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    guide.split("```python deliver.py\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap().to_owned()
}

/// Delivers with the documented program, and gives what it printed.
fn deliver(server: &Server, secret: &str, to: &str, raw: &[u8]) -> Result<String, String> {
    let mut python = Command::new("python3")
        .args([
            "-c",
            &documented_hook(),
            &format!("http://{}", server.address),
            secret,
            "ann@remote.test",
            to,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(raw).unwrap();
    let done = super::Finished::from(python.wait_with_output().unwrap());
    if done.status.success() { Ok(done.stdout) } else { Err(done.stderr) }
}

/// rules: RECV-1
#[test]
fn the_signed_hook_takes_mail_as_documented() {
    for home in Home::on_each_engine() {
        let server = home.serve();
        let closed = request(server.address, "POST", "/inbound/v1/raw", &[], "x");
        assert_eq!(closed.status, 404, "without a secret there is no hook");
        server.stop();
        let home = home.with("INBOUND__HTTP_SECRET", "a long enough secret");
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let raw = message("By hook", "crooked words");
        let answer = deliver(&server, "a long enough secret", &inbox.address, &raw).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["ids"].as_array().unwrap().len(), 1, "{answer}");
        let mail = inbox.assert_readable(&server, "By hook", &raw, "crooked");
        assert_eq!(mail["sender_authentication"]["inbound_provider"], "mail_api");

        let wrong = deliver(&server, "some other secret", &inbox.address, &raw).unwrap_err();
        assert!(wrong.contains("401"), "{wrong}");
        let nobody =
            deliver(&server, "a long enough secret", "nobody-here@agents.localhost", &raw).unwrap_err();
        assert!(nobody.contains("422"), "{nobody}");
        let unsigned =
            request(server.address, "POST", "/inbound/v1/raw", &[("x-envelope-to", &inbox.address)], "x");
        assert_eq!(unsigned.status, 401);
        assert_eq!(inbox.list(&server).len(), 1);
    }
}

/// A process that does not serve the API, started and killed by hand.
struct Role(std::process::Child);

impl Role {
    fn start(home: &Home, roles: &str) -> Self {
        let mut child = home.command(&["serve", "--roles", roles]).stderr(Stdio::inherit()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("  Data ") {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "{roles} has ended");
        }
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        Self(child)
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Each role in a process of its own on one PostgreSQL: mail that one takes in wakes a wait on another.
/// rules: CLI-2
#[test]
fn roles_share_the_work_and_wake_each_other() {
    let Some(home) = Home::postgres() else { return };
    let server = home.serve();
    let inbox = Inbox::new(&home, &server, "enterprise");
    server.stop();
    let api_port = free_port();
    let api_home = home.with("HTTP__LISTEN", &format!("127.0.0.1:{api_port}"));
    let api = Role::start(&api_home, "api");
    let (smtp_port, lmtp_port) = (free_port(), free_port());
    let home = api_home
        .with("SMTP__LISTEN", &format!("127.0.0.1:{smtp_port}"))
        .with("SMTP__LMTP_LISTEN", &format!("127.0.0.1:{lmtp_port}"));
    let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    assert!(TcpStream::connect(at(smtp_port)).is_err(), "the API takes no mail");
    let smtp = Role::start(&home, "smtp");
    let _worker = Role::start(&home, "worker");
    let wait = |subject: &'static str| {
        let (key, path) = (inbox.key.clone(), format!("{}/emails/wait", inbox.path));
        std::thread::spawn(move || {
            let body = json!({ "subject": subject, "timeout_seconds": 20 }).to_string();
            let headers = [("x-api-key", key.as_str()), ("content-type", "application/json")];
            let answer = request(at(api_port), "POST", &path, &headers, &body);
            (Instant::now(), answer.status, answer.json())
        })
    };
    for (subject, hello, port) in [("By SMTP", "EHLO", smtp_port), ("By LMTP", "LHLO", lmtp_port)] {
        let waiting = wait(subject);
        std::thread::sleep(Duration::from_millis(500));
        let mut client = Smtp::try_connect(at(port), hello).unwrap();
        let (code, reply) = client.send(&inbox.address, &message(subject, "across processes")).unwrap();
        assert_eq!(code, 250, "{reply}");
        let acknowledged = Instant::now();
        let (woken, status, answer) = waiting.join().unwrap();
        assert_eq!((status, &answer["outcome"]), (200, &json!("matched")), "{answer}");
        let took = woken.saturating_duration_since(acknowledged);
        assert!(took < Duration::from_millis(1500), "it took {took:?}");
        let provider = if hello == "LHLO" { "mail_api" } else { "edge_routing" };
        assert_eq!(answer["email"]["sender_authentication"]["inbound_provider"], provider);
    }
    drop(smtp);
    assert!(Smtp::try_connect(at(smtp_port), "EHLO").is_err());
    drop(api);
}

/// A message that is coming in when the server is told to stop is still taken, and what was answered is kept.
/// rules: CLI-12
#[test]
fn sigterm_lets_a_message_in_flight_finish() {
    for home in Home::on_each_engine() {
        let mut server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let raw = message("Just in time", "before the end");
        let mut busy = Smtp::connect(server.smtp);
        for line in ["MAIL FROM:<ann@remote.test>", &format!("RCPT TO:<{}>", inbox.address)] {
            assert_eq!(busy.say(line), 250);
        }
        assert_eq!(busy.say("DATA"), 354);
        busy.write(&raw[..40]).unwrap();
        let mut idle = Smtp::connect(server.smtp);
        std::thread::sleep(Duration::from_millis(100));
        server.signal("TERM");
        assert_eq!(idle.reply().unwrap().0, 421, "those who wait are told");
        std::thread::sleep(Duration::from_millis(300));
        assert!(TcpStream::connect(server.smtp).is_err(), "nobody new comes in");
        busy.write(&raw[40..]).unwrap();
        assert_eq!(busy.say("."), 250);
        assert_eq!(busy.reply().unwrap().0, 421);
        let mut rest = Vec::new();
        assert_eq!(busy.stream.read_to_end(&mut rest).unwrap(), 0);
        assert_eq!(server.wait(Duration::from_secs(12)).code(), Some(0));
        let again = home.serve();
        inbox.assert_readable(&again, "Just in time", &raw, "before");
    }
}
