//! How long a message takes to the relay after a person has approved it in the browser, against one that is sent without a
//! review. One after the other, so that nothing queues.

use std::{net::SocketAddr, path::Path, time::Instant};

use serde_json::{Value, json};

use crate::{
    fill,
    load::Connection,
    measured_store::{Engine, MeasuredStore},
    options::Options,
    program::{self, Disk, RunningProgram},
    relay::relay_settings,
    report::{Figure, Target},
    service::Service,
    sink::Sink,
    stats::{percentile, spread},
};

/// Messages of a round, each way.
const MESSAGES: usize = 100;
/// Messages before the measurement.
const WARM_UP: usize = 20;

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let program = program::path(options);
    let mut figures = Vec::new();
    for engine in &options.engines {
        figures.push(measure_engine(*engine, &program, options).await);
    }
    figures
}

async fn measure_engine(engine: Engine, program: &Path, options: &Options) -> Figure {
    let store = MeasuredStore::new(engine).await;
    let service = Service::open(&store).await;
    let mailbox = fill::add_mailboxes(service.app.db(), &service.workspace, 1).await.remove(0);
    let (key, cookie) = (service.key.clone(), service.cookie().await);
    let workspace = service.workspace.to_string();
    service.app.meter().close().await;
    drop(service);
    let sink = Sink::start();
    let running = RunningProgram::start_with(program, &store, Disk::AsItIs, &relay_settings(&sink)).await;
    let desk = Desk { address: running.address, sink, key, cookie, workspace, mailbox };
    desk.measure_sends(WARM_UP).await;
    desk.measure_approvals(WARM_UP).await;
    let (mut sends, mut approvals, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds() {
        let (mut direct, mut approved) =
            (desk.measure_sends(MESSAGES).await, desk.measure_approvals(MESSAGES).await);
        ratios.push(percentile(&mut approved, 0.5) / percentile(&mut direct, 0.5));
        sends.extend(direct);
        approvals.extend(approved);
    }
    running.stop();
    store.remove().await;
    let (value, yardstick) = (percentile(&mut approvals, 0.5), percentile(&mut sends, 0.5));
    Figure {
        what: "an approval until the relay has the message : a send",
        engine: engine.name(),
        unit: "ms",
        value,
        yardstick,
        ratio: value / yardstick,
        spread: spread(&ratios),
        target: Some(Target::AtMost(2.0)),
        notes: vec![format!(
            "one at a time; 99 % of approvals within {:.1} ms, of sends within {:.1} ms",
            percentile(&mut approvals, 0.99),
            percentile(&mut sends, 0.99)
        )],
    }
}

/// A mailbox, who sends from it, and who decides about that.
struct Desk {
    address: SocketAddr,
    sink: Sink,
    key: String,
    cookie: String,
    workspace: String,
    mailbox: String,
}

impl Desk {
    /// The milliseconds of messages that leave by themselves.
    async fn measure_sends(&self, count: usize) -> Vec<f64> {
        self.set_policy(&json!({})).await;
        let mut connection = Connection::open(self.address).await;
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            self.sink.take();
            let started = Instant::now();
            self.send(&mut connection).await;
            all.push(self.arrival_after(started).await);
        }
        all
    }

    /// The milliseconds from an approval until its message is at the relay.
    async fn measure_approvals(&self, count: usize) -> Vec<f64> {
        self.set_policy(&json!({ "review": "all" })).await;
        let mut connection = Connection::open(self.address).await;
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let sent = self.send(&mut connection).await;
            let review = format!(
                "/api/v1/workspaces/{}/reviews/{}",
                self.workspace,
                sent["review_id"].as_str().expect("the message is in review")
            );
            let found = self.call(&mut connection, "GET", &review, None).await;
            self.sink.take();
            let started = Instant::now();
            let body = json!({ "digest": found["digest"] });
            self.call(&mut connection, "POST", &format!("{review}/approve"), Some(&body)).await;
            all.push(self.arrival_after(started).await);
        }
        all
    }

    async fn arrival_after(&self, started: Instant) -> f64 {
        self.sink.wait_for(1).await;
        let arrived = self.sink.take().into_iter().next().expect("a message has arrived");
        arrived.saturating_duration_since(started).as_secs_f64() * 1e3
    }

    async fn set_policy(&self, policy: &Value) {
        let mut connection = Connection::open(self.address).await;
        let path = format!("/api/v1/workspaces/{}/send-policy", self.workspace);
        self.call(&mut connection, "PUT", &path, Some(policy)).await;
    }

    async fn send(&self, connection: &mut Connection) -> Value {
        let body = json!({ "to": "ann@remote.test", "subject": "Numbers", "text": "The figures follow." });
        let path = format!("/api/v1/mailboxes/{}/emails", self.mailbox);
        let credential = format!("X-API-Key: {}", self.key);
        self.request(connection, ("POST", &path), &credential, Some(&body)).await
    }

    /// Calls as the person in the browser.
    async fn call(
        &self,
        connection: &mut Connection,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Value {
        let credential = format!("Cookie: {}\r\nOrigin: http://{}", self.cookie, self.address);
        self.request(connection, (method, path), &credential, body).await
    }

    async fn request(
        &self,
        connection: &mut Connection,
        (method, path): (&str, &str),
        credential: &str,
        body: Option<&Value>,
    ) -> Value {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{credential}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let (status, answer) = connection.ask(&request).await;
        let text = String::from_utf8_lossy(&answer);
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
        serde_json::from_slice(&answer).expect("an answer is JSON")
    }
}
