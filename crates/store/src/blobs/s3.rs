//! Blobs as objects of an S3 bucket, under the same names as in a folder.
//!
//! Requests are signed in their URL (AWS signature version 4), so a URL is a secret while it is valid: none is logged
//! or part of an error. An object store acknowledges a write when it is durable.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use model::causes;
use reqwest::{Method, StatusCode};
use rusty_s3::actions::{ListObjectsV2, ListObjectsV2Response};
use rusty_s3::{Credentials, S3Action};
use url::Url;

use super::blob_name::BlobName;
use super::error::BlobError;
use super::frames::MAX_STORED_BYTES;
use super::listing::{BlobPage, ListedBlob};
use super::names::object_name;
use super::settings::S3Settings;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout of one operation with all its attempts.
const TOTAL_TIMEOUT: Duration = Duration::from_mins(1);

/// The delays before the second, third and fourth attempt.
const RETRY_DELAYS: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1600)];

/// How long a signed URL is valid: longer than all attempts take.
const SIGNATURE_TTL: Duration = Duration::from_mins(5);

/// The largest listing or error that is read.
const MAX_XML_BYTES: usize = 4 << 20;

/// A bucket of blobs.
pub(super) struct Bucket {
    settings: S3Settings,
    client: reqwest::Client,
}

struct Response {
    status: StatusCode,
    body: Bytes,
}

/// A request without a response.
struct Failure {
    reason: String,
    transient: bool,
}

