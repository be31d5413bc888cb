//! A handler's reply: JSON, the bytes of a file, or a stream of events.

use std::{convert::Infallible, ops::RangeInclusive, pin::Pin};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use futures_util::Stream;
use operations::{Error, attachments::Download};
use tracing::Instrument;

/// The body of a successful response.
pub(crate) enum Reply {
    /// JSON, or no content.
    Json(Vec<u8>),
    /// A file, or the requested range of it.
    File(Download, Option<RangeInclusive<usize>>),
    /// Server-sent events.
    Events(EventStream),
    /// Server-sent events about work that runs while they are read, and continues when the client disconnects.
    Work(Work),
}

/// Server-sent events.
pub(crate) type EventStream = Pin<Box<dyn Stream<Item = Result<Bytes, Infallible>> + Send>>;

/// Whether the work succeeded, and its final event.
pub(crate) type WorkOutcome = (bool, Box<dyn FnOnce() + Send>);

/// Work with progress events. Its result, and so its charge, is known only at its end.
pub(crate) struct Work {
    /// The progress events.
    pub(crate) stream: EventStream,
    /// The work: whether it succeeded, and the final event to send once the charge is recorded.
    pub(crate) task: Pin<Box<dyn Future<Output = WorkOutcome> + Send>>,
}

impl Work {
    /// Starts the work, and returns its stream of events.
    pub(crate) fn start(self, ended: impl FnOnce(bool) + Send + 'static) -> EventStream {
        let task = self.task;
        let work = async move {
            let (succeeded, send_final) = task.await;
            ended(succeeded);
            send_final();
        };
        tokio::spawn(work.in_current_span());
        self.stream
    }
}

impl Reply {
    /// The part of a file that a `Range` header asks for. An unsatisfiable range is an error like any other, so
    /// that nothing is charged for it.
    pub(crate) fn within(self, range: Option<&str>) -> operations::Result<Self> {
        let Self::File(download, None) = self else { return Ok(self) };
        let part = part_of(&download, range)?;
        Ok(Self::File(download, part))
    }
}

fn part_of(download: &Download, range: Option<&str>) -> operations::Result<Option<RangeInclusive<usize>>> {
    let total = download.bytes.len();
    match range.map(|range| parse_range(range, total)) {
        Some(Ok(range)) => Ok(Some(range)),
        Some(Err(RangeFault::Unsatisfiable)) => Err(Error::range_not_satisfiable(total)),
        // Several ranges, or an invalid one: the whole file is a valid response too.
        Some(Err(RangeFault::Ignored)) | None => Ok(None),
    }
}

/// The range that a request asks for.
pub(crate) fn range(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::RANGE).and_then(|range| range.to_str().ok())
}

/// A file for a page, or the range that the browser asks for.
pub(crate) fn download(headers: &HeaderMap, download: Download) -> operations::Result<Response> {
    let part = part_of(&download, range(headers))?;
    Ok(file(download, part))
}

