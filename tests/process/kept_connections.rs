//! Connections that are kept: what a refused, late, huge or broken body does to the next call on the same connection.

use std::{
    convert::Infallible,
    fmt::Write as _,
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use bytes::Bytes;
use serde_json::json;

use super::{Home, Server};

/// How many refused calls each client makes; `AGENT_MAILBOX_REFUSALS` sets another number.
fn refusals() -> usize {
    std::env::var("AGENT_MAILBOX_REFUSALS").map_or(500, |text| text.parse().unwrap())
}

/// A server with a key of a busy workspace, and one of a workspace that may not call at all.
struct Place {
    server: Server,
    key: String,
    spent: String,
}

impl Place {
    fn new(home: &Home) -> Self {
        let server = home.serve();
        let new_key = |email: &str, plan: &str| home.create_key(&home.create_account(email, plan), &[]).1;
        let (key, spent) = (new_key("ada@example.com", "enterprise"), new_key("bob@example.com", "free"));
        Self { server, key, spent }
    }

    /// Calls that are refused by their head, each with the status it gets.
    fn refused(&self) -> Vec<(&'static str, &'static str, Option<&str>, u16)> {
        let (all, other) = ("/api/v1/mailboxes", "/api/v1/workspaces/ws_other/invites");
        vec![
            ("POST", all, None, 401),
            ("POST", other, Some(&self.key), 403),
            ("POST", "/nowhere", Some(&self.key), 404),
            ("PUT", all, Some(&self.key), 405),
            ("POST", all, Some(&self.spent), 429),
        ]
    }
}

fn home() -> Home {
    Home::sqlite().with("HTTP__ANONYMOUS_RPM", "1000000000").with("PLANS__FREE__RPM", "0")
}

/// One connection that is used for many calls.
struct Kept(TcpStream);

/// An answer on it, and whether it was the last one.
#[derive(Debug)]
struct Told {
    status: u16,
    closes: bool,
}

impl Kept {
    fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(stream)
    }

    fn begin(&mut self, method: &str, path: &str, key: Option<&str>, more: &str) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{more}");
        if let Some(key) = key {
            let _ = write!(head, "x-api-key: {key}\r\n");
        }
        head.push_str("\r\n");
        self.send(head.as_bytes());
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Reads one answer and no more than that.
    fn answer(&mut self) -> Told {
        let head = self.head();
        let field = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_owned())
        };
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = field("content-length:").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        Told { status, closes: field("connection:").is_some_and(|value| value == "close") }
    }

    fn head(&mut self) -> String {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            let count = self.0.read(&mut byte).unwrap_or_else(|error| {
                panic!("{error} after {:?}", String::from_utf8_lossy(&head));
            });
            assert!(count > 0, "no answer, but {:?}", String::from_utf8_lossy(&head));
            head.push(byte[0]);
        }
        String::from_utf8(head).unwrap().to_lowercase()
    }

    /// Whether the connection ends here, and in good order.
    fn is_over(&mut self) -> bool {
        self.0.read(&mut [0]).unwrap() == 0
    }

    fn works(&mut self) {
        self.begin("GET", "/healthz", None, "");
        assert_eq!(self.answer().status, 200);
    }
}

/// rules: HTTP-18
#[test]
fn a_refused_call_with_a_late_body_leaves_the_connection_whole() {
    let home = home();
    let place = Place::new(&home);
    let body = json!({ "name": "A" }).to_string();
    let json = "Content-Type: application/json\r\n";
    let whole = format!("{json}Content-Length: {}\r\n", body.len());
    let pieces = format!("{json}Transfer-Encoding: chunked\r\n");
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let mut kept = Kept::open(&place.server);
    for round in 0..10 {
        for (method, path, key, status) in place.refused() {
            for (head, body) in [(&whole, &body), (&pieces, &chunked)] {
                kept.begin(method, path, key, head);
                // Long enough for the refusal to be ready before anything of the body is there.
                std::thread::sleep(Duration::from_millis(10));
                kept.send(body.as_bytes());
                let told = kept.answer();
                assert_eq!((told.status, told.closes), (status, false), "round {round}: {method} {path}");
                kept.works();
            }
        }
    }
    // What is too much to be thrown away, though it comes in one go.
    let much = vec![b' '; 300 * 1024];
    kept.begin("POST", "/api/v1/mailboxes", None, &format!("{json}Content-Length: {}\r\n", much.len()));
    kept.send(&much);
    let told = kept.answer();
    assert!(told.status == 401 && told.closes, "{told:?}");
    assert!(kept.is_over());
}

