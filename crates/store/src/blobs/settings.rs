//! The configured location of the blob store.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rusty_s3::{Credentials, UrlStyle};
use url::Url;

use super::error::BlobError;

const DEFAULT_REGION: &str = "us-east-1";

/// A location of blobs.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a process")]
pub enum BlobLocation {
    /// A folder of this machine.
    Directory(PathBuf),
    /// A bucket of an object store.
    S3(S3Settings),
}

impl BlobLocation {
    /// Reads `s3://…` as [`S3Settings::parse`] does, and anything else as the path of a folder (`file://` is allowed).
    pub fn parse(text: &str, environment: &BTreeMap<String, String>) -> Result<Self, BlobError> {
        if text.starts_with("s3:") {
            return S3Settings::parse(text, environment).map(Self::S3);
        }
        if text.starts_with("file:") {
            let path = Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
            return path
                .map(Self::Directory)
                .ok_or_else(|| refusal("a file URL looks like file:///absolute/path"));
        }
        // A mistyped scheme must not become a folder of that name.
        if text.is_empty() || text.contains("://") {
            return Err(refusal("give a folder, file:///folder or s3://bucket"));
        }
        Ok(Self::Directory(PathBuf::from(text)))
    }
}

/// How to reach a bucket; the secret is hidden from `Debug` and zeroed when dropped.
#[derive(Clone, Debug)]
pub struct S3Settings {
    pub(super) bucket: rusty_s3::Bucket,
    pub(super) credentials: Credentials,
    /// Empty, or segments that each end with a slash.
    pub(super) prefix: String,
}

/// The options after the question mark.
#[derive(Default)]
struct Options {
    region: Option<String>,
    tls: Option<bool>,
    path_style: Option<bool>,
}

impl S3Settings {
    /// Parses one of two forms.
    ///
    /// `s3://ACCESS:SECRET@host:port/bucket/prefix` is complete; in the secret, `/` is written `%2F`.
    /// `s3://bucket/prefix` takes `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_ENDPOINT_URL` (else Amazon) and
    /// `AWS_REGION` from the given environment. Options are `region`, `path_style=true|false` (by default true unless
    /// the endpoint is Amazon's) and, in the first form, `tls=false` for plain HTTP.
    ///
    /// The credentials need permission to list the bucket: without it Amazon reports a missing object as forbidden.
    pub fn parse(text: &str, environment: &BTreeMap<String, String>) -> Result<Self, BlobError> {
        let url = Url::parse(text)
            .ok()
            .filter(|url| url.scheme() == "s3" && url.host_str().is_some_and(|host| !host.is_empty()))
            .ok_or_else(|| {
                refusal("an object store looks like s3://bucket/prefix; write / in a secret as %2F")
            })?;
        let options = Options::of(&url)?;
        let region =
            options.region.as_deref().or(variable(environment, "AWS_REGION")).unwrap_or(DEFAULT_REGION);
        let mut segments = url.path().split('/').filter(|segment| !segment.is_empty());
        let (endpoint, bucket, credentials) = if let Some(secret) = url.password() {
            let credentials = Credentials::new(decode(url.username())?, decode(secret)?);
            (named_endpoint(&url, options.tls)?, segments.next().unwrap_or_default(), credentials)
        } else {
            if !url.username().is_empty() || url.port().is_some() || options.tls.is_some() {
                return Err(refusal(
                    "a host needs ACCESS:SECRET@ before it; port and tls belong to AWS_ENDPOINT_URL",
                ));
            }
            let endpoint = ambient_endpoint(environment, region)?;
            (endpoint, url.host_str().unwrap_or_default(), ambient_credentials(environment)?)
        };
        let prefix: Vec<&str> = segments.collect();
        if ![region, bucket].iter().chain(&prefix).all(|name| is_plain(name)) {
            return Err(refusal(
                "region, bucket and prefix are letters, digits, dots, dashes and underscores",
            ));
        }
        let amazon = endpoint.host_str().is_some_and(|host| host.ends_with(".amazonaws.com"));
        let style =
            if options.path_style.unwrap_or(!amazon) { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let bucket = rusty_s3::Bucket::new(endpoint, style, bucket.to_owned(), region.to_owned())
            .map_err(|error| refusal(&format!("bucket or endpoint: {error}")))?;
        let prefix = prefix.into_iter().flat_map(|segment| [segment, "/"]).collect();
        Ok(Self { bucket, credentials, prefix })
    }

    /// The name of the bucket.
    pub fn bucket_name(&self) -> &str {
        self.bucket.name()
    }
}

impl Options {
    fn of(url: &Url) -> Result<Self, BlobError> {
        let mut options = Self::default();
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "region" => options.region = Some(value.into_owned()),
                "tls" => options.tls = Some(is_true(&value)?),
                "path_style" => options.path_style = Some(is_true(&value)?),
                _ => return Err(refusal("the options are region, tls and path_style")),
            }
        }
        Ok(options)
    }
}

fn refusal(reason: &str) -> BlobError {
    BlobError::Location(reason.to_owned())
}

fn is_true(value: &str) -> Result<bool, BlobError> {
    value.parse().map_err(|_| refusal("tls and path_style are true or false"))
}

/// A variable that is set and not empty.
fn variable<'a>(environment: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// The endpoint of a location that names its host.
fn named_endpoint(url: &Url, tls: Option<bool>) -> Result<Url, BlobError> {
    let scheme = if tls.unwrap_or(true) { "https" } else { "http" };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let host = url.host_str().unwrap_or_default();
    Url::parse(&format!("{scheme}://{host}{port}")).map_err(|_| refusal("the host makes no URL"))
}