impl Bucket {
    /// Prepares a client; nothing is sent yet.
    pub(super) fn open(settings: &S3Settings) -> Result<Self, BlobError> {
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TOTAL_TIMEOUT)
            // A redirect, or a proxy from the environment, would send signed URLs to hosts that were not configured.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(|error| BlobError::Location(explain(&error)))?;
        Ok(Self { settings: settings.clone(), client })
    }

    /// Writes an object; an older one of the same name is replaced atomically.
    pub(super) async fn write(&self, name: &str, content: Bytes) -> Result<(), BlobError> {
        let action = "store an object";
        let url = self.bucket().put_object(self.credentials(), &self.key(name)).sign(SIGNATURE_TTL);
        let answer = self.send(action, Method::PUT, url, content, MAX_XML_BYTES).await?;
        if answer.status.is_success() { Ok(()) } else { Err(answer.refusal(action)) }
    }

    /// Reads an object, if it exists.
    pub(super) async fn read(&self, name: &str) -> Result<Option<Bytes>, BlobError> {
        let action = "give an object";
        let url = self.bucket().get_object(self.credentials(), &self.key(name)).sign(SIGNATURE_TTL);
        let answer = self.send(action, Method::GET, url, Bytes::new(), MAX_STORED_BYTES).await?;
        match answer.status {
            StatusCode::OK => Ok(Some(answer.body)),
            _ if answer.says_no_object() => Ok(None),
            _ => Err(answer.refusal(action)),
        }
    }

    /// Whether an object exists.
    pub(super) async fn exists(&self, name: &str) -> Result<bool, BlobError> {
        let action = "look for an object";
        let url = self.bucket().head_object(self.credentials(), &self.key(name)).sign(SIGNATURE_TTL);
        let answer = self.send(action, Method::HEAD, url, Bytes::new(), MAX_XML_BYTES).await?;
        if answer.status != StatusCode::NOT_FOUND {
            return if answer.status.is_success() { Ok(true) } else { Err(answer.refusal(action)) };
        }
        // The response has no body that would tell a missing object from a missing bucket.
        let url = self.bucket().head_bucket(self.credentials()).sign(SIGNATURE_TTL);
        let answer = self.send(action, Method::HEAD, url, Bytes::new(), MAX_XML_BYTES).await?;
        if answer.status.is_success() { Ok(false) } else { Err(answer.refusal(action)) }
    }

    /// Deletes an object, if it exists.
    pub(super) async fn delete(&self, name: &str) -> Result<(), BlobError> {
        let action = "delete an object";
        let url = self.bucket().delete_object(self.credentials(), &self.key(name)).sign(SIGNATURE_TTL);
        let answer = self.send(action, Method::DELETE, url, Bytes::new(), MAX_XML_BYTES).await?;
        let gone = answer.status.is_success() || answer.says_no_object();
        if gone { Ok(()) } else { Err(answer.refusal(action)) }
    }

    /// Lists the blobs of a space by ascending name.
    pub(super) async fn list(
        &self,
        space: &str,
        after: Option<&BlobName>,
        limit: usize,
    ) -> Result<BlobPage, BlobError> {
        let within = self.key(&format!("{space}/"));
        let mut start = after.map(|name| object_name(space, name)).transpose()?.map(|name| self.key(&name));
        let mut blobs = Vec::new();
        // More than one round only if there are objects that are not ours.
        while blobs.len() < limit {
            let listing = self.listing(&within, start.as_deref(), limit - blobs.len()).await?;
            blobs.extend(listing.contents.iter().filter_map(|object| listed(object, &within)));
            let last = listing.contents.last().map(|object| object.key.clone());
            if listing.next_continuation_token.is_none() || last.is_none() {
                return Ok(BlobPage { blobs, next: None });
            }
            // The name instead of the token: it stays valid for the next page, however long that takes.
            start = last;
        }
        let next = blobs.last().map(|last| last.name.clone());
        Ok(BlobPage { blobs, next })
    }

    async fn listing(
        &self,
        within: &str,
        start: Option<&str>,
        limit: usize,
    ) -> Result<ListObjectsV2Response, BlobError> {
        let action = "list objects";
        let mut request = self.bucket().list_objects_v2(self.credentials());
        request.with_prefix(within);
        request.with_max_keys(limit);
        if let Some(start) = start {
            request.with_start_after(start);
        }
        let url = request.sign(SIGNATURE_TTL);
        let answer = self.send(action, Method::GET, url, Bytes::new(), MAX_XML_BYTES).await?;
        if !answer.status.is_success() {
            return Err(answer.refusal(action));
        }
        let parsed =
            str::from_utf8(&answer.body).ok().and_then(|text| ListObjectsV2::parse_response(text).ok());
        parsed.ok_or_else(|| BlobError::Service {
            action,
            reason: "the listing cannot be understood".to_owned(),
        })
    }

    fn bucket(&self) -> &rusty_s3::Bucket {
        &self.settings.bucket
    }

    #[expect(clippy::unnecessary_wraps, reason = "requests take credentials in this form")]
    fn credentials(&self) -> Option<&Credentials> {
        Some(&self.settings.credentials)
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.settings.prefix)
    }

    /// Sends a request and retries transient failures after a delay; every request here is idempotent.
    async fn send(
        &self,
        action: &'static str,
        method: Method,
        url: Url,
        body: Bytes,
        most: usize,
    ) -> Result<Response, BlobError> {
        let attempts = async {
            let mut pauses = RETRY_DELAYS.iter();
            loop {
                let outcome = self.attempt(method.clone(), url.clone(), body.clone(), most).await;
                let transient = match &outcome {
                    Ok(answer) => {
                        answer.status.is_server_error() || answer.status == StatusCode::TOO_MANY_REQUESTS
                    }
                    Err(failure) => failure.transient,
                };
                match pauses.next() {
                    Some(pause) if transient => {
                        tracing::warn!(
                            action,
                            delay_ms = pause.as_millis(),
                            "object store request failed; retrying"
                        );
                        tokio::time::sleep(*pause).await;
                    }
                    _ => return outcome,
                }
            }
        };
        match tokio::time::timeout(TOTAL_TIMEOUT, attempts).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(failure)) => Err(BlobError::Service { action, reason: failure.reason }),
            Err(_) => Err(BlobError::Service { action, reason: "no answer in time".to_owned() }),
        }
    }

    async fn attempt(&self, method: Method, url: Url, body: Bytes, most: usize) -> Result<Response, Failure> {
        let mut request = self.client.request(method.clone(), url);
        if method == Method::PUT {
            request = request.body(body);
        }
        let mut response = request.send().await.map_err(Failure::of)?;
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(Failure::of)? {
            if body.len() + chunk.len() > most {
                return Err(Failure { reason: "the answer is too large".to_owned(), transient: false });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Response { status: response.status(), body: body.freeze() })
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Bucket({}{})", self.bucket().base_url(), self.settings.prefix)
    }
}