/// rules: HTTP-18
#[test]
fn an_answer_before_a_body_that_does_not_end_says_that_it_is_the_last() {
    let home = home();
    let place = Place::new(&home);
    let json = "Content-Type: application/json\r\n";
    let huge = format!("{json}Content-Length: 100000000\r\n");
    let endless = format!("{json}Transfer-Encoding: chunked\r\n");
    let some = format!("{json}Content-Length: 100\r\n");
    // Refused by its length or by its head, with and without a part of the body, and one that stops half-way.
    for (key, head, sent, status) in [
        (Some(place.key.as_str()), &huge, "", 413),
        (None, &huge, "{", 401),
        (None, &endless, "1\r\n{\r\n", 401),
        (None, &some, "{", 401),
        (Some(place.key.as_str()), &endless, "no number\r\n", 400),
    ] {
        let mut kept = Kept::open(&place.server);
        let begun = Instant::now();
        kept.begin("POST", "/api/v1/mailboxes", key, head);
        kept.send(sent.as_bytes());
        let told = kept.answer();
        assert_eq!((told.status, told.closes), (status, true), "{head}{sent}");
        assert!(begun.elapsed() < Duration::from_secs(5));
        // The client goes on sending, as one does that reads when it is through, and is not cut off by that.
        for _ in 0..64 {
            kept.send(&[b' '; 16 * 1024]);
        }
        assert!(kept.is_over(), "{head}{sent}");
    }
}

/// What is sent before the answer is read: the answer is there all the same.
/// rules: HTTP-18
#[test]
fn an_answer_reaches_a_client_that_sends_everything_first() {
    let home = home();
    let place = Place::new(&home);
    let length = 8 * 1024 * 1024;
    for _ in 0..5 {
        let mut kept = Kept::open(&place.server);
        kept.begin("POST", "/api/v1/mailboxes", None, &format!("Content-Length: {length}\r\n"));
        kept.send(&vec![b' '; length]);
        let told = kept.answer();
        assert_eq!((told.status, told.closes), (401, true));
        assert!(kept.is_over());
    }
    // The same for a head that cannot be understood.
    let mut kept = Kept::open(&place.server);
    kept.send(b"GET /healthz\r\n");
    kept.send(&vec![b'x'; 1024 * 1024]);
    assert_eq!(kept.answer().status, 400);
    assert!(kept.is_over());
}

/// rules: HTTP-18
#[test]
fn a_body_is_asked_for_only_when_it_is_wanted() {
    let home = home();
    let place = Place::new(&home);
    let body = json!({ "name": "A" }).to_string();
    let head = format!(
        "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (method, path, key, status) in place.refused() {
        let mut kept = Kept::open(&place.server);
        let begun = Instant::now();
        kept.begin(method, path, key, &head);
        let told = kept.answer();
        assert_eq!((told.status, told.closes), (status, true), "{method} {path}");
        assert!(
            begun.elapsed() < Duration::from_millis(900),
            "nobody waits for a body that was not asked for"
        );
        assert!(kept.is_over());
    }
    let mut kept = Kept::open(&place.server);
    for _ in 0..3 {
        kept.begin("POST", "/api/v1/mailboxes", Some(&place.key), &head);
        assert!(kept.head().starts_with("http/1.1 100 "));
        kept.send(body.as_bytes());
        let told = kept.answer();
        assert_eq!((told.status, told.closes), (201, false));
    }
    // A client that hangs up in the middle, or resets, concerns nobody else.
    for _ in 0..20 {
        let mut gone = Kept::open(&place.server);
        gone.begin("POST", "/api/v1/mailboxes", Some(&place.key), "Content-Length: 1000\r\n");
        gone.send(b"{");
    }
    kept.works();
}

/// A body whose first piece comes when the refusal is ready already.
fn late(body: String) -> reqwest::Body {
    let piece = async {
        tokio::time::sleep(Duration::from_millis(2)).await;
        Ok::<_, Infallible>(Bytes::from(body))
    };
    reqwest::Body::wrap_stream(futures_util::stream::once(piece))
}

/// rules: HTTP-18, HTTP-8
#[test]
fn a_client_library_meets_no_broken_connection() {
    let home = home();
    let place = Place::new(&home);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for http2 in [false, true] {
        let builder = reqwest::Client::builder().pool_max_idle_per_host(1);
        let builder = if http2 { builder.http2_prior_knowledge() } else { builder.http1_only() };
        runtime.block_on(refuse_many(&place, builder.build().unwrap()));
    }
}

async fn refuse_many(place: &Place, client: reqwest::Client) {
    let url = |path: &str| format!("http://{}{path}", place.server.address);
    let cases = place.refused();
    for number in 0..refusals() {
        let (method, path, key, status) = cases[number % cases.len()];
        let mut request = client.request(method.parse().unwrap(), url(path));
        if let Some(key) = key {
            request = request.header("x-api-key", key);
        }
        let request =
            request.header("content-type", "application/json").body(late("{\"name\":\"A\"}".to_owned()));
        if number % 50 == 49 {
            // One that is given up while it is under way: its stream is reset, or its connection closed.
            let _ = tokio::time::timeout(Duration::from_millis(1), request.send()).await;
        } else {
            let answer = request.send().await.unwrap_or_else(|error| panic!("refusal {number}: {error:?}"));
            assert_eq!(answer.status().as_u16(), status, "{method} {path}");
            answer.bytes().await.unwrap();
        }
        let next = client.get(url("/api/v1/workspaces")).header("x-api-key", &place.key).send().await;
        let next = next.unwrap_or_else(|error| panic!("after refusal {number} ({method} {path}): {error:?}"));
        assert_eq!(next.status(), 200);
        next.bytes().await.unwrap();
    }
}