/// A file as a response: always a download unless its bytes are a harmless image, and never sniffed.
pub(crate) fn file(download: Download, part: Option<RangeInclusive<usize>>) -> Response {
    let Download { filename, media_type, bytes } = download;
    let total = bytes.len();
    let mut response = match part {
        Some(range) => {
            let shown = format!("bytes {}-{}/{total}", range.start(), range.end());
            let mut response = Response::new(Body::from(bytes.slice(range)));
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            insert(&mut response, header::CONTENT_RANGE, &shown);
            response
        }
        None => Response::new(Body::from(bytes.clone())),
    };
    let harmless = image_type(&bytes);
    let kind = harmless.unwrap_or_else(|| safe_type(&media_type));
    insert(&mut response, header::CONTENT_TYPE, kind);
    let disposition = if harmless.is_some() { "inline" } else { "attachment" };
    insert(&mut response, header::CONTENT_DISPOSITION, &content_disposition(disposition, &filename));
    insert(&mut response, header::ACCEPT_RANGES, "bytes");
    insert(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    insert(&mut response, header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox");
    response
}

/// A stream as a response.
pub(crate) fn events(stream: EventStream) -> Response {
    let mut response = Response::new(Body::from_stream(stream));
    insert(&mut response, header::CONTENT_TYPE, "text/event-stream");
    // Proxies that buffer responses would delay every event.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn insert(response: &mut Response, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// The declared type, unless a browser would run it or it is malformed.
fn safe_type(declared: &str) -> &str {
    let plain = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    match declared.split_once('/') {
        Some((kind, sub)) if plain(kind) && plain(sub) => declared,
        _ => "application/octet-stream",
    }
}

/// The type of an image that browsers show without running anything.
pub(crate) fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// A `Content-Disposition` file name for any client: ASCII first, then RFC 8187.
fn content_disposition(kind: &str, name: &str) -> String {
    let fallback: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || " ._-()[]".contains(c) { c } else { '_' })
        .collect();
    let encoded = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
    format!("{kind}; filename=\"{fallback}\"; filename*=UTF-8''{encoded}")
}

enum RangeFault {
    Unsatisfiable,
    Ignored,
}

/// One byte range. What the standard calls invalid, such as a last byte before the first, is ignored.
fn parse_range(text: &str, total: usize) -> Result<RangeInclusive<usize>, RangeFault> {
    let (unit, range) = text.split_once('=').ok_or(RangeFault::Ignored)?;
    if !unit.eq_ignore_ascii_case("bytes") || range.contains(',') {
        return Err(RangeFault::Ignored);
    }
    let (first, last) = range.split_once('-').ok_or(RangeFault::Ignored)?;
    let (start, stop) = match (number(first)?, number(last)?) {
        (None, None) => return Err(RangeFault::Ignored),
        (None, Some(suffix)) => (total.saturating_sub(suffix), usize::MAX),
        (Some(start), None) => (start, usize::MAX),
        (Some(start), Some(stop)) if start > stop => return Err(RangeFault::Ignored),
        (Some(start), Some(stop)) => (start, stop),
    };
    match total.checked_sub(1) {
        Some(end) if start <= end => Ok(start..=stop.min(end)),
        _ => Err(RangeFault::Unsatisfiable),
    }
}

/// A number in a range, if there is one; one that overflows is larger than any file.
fn number(text: &str) -> Result<Option<usize>, RangeFault> {
    let digits = text.trim();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(RangeFault::Ignored);
    }
    Ok((!digits.is_empty()).then(|| digits.parse().unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(range: Option<&str>, media_type: &str, bytes: &'static [u8]) -> Response {
        let mut headers = HeaderMap::new();
        if let Some(range) = range {
            headers.insert(header::RANGE, range.parse().unwrap());
        }
        let download = Download {
            filename: "résumé \"1\".pdf".to_owned(),
            media_type: media_type.to_owned(),
            bytes: Bytes::from_static(bytes),
        };
        super::download(&headers, download).unwrap_or_else(|refused| crate::error::response(&refused))
    }

    // rules: READ-20
    #[test]
    fn files_are_downloads_unless_harmless_images() {
        let response = answer(None, "text/html", b"<script>");
        assert_eq!(response.headers()["content-type"], "text/html");
        let disposition = response.headers()["content-disposition"].to_str().unwrap();
        assert_eq!(
            disposition,
            "attachment; filename=\"r_sum_ _1_.pdf\"; filename*=UTF-8''r%C3%A9sum%C3%A9%20%221%22%2Epdf"
        );
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        let response = answer(None, "text/html", b"GIF89a....");
        assert_eq!(response.headers()["content-type"], "image/gif");
        assert!(response.headers()["content-disposition"].to_str().unwrap().starts_with("inline"));
        let response = answer(None, "text/html\r\nx: y", b"x");
        assert_eq!(response.headers()["content-type"], "application/octet-stream");
    }

    // rules: READ-20
    #[test]
    fn ranges() {
        for (range, status, shown) in [
            ("bytes=0-1", 206, Some("bytes 0-1/5")),
            ("bytes=3-", 206, Some("bytes 3-4/5")),
            ("bytes=-2", 206, Some("bytes 3-4/5")),
            ("bytes=0-99", 206, Some("bytes 0-4/5")),
            ("Bytes=0-1", 206, Some("bytes 0-1/5")),
            ("bytes=-99", 206, Some("bytes 0-4/5")),
            ("bytes=4-99999999999999999999", 206, Some("bytes 4-4/5")),
            ("bytes=5-", 416, Some("bytes */5")),
            ("bytes=-0", 416, Some("bytes */5")),
            ("bytes=99999999999999999999-", 416, Some("bytes */5")),
            ("bytes=3-1", 200, None),
            ("bytes=9-7", 200, None),
            ("bytes=+0-1", 200, None),
            ("bytes=-", 200, None),
            ("bytes=", 200, None),
            ("bytes", 200, None),
            ("bytes=a-b", 200, None),
            ("bytes=0-1,3-4", 200, None),
            ("lines=1-2", 200, None),
        ] {
            let response = answer(Some(range), "text/plain", b"12345");
            assert_eq!(response.status(), status, "{range}");
            let found = response.headers().get("content-range").map(|value| value.to_str().unwrap());
            assert_eq!(found, shown, "{range}");
        }
        assert_eq!(answer(Some("bytes=0-"), "text/plain", b"").status(), 416);
        assert_eq!(answer(Some("bytes=1-0"), "text/plain", b"").status(), 200);
    }
}
