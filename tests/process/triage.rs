//! `kill -9` while triagers are at work, with a model that takes its time: everything is done, and nothing twice.

use std::{
    collections::HashSet,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    Home, Server,
    mail::{Inbox, Smtp},
    text,
};

const MAILS: usize = 30;
const KILLS: usize = 4;

/// A model behind an OpenAI-compatible endpoint: it drafts and finds a task, a little later.
fn model() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let _ = answer(stream);
            });
        }
    });
    address
}

fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let question: Value = serde_json::from_str(asked["messages"][1]["content"].as_str().unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(150));
    let triagers: Vec<Value> = question["triagers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            json!({
                "id": one["id"], "summary": "Seen.", "reply": "Thank you.",
                "tasks": [{ "title": question["mail"]["subject"] }],
            })
        })
        .collect();
    let said =
        json!({ "category": "other", "is_urgent": false, "labels": [], "triagers": triagers }).to_string();
    let reply = json!({
        "id": "1", "object": "chat.completion", "created": 1, "model": "stub",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": said } }],
    })
    .to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        reply.len()
    );
    reader.get_mut().write_all(format!("{head}{reply}").as_bytes())
}

/// Everything of a list that comes in pages.
fn pages(server: &Server, inbox: &Inbox, path: &str, field: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = inbox.get(server, &format!("{path}?limit=100{cursor}"));
        all.extend(page[field].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// rules: TRIAGE-4, TRIAGE-6, TRIAGE-7, TRIAGE-12
#[test]
fn kills_while_triagers_work_lose_nothing_and_double_nothing() {
    let home =
        Home::sqlite().with("AI__BASE_URL", &format!("http://{}/v1", model())).with("AI__MODEL", "stub");
    let mut server = home.serve();
    let inbox = Inbox::new(&home, &server, "enterprise");
    let settings = json!({ "settings": { "autoDraft": { "enabled": true } } });
    assert_eq!(server.call(&inbox.key, "PUT", &inbox.path, &settings).status, 200);
    let finder = json!({
        "name": "Finder", "triggers": [{ "kind": "mail.received" }], "tasks": [{ "kind": "extract_tasks" }],
    });
    let made = server.call(&inbox.key, "POST", &format!("{}/task-triagers", inbox.path), &finder);
    assert_eq!(made.status, 201, "{}", made.body);
    let mut client = Smtp::connect(server.smtp);
    for number in 0..MAILS {
        let raw = format!(
            "From: Ann <ann@remote.test>\r\nTo: {}\r\nSubject: token-{number}\r\nMessage-ID: <{number}@remote.test>\r\n\r\nHello\r\n",
            inbox.address
        );
        assert_eq!(client.send(&inbox.address, raw.as_bytes()).unwrap().0, 250);
    }
    for _ in 0..KILLS {
        std::thread::sleep(Duration::from_millis(250));
        server.signal("KILL");
        server.wait(Duration::from_secs(5));
        server = home.serve();
    }
    let started = Instant::now();
    while pages(&server, &inbox, "/drafts", "drafts").len() < MAILS
        && started.elapsed() < Duration::from_mins(1)
    {
        std::thread::sleep(Duration::from_millis(200));
    }
    // Whatever is done twice has had the time for it.
    std::thread::sleep(Duration::from_secs(1));
    let drafts = pages(&server, &inbox, "/drafts", "drafts");
    let subjects: HashSet<String> = drafts.iter().map(|draft| text(draft, "subject")).collect();
    assert_eq!((drafts.len(), subjects.len()), (MAILS, MAILS), "an answer for each mail, and one");
    let tasks = pages(&server, &inbox, "/tasks", "tasks");
    let titles: HashSet<String> = tasks.iter().map(|task| text(task, "title")).collect();
    assert_eq!((tasks.len(), titles.len()), (MAILS, MAILS));
    assert_eq!(inbox.get(&server, "/emails?folder=inbox")["totalCount"], MAILS, "nothing is held any more");
    let events = format!("/api/v1/workspaces/{}/events?limit=500", inbox.workspace);
    let events = server.call(&inbox.key, "GET", &events, &Value::Null).json();
    let ended =
        events["events"].as_array().unwrap().iter().filter(|one| one["type"] == "triager.run_finished");
    assert_eq!(ended.count(), 2 * MAILS);
    let history = format!("/api/v1/workspaces/{}/usage/history?days=1", inbox.workspace);
    let history = server.call(&inbox.key, "GET", &history, &Value::Null).json();
    assert!(history.to_string().contains(&(2 * MAILS * 25).to_string()), "{history}");
    server.stop();
}
