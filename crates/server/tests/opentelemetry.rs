//! The program with the feature `opentelemetry`, and a collector for its spans.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

const TIMEOUT: Duration = Duration::from_mins(1);
/// The trace and the span of a caller.
const TRACE: [u8; 16] =
    [0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36];
const PARENT: [u8; 8] = [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7];

/// A request to the collector.
struct Post {
    head: String,
    body: Vec<u8>,
}

/// Accepts OTLP requests, answers each with success, and forwards them to the test.
fn collector() -> (SocketAddr, Receiver<Post>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let tell = tell.clone();
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.unwrap());
                let mut head = String::new();
                while reader.read_line(&mut head).unwrap() > 2 {}
                let head = head.to_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                let mut body = vec![0; length.parse().unwrap()];
                reader.read_exact(&mut body).unwrap();
                let answer =
                    "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
                let _ = tell.send(Post { head, body });
            });
        }
    });
    (address, told)
}

/// The program, killed when the test ends.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program, and returns the address it listens on, from its log.
fn start(folder: &Path, collector: SocketAddr) -> (Program, SocketAddr) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_agent-mailbox"))
        .arg("serve")
        .current_dir(folder)
        .env("AGENT_MAILBOX__HTTP__LISTEN", "127.0.0.1:0")
        .env("AGENT_MAILBOX__SMTP__LISTEN", "127.0.0.1:0")
        .env("AGENT_MAILBOX__LOG__FORMAT", "json")
        .env("AGENT_MAILBOX__TELEMETRY__OTLP_ENDPOINT", format!("http://{collector}"))
        .env("AGENT_MAILBOX__TELEMETRY__SERVICE_NAME", "mailbox-under-test")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let program = Program(child);
    let (tell, told) = channel();
    // Reads on until the program ends, so that its log is not blocked.
    thread::spawn(move || {
        for line in log.lines().map_while(Result::ok) {
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            if let Some(address) = line["address"].as_str() {
                let _ = tell.send(address.parse().unwrap());
            }
        }
    });
    let address = told.recv_timeout(TIMEOUT).expect("the program tells where it listens");
    (program, address)
}

fn has(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

// rules: OBS-4
#[test]
fn the_span_of_a_request_arrives_in_the_trace_of_its_caller() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, posts) = collector();
    let (program, address) = start(folder.path(), collector);
    let (trace, parent) = (u128::from_be_bytes(TRACE), u64::from_be_bytes(PARENT));
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET /api/v1/mailboxes HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-request-id: the-request\r\nx-api-key: not-a-key\r\ntraceparent: 00-{trace:032x}-{parent:016x}-01\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");

    let started = Instant::now();
    let post = loop {
        let left = TIMEOUT.saturating_sub(started.elapsed());
        let post = posts.recv_timeout(left).expect("the span of the request arrives");
        assert!(post.head.starts_with("post /v1/traces "), "{}", post.head);
        assert!(post.head.contains("content-type: application/x-protobuf"), "{}", post.head);
        assert!(!has(&post.body, b"not-a-key"), "a key is exported");
        if has(&post.body, b"the-request") {
            break post;
        }
    };
    // Fields 1 and 4 of an OTLP span: its trace, and its parent span.
    assert!(has(&post.body, &[&[0x0a, 16][..], &TRACE].concat()), "the trace of the caller");
    assert!(has(&post.body, &[&[0x22, 8][..], &PARENT].concat()), "the span of the caller");
    for part in ["mailbox-under-test", "request", "operation", "listMailboxes", "status"] {
        assert!(has(&post.body, part.as_bytes()), "{part} is missing");
    }
    drop(program);
}
