//! Mail out of the real program: to another server over SMTP, at its time, and once, whatever is killed meanwhile.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Home, Server, mail::Inbox, text};

/// A mail that the other server took.
#[derive(Clone, Debug)]
pub struct Taken {
    pub from: String,
    pub to: Vec<String>,
    /// The content after dots were taken away.
    pub content: String,
}

/// Another mail server, which takes everything and remembers it.
#[derive(Clone)]
pub struct Sink {
    pub address: SocketAddr,
    taken: Arc<Mutex<Vec<Taken>>>,
}

impl Sink {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sink = Self { address: listener.local_addr().unwrap(), taken: Arc::default() };
        let taken = sink.taken.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let taken = taken.clone();
                // A client that goes away in the middle is no error here.
                std::thread::spawn(move || serve(stream, &taken).ok());
            }
        });
        sink
    }

    pub fn taken(&self) -> Vec<Taken> {
        self.taken.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, taken: &Mutex<Vec<Taken>>) -> std::io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut lines = BufReader::new(stream);
    writer.write_all(b"220 sink.test ESMTP\r\n")?;
    let (mut from, mut to) = (String::new(), Vec::new());
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim_end();
        let path = || line.split_once('<').and_then(|(_, rest)| rest.split_once('>')).unwrap().0.to_owned();
        let reply = match line.to_ascii_uppercase() {
            verb if verb.starts_with("EHLO") => "250-sink.test\r\n250-8BITMIME\r\n250 PIPELINING",
            verb if verb.starts_with("MAIL") => {
                (from, to) = (path(), Vec::new());
                "250 2.1.0 Ok"
            }
            verb if verb.starts_with("RCPT") => {
                to.push(path());
                "250 2.1.5 Ok"
            }
            verb if verb == "DATA" => {
                writer.write_all(b"354 Go on\r\n")?;
                let content = read_content(&mut lines)?;
                taken.lock().unwrap().push(Taken { from: from.clone(), to: to.clone(), content });
                "250 2.0.0 Taken"
            }
            verb if verb == "QUIT" => {
                writer.write_all(b"221 Bye\r\n")?;
                return Ok(());
            }
            _ => "250 Ok",
        };
        writer.write_all(format!("{reply}\r\n").as_bytes())?;
    }
}

fn read_content(lines: &mut impl BufRead) -> std::io::Result<String> {
    let mut content = Vec::new();
    loop {
        let mut line = Vec::new();
        if lines.read_until(b'\n', &mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        assert!(line.ends_with(b"\r\n"), "a bare line end: {line:?}");
        if line == b".\r\n" {
            return Ok(String::from_utf8_lossy(&content).into_owned());
        }
        content.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
    }
}

pub fn relaying(home: Home, sink: &Sink) -> Home {
    home.with("OUTBOUND__MODE", "relay")
        .with("OUTBOUND__RELAY_URL", &format!("smtp://{}", sink.address))
        .with("OUTBOUND__ALLOW_PRIVATE", "true")
}

// rules: SEND-6, SEND-12, SEND-13
#[test]
fn mail_goes_to_the_relay_as_it_was_written() {
    for home in Home::on_each_engine() {
        let sink = Sink::start();
        let home = relaying(home, &sink);
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let body = "First\n.\n..two\n.\r\nQUIT\r\n\u{e9}\rEnd";
        let input = json!({ "to": "Ann <ann@remote.test>", "bcc": "eve@remote.test", "subject": "Out", "text": body });
        let answer = server.call(&inbox.key, "POST", &format!("{}/emails", inbox.path), &input);
        assert_eq!(
            (answer.status, text(&answer.json(), "status")),
            (202, "sent".to_owned()),
            "{}",
            answer.body
        );
        let taken = sink.taken();
        assert_eq!(taken.len(), 1, "{taken:?}");
        assert_eq!(
            (taken[0].from.as_str(), taken[0].to.as_slice()),
            (inbox.address.as_str(), &["ann@remote.test".to_owned(), "eve@remote.test".to_owned()][..])
        );
        assert!(!taken[0].content.contains("eve@"), "{}", taken[0].content);
        let raw = inbox.raw(&server, &text(&answer.json(), "id"));
        assert_eq!(taken[0].content.as_bytes(), raw, "what is kept is what was sent");
        server.stop();
    }
}

pub fn schedule(server: &Server, inbox: &Inbox, to: &[&str], subject: &str, at: &str) {
    let input = json!({ "to": to, "subject": subject, "body": "x", "scheduled_send_at": at });
    let answer = server.call(&inbox.key, "POST", &format!("{}/scheduled-sends", inbox.path), &input);
    assert_eq!(answer.status, 201, "{}", answer.body);
}

pub fn seconds_from_now(server: &Server, inbox: &Inbox, seconds: i64) -> String {
    // The server's own clock, by the date of something that it makes.
    let draft = server.call(&inbox.key, "POST", &format!("{}/drafts", inbox.path), &json!({ "body": "now" }));
    let now: model::Timestamp = text(&draft.json(), "date").parse().unwrap();
    now.plus_seconds(seconds).to_string()
}

// rules: DRAFT-11, SEND-10
#[test]
fn schedules_leave_once_through_kills() {
    for home in Home::on_each_engine() {
        let sink = Sink::start();
        let home = relaying(home, &sink);
        let mut server = home.serve();
        let one = Inbox::new(&home, &server, "enterprise");
        let two = Inbox::add(&server, one.workspace.clone(), one.key.clone());
        // Late enough that all are written down before the first is due, on a busy machine too.
        let soon = seconds_from_now(&server, &one, 15);
        for number in 0..60 {
            schedule(&server, &one, &[&two.address, "out@remote.test"], &format!("token-{number}"), &soon);
        }
        for kill in 0..4 {
            // In the middle of things: some have left, others have not.
            let wanted = 5 + 12 * kill;
            let started = Instant::now();
            while sink.taken().len() < wanted && started.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(2));
            }
            server.signal("KILL");
            server.wait(Duration::from_secs(5));
            server = home.serve();
        }
        let started = Instant::now();
        let ids = |mails: &[Value]| -> HashMap<String, usize> {
            let mut found = HashMap::new();
            for mail in mails.iter().filter(|mail| mail["folder_id"] == "inbox") {
                *found.entry(text(mail, "subject")).or_default() += 1;
            }
            found
        };
        let out = || -> HashMap<String, usize> {
            let mut found = HashMap::new();
            for mail in sink.taken() {
                let subject = mail.content.lines().find_map(|line| line.strip_prefix("Subject: ")).unwrap();
                *found.entry(subject.trim().to_owned()).or_default() += 1;
            }
            found
        };
        // A node that was lost is believed to be alive for a while where there may be others.
        while (ids(&two.list(&server)).len() < 60 || out().len() < 60)
            && started.elapsed() < Duration::from_secs(90)
        {
            std::thread::sleep(Duration::from_millis(200));
        }
        let arrived = ids(&two.list(&server));
        assert_eq!(arrived.len(), 60);
        assert!(arrived.values().all(|count| *count == 1), "twice: {arrived:?}");
        let pending = out().len();
        assert_eq!(pending, 60);
        let mut message_ids: HashMap<String, String> = HashMap::new();
        for mail in sink.taken() {
            let line = |name: &str| {
                mail.content.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
            };
            let earlier = message_ids.insert(line("Subject: "), line("Message-ID: "));
            assert!(earlier.is_none_or(|earlier| earlier == line("Message-ID: ")), "one mail, one id");
        }
        server.stop();
    }
}