/// The endpoint of a location that names only its bucket.
fn ambient_endpoint(environment: &BTreeMap<String, String>, region: &str) -> Result<Url, BlobError> {
    let endpoint = match variable(environment, "AWS_ENDPOINT_URL") {
        Some(endpoint) => Url::parse(endpoint),
        None => Url::parse(&format!("https://s3.{region}.amazonaws.com")),
    };
    endpoint.map_err(|_| refusal("AWS_ENDPOINT_URL or AWS_REGION makes no URL"))
}

fn ambient_credentials(environment: &BTreeMap<String, String>) -> Result<Credentials, BlobError> {
    let of = |name| variable(environment, name).ok_or_else(|| refusal(&format!("{name} is not set")));
    Ok(Credentials::new(of("AWS_ACCESS_KEY_ID")?, of("AWS_SECRET_ACCESS_KEY")?))
}

/// Whether a text can be a path segment without a special meaning.
fn is_plain(segment: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=255).contains(&segment.len()) && !segment.starts_with('.') && segment.bytes().all(allowed)
}

/// Undoes percent-encoding, as in the user part of a URL.
fn decode(text: &str) -> Result<String, BlobError> {
    let invalid = || refusal("the credentials are not percent-encoded correctly");
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (digits, tail) = rest.split_first_chunk::<2>().ok_or_else(invalid)?;
        let digits = str::from_utf8(digits).map_err(|_| invalid())?;
        decoded.push(u8::from_str_radix(digits, 16).map_err(|_| invalid())?);
        rest = tail;
    }
    String::from_utf8(decoded).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn keys() -> BTreeMap<String, String> {
        environment(&[("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_SECRET_ACCESS_KEY", "hush")])
    }

    #[test]
    fn a_location_can_say_everything_itself() {
        let text = "s3://AKIA:a%2Fb+c@127.0.0.1:9000/mail/one/two?region=eu-west-1&tls=false";
        let settings = S3Settings::parse(text, &BTreeMap::new()).unwrap();
        assert_eq!(settings.bucket.base_url().as_str(), "http://127.0.0.1:9000/mail/");
        assert_eq!((settings.bucket.region(), settings.prefix.as_str()), ("eu-west-1", "one/two/"));
        assert_eq!((settings.credentials.key(), settings.credentials.secret()), ("AKIA", "a/b+c"));
        assert!(!format!("{settings:?}").contains("a/b"), "the secret is not shown");

        let text = "s3://AKIA:hush@objects.example/mail?path_style=false";
        let settings = S3Settings::parse(text, &BTreeMap::new()).unwrap();
        assert_eq!(settings.bucket.base_url().as_str(), "https://mail.objects.example/");
        assert_eq!(settings.prefix, "");
    }

    #[test]
    fn a_location_can_lean_on_the_environment() {
        let mut environment = keys();
        let settings = S3Settings::parse("s3://mail/one", &environment).unwrap();
        assert_eq!(settings.bucket.base_url().as_str(), "https://mail.s3.us-east-1.amazonaws.com/");
        environment.insert("AWS_REGION".to_owned(), "eu-north-1".to_owned());
        let settings = S3Settings::parse("s3://mail/one?path_style=true", &environment).unwrap();
        assert_eq!(settings.bucket.base_url().as_str(), "https://s3.eu-north-1.amazonaws.com/mail/");
        environment.insert("AWS_ENDPOINT_URL".to_owned(), "http://localhost:9000".to_owned());
        let settings = S3Settings::parse("s3://mail/one", &environment).unwrap();
        assert_eq!(settings.bucket.base_url().as_str(), "http://localhost:9000/mail/");
        assert_eq!((settings.bucket.region(), settings.prefix.as_str()), ("eu-north-1", "one/"));
    }

    #[test]
    fn senseless_locations_are_refused_without_showing_secrets() {
        for text in [
            "s3:mail",
            "s3://",
            "s3:///mail",
            "s3://AKIA:hush@host",
            "s3://AKIA:hush@host/mail?tls=perhaps",
            "s3://AKIA:hush@host/mail?colour=red",
            "s3://AKIA:hush@host/mail?region=eu%2Fwest",
            "s3://AKIA:hush%ZZ@host/mail",
            "s3://AKIA:hush/1@host/mail",
            "s3://AKIA@host/mail",
            "s3://host:9000/mail",
            "s3://mail?tls=false",
            "s3://mail/%2e%2e%2fother",
            "s3://AKIA:hush@host/mail/.hidden",
            "https://host/mail",
            "file://host/folder",
            "",
        ] {
            let error = BlobLocation::parse(text, &keys()).unwrap_err().to_string();
            assert!(!error.contains("hush"), "{text}: {error}");
        }
        let error = S3Settings::parse("s3://mail", &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains("AWS_ACCESS_KEY_ID is not set"), "{error}");
    }

    #[test]
    fn folders_are_paths_or_file_urls() {
        for (text, expected) in
            [("data/blobs", "data/blobs"), ("/var/b", "/var/b"), ("file:///var/a%20b", "/var/a b")]
        {
            let location = BlobLocation::parse(text, &BTreeMap::new()).unwrap();
            assert!(matches!(location, BlobLocation::Directory(path) if path == *expected), "{text}");
        }
    }
}
