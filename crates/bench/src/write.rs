//! Durable writes at 32 connections against one.
//!
//! Each write makes a folder with a new name through the whole service and is answered when it is on disk. Many
//! mailboxes share the writes, so that no one nears its limit of folders and counting them stays cheap.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    fill,
    load::Load,
    options::Options,
    place::{Engine, Place},
    report::{Figure, Target},
    service::Service,
    turns::{Comparison, Side},
};

const CONNECTIONS: usize = 32;
const MAILBOXES: usize = 2000;
const TARGET: Target = Target::AtLeast(4.0);

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        let place = Place::new(*engine).await;
        figures.push(compare(*engine, options, &place).await);
        place.remove().await;
    }
    figures
}

async fn compare(engine: Engine, options: &Options, place: &Place) -> Figure {
    let service = Service::open(place).await;
    let mailboxes = fill::add_mailboxes(service.app.db(), &service.workspace, MAILBOXES).await;
    let address = service.listen().await;
    let one = load(address, &service.key, mailboxes);
    let many = Load { connections: CONNECTIONS, ..one.clone() };
    let comparison = Comparison {
        what: "writes at 32 connections : at 1",
        engine,
        target: TARGET,
        measured: Side { name: "32 connections", load: &many },
        yardstick: Side { name: "1 connection", load: &one },
    };
    comparison.run(options).await
}

/// Makes folders, in one mailbox after the other, each with a name of its own.
fn load(address: SocketAddr, key: &str, mailboxes: Vec<String>) -> Load {
    let (key, counter) = (key.to_owned(), AtomicUsize::new(0));
    let next_request = move |buffer: &mut Vec<u8>| {
        let n = counter.fetch_add(1, Ordering::Relaxed);
        let mailbox = &mailboxes[n % mailboxes.len()];
        let body = format!("{{\"name\":\"Folder {n}\"}}");
        let mut text = String::with_capacity(400);
        let _ = write!(
            text,
            "POST /api/v1/mailboxes/{mailbox}/folders HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        buffer.extend_from_slice(text.as_bytes());
    };
    Load { address, connections: 1, next_request: Arc::new(next_request), expected_status: 201 }
}