impl Response {
    /// The code of an S3 error document, if the body is one.
    fn code(&self) -> Option<&str> {
        let text = str::from_utf8(&self.body).ok()?;
        let (code, _) = text.split_once("<Code>")?.1.split_once("</Code>")?;
        Some(code).filter(|code| code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    }

    /// Only the store itself may report a missing object: a 404 can also come from a wrong host or bucket.
    fn says_no_object(&self) -> bool {
        self.status == StatusCode::NOT_FOUND && self.code() == Some("NoSuchKey")
    }

    fn refusal(&self, action: &'static str) -> BlobError {
        let code = self.code().map(|code| format!(" ({code})")).unwrap_or_default();
        BlobError::Service { action, reason: format!("status {}{code}", self.status.as_u16()) }
    }
}

impl Failure {
    #[expect(clippy::needless_pass_by_value, reason = "it is the function for map_err")]
    fn of(error: reqwest::Error) -> Self {
        // A slow response has used up the timeout; a lost or refused connection has not.
        let transient = error.is_connect() || !error.is_timeout();
        Self { reason: explain(&error), transient }
    }
}

/// The causes of an error, without the signed URL.
fn explain(error: &reqwest::Error) -> String {
    let cause = error.source().map(|cause| format!(": {}", causes(cause))).unwrap_or_default();
    format!("the request failed{cause}")
}

/// A listed object as a blob, if its name is that of one.
fn listed(
    object: &rusty_s3::actions::list_objects_v2::ListObjectsContent,
    within: &str,
) -> Option<ListedBlob> {
    let path = object.key.strip_prefix(within)?;
    let (first, rest) = path.split_once('/')?;
    let (second, rest) = rest.split_once('/')?;
    let name = BlobName::parse(&format!("{first}{second}{rest}")).ok()?;
    let in_place = first.len() == 2 && second.len() == 2;
    let modified = object.last_modified.as_deref().and_then(micros);
    in_place.then_some(ListedBlob { name, stored_size: object.size.unwrap_or_default(), modified })
}

/// Parses a time such as `2026-02-28T09:30:00.250Z`, the only format of S3, as microseconds UTC.
fn micros(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let fraction: String =
        text.get(19..)?.strip_suffix('Z')?.chars().filter(char::is_ascii_digit).take(6).collect();
    let fraction = format!("{fraction:0<6}").parse::<i64>().ok()?;
    // Days since 1970 of a Gregorian date, with years that start in March so that the leap day comes last.
    let (shifted_year, shifted_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = shifted_year / 4 - shifted_year / 100 + shifted_year / 400;
    let days = shifted_year * 365 + leap_days + (shifted_month * 153 + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::micros;

    #[test]
    fn times_of_listings_are_understood() {
        assert_eq!(micros("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(micros("2020-12-01T20:43:11.794Z"), Some(1_606_855_391_794_000));
        assert_eq!(micros("2024-02-29T23:59:59.000Z"), Some(1_709_251_199_000_000));
        assert_eq!(micros("2000-03-01T00:00:00.123456789Z"), Some(951_868_800_123_456));
        for text in ["", "yesterday", "2020-12-01", "2020-12-01T20:43:11+01:00", "2020-1é-01T20:43:11Z"] {
            assert_eq!(micros(text), None, "{text}");
        }
    }
}
