//! The request metrics of one endpoint. Handles are kept from the first request on, because looking up a metric by
//! name and labels costs more than counting.

use std::{sync::OnceLock, time::Instant};

use axum::http::StatusCode;
use metrics::{Counter, Histogram, counter, histogram};

/// Status classes as a label: exact statuses would multiply the series without more information.
const STATUS_CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// The metrics of an operation's requests.
pub(crate) struct RequestMetrics {
    operation: &'static str,
    requests: [OnceLock<Counter>; STATUS_CLASSES.len()],
    seconds: OnceLock<Histogram>,
}

impl RequestMetrics {
    pub(crate) const fn new(operation: &'static str) -> Self {
        Self { operation, requests: [const { OnceLock::new() }; _], seconds: OnceLock::new() }
    }

    /// Counts a request that was served.
    pub(crate) fn record(&self, status: StatusCode, started: Instant) {
        let class = class_of(status);
        let requests = || {
            let class = STATUS_CLASSES[class];
            counter!("http_requests_total", "operation" => self.operation, "status" => class)
        };
        self.requests[class].get_or_init(requests).increment(1);
        let seconds = || histogram!("http_request_seconds", "operation" => self.operation);
        self.seconds.get_or_init(seconds).record(started.elapsed().as_secs_f64());
    }
}

/// The index of a status class in the list.
const fn class_of(status: StatusCode) -> usize {
    match status.as_u16() {
        ..300 => 0,
        300..400 => 1,
        400..500 => 2,
        500.. => 3,
    }
}
