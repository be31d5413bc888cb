//! The console's list of conversations in a large mailbox.

use crate::{
    load::{Connection, End, Load},
    measured_store::{Engine, MeasuredStore},
    messages::{self, Filling},
    options::Options,
    report::Figure,
    service::Service,
    turns,
};

const MILLISECONDS: f64 = 30.0;
const WARM_UP: u64 = 20;
/// Pages per round, so that all rounds stay below the rate limit of one address.
const PAGES: u64 = 100;

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        figures.push(measure_engine(*engine, options).await);
    }
    figures
}

/// The whole page is waited for, so the first byte comes sooner.
async fn measure_engine(engine: Engine, options: &Options) -> Figure {
    let store = MeasuredStore::new(engine).await;
    let service = Service::open(&store).await;
    let mailbox = messages::fill(&service, Filling::new(options.many_messages())).await;
    let (address, cookie) = (service.listen().await, service.cookie().await);
    let request = format!(
        "GET /console/m/{mailbox}/f/inbox HTTP/1.1\r\nHost: {address}\r\nAccept: text/html\r\nCookie: {cookie}\r\n\r\n"
    );
    let (status, page) = Connection::open(address).await.ask(&request).await;
    let page = String::from_utf8_lossy(&page);
    let newest = format!("Invoice {} of your order", options.many_messages());
    assert!(status == 200 && page.contains(&newest), "the newest message is on the page: {status} {page}");
    let load = Load::of_one(address, 1, request);
    load.run(End::AfterRequests(WARM_UP)).await;
    let what = "list of conversations : 30 ms";
    let mut figure =
        turns::within(what, engine, MILLISECONDS, &load, (options.rounds(), End::AfterRequests(PAGES))).await;
    let (kilobytes, messages) = (page.len() / 1000, options.many_messages());
    figure.notes.push(format!("{messages} messages; the whole page, {kilobytes} KB before compression"));
    store.remove().await;
    figure
}
