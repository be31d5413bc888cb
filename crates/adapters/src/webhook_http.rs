//! HTTP requests to URLs that others choose: webhooks, and the policies of recipients' domains.
//!
//! Such a URL must not reach this host and its network. A name is resolved once, every address is checked, and the
//! connection goes to one of these addresses; redirects to other hosts are not followed, no proxy of the
//! environment is used, and no connection is reused.

use std::{
    error::Error as StdError,
    fmt,
    future::Future,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use mail::{dns::Dns, mta_sts, net::is_public};
use operations::ports::{HttpClient, HttpExcerpt, HttpExchange, HttpFault, HttpPost, HttpResponse};
use reqwest::{
    Client, ClientBuilder, Response,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};
use url::{Host, Url};

use crate::http::LazyClient;

/// Timeout of a request, including DNS and the response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a response that are read and stored.
const MAX_EXCERPT_BYTES: usize = 1024;
/// The error of a client limited to this machine for any other address.
const LOOPBACK_ONLY: &str = "This client connects to this machine only.";
/// Maximum redirects, where any are followed.
const MAX_REDIRECTS: usize = 3;

/// The client for webhooks.
pub struct OutgoingHttp {
    resolver: Arc<Resolver>,
    time_limit: Duration,
    client: LazyClient,
}

impl OutgoingHttp {
    /// Resolves names with the given resolver, or the system's. Private addresses are called only if they are
    /// allowed.
    pub fn new(dns: Option<Dns>, allow_private: bool) -> Self {
        Self {
            resolver: Arc::new(Resolver { dns, allow_private, loopback_only: false }),
            time_limit: REQUEST_TIMEOUT,
            client: LazyClient::default(),
        }
    }

    /// The same, but connecting only to this machine: for tests of the address checks, which must stay harmless if
    /// a check is wrong.
    pub fn on_loopback_only(mut self) -> Self {
        let Resolver { dns, allow_private, .. } = &*self.resolver;
        self.resolver =
            Arc::new(Resolver { dns: dns.clone(), allow_private: *allow_private, loopback_only: true });
        self
    }

    /// The same with another timeout, for tests.
    pub fn with_time_limit(mut self, time_limit: Duration) -> Self {
        self.time_limit = time_limit;
        self
    }

    async fn client(&self) -> Result<&Client, HttpFault> {
        let resolver = SharedResolver(self.resolver.clone());
        let prepare = move |builder: ClientBuilder| {
            builder
                .redirect(redirect::Policy::none())
                .referer(false)
                .no_proxy()
                .pool_max_idle_per_host(0)
                .dns_resolver(resolver)
        };
        self.client.get(prepare).await.map_err(HttpFault::Network)
    }

    /// Literal addresses in a URL are never resolved, so they are checked here.
    fn check_literal(&self, url: &Url) -> Result<(), HttpFault> {
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::from(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::from(address)),
            _ => None,
        };
        if literal.is_some_and(|address| !self.resolver.may_call(address)) {
            return Err(HttpFault::Refused(ForbiddenAddress.to_string()));
        }
        if literal.is_some_and(|address| !self.resolver.may_connect(address)) {
            return Err(HttpFault::Network(LOOPBACK_ONLY.to_owned()));
        }
        Ok(())
    }

    async fn send(&self, request: HttpPost) -> Result<HttpExcerpt, HttpFault> {
        self.check_literal(&request.url)?;
        let mut call = self
            .client()
            .await?
            .post(request.url)
            .header("content-type", "application/json")
            .body(request.body);
        for (name, value) in request.headers {
            call = call.header(name, value);
        }
        let answer = call.send().await.map_err(|error| fault_of(&error))?;
        Ok(HttpExcerpt { status: answer.status().as_u16(), excerpt: excerpt(answer).await })
    }

    /// Makes a request and follows redirects on the same host.
    async fn follow(&self, request: HttpExchange) -> Result<HttpResponse, HttpFault> {
        let mut url = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            self.check_literal(&url)?;
            let client = self.client().await?;
            let mut call = if request.delete { client.delete(url.clone()) } else { client.post(url.clone()) };
            if !request.body.is_empty() {
                call = call.header("content-type", "application/json").body(request.body.clone());
            }
            for (name, value) in &request.headers {
                call = call.header(name, value);
            }
            let answer = call.send().await.map_err(|error| fault_of(&error))?;
            match redirect_target(&url, &answer)? {
                Some(next) => url = next,
                None => return read_whole(answer, &request).await,
            }
        }
        Err(HttpFault::Refused("It redirects too often.".to_owned()))
    }
}

/// The target of a redirect that keeps method and body. Nothing is sent to another host: the headers are secrets of
/// this one.
fn redirect_target(from: &Url, answer: &Response) -> Result<Option<Url>, HttpFault> {
    if !matches!(answer.status().as_u16(), 307 | 308) {
        return Ok(None);
    }
    let place = answer.headers().get("location").and_then(|place| place.to_str().ok());
    let next = place.and_then(|place| from.join(place).ok());
    let next = next.filter(|next| next.origin() == from.origin() && next.username().is_empty());
    next.map(Some).ok_or_else(|| HttpFault::Refused("It redirects to another host.".to_owned()))
}

/// Reads a response to its end, or as much as is needed.
async fn read_whole(mut answer: Response, request: &HttpExchange) -> Result<HttpResponse, HttpFault> {
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let kind = header("content-type").unwrap_or_default();
    let media_type = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let session = header("mcp-session-id").map(ToOwned::to_owned);
    let (status, streams) = (answer.status().as_u16(), media_type == "text/event-stream");
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| fault_of(&error))? {
        if body.len() + chunk.len() > request.max_bytes {
            return Err(HttpFault::Network("Its answer is too long.".to_owned()));
        }
        body.extend_from_slice(&chunk);
        if streams && (request.complete)(&body) {
            break;
        }
    }
    Ok(HttpResponse { status, media_type, session, body })
}

impl HttpClient for OutgoingHttp {
    fn post(
        &self,
        request: HttpPost,
    ) -> Pin<Box<dyn Future<Output = Result<HttpExcerpt, HttpFault>> + Send + '_>> {
        Box::pin(async move {
            let limit = self.time_limit;
            tokio::time::timeout(limit, self.send(request))
                .await
                .unwrap_or_else(|_| Err(Self::timed_out(limit)))
        })
    }

    fn exchange(
        &self,
        request: HttpExchange,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpFault>> + Send + '_>> {
        Box::pin(async move {
            let limit = request.timeout.min(self.time_limit * 3);
            tokio::time::timeout(limit, self.follow(request))
                .await
                .unwrap_or_else(|_| Err(Self::timed_out(limit)))
        })
    }
}

impl OutgoingHttp {
    fn timed_out(limit: Duration) -> HttpFault {
        HttpFault::Network(format!("There was no answer within {} seconds.", limit.as_secs()))
    }
}

impl mta_sts::Fetch for OutgoingHttp {
    async fn fetch(&self, url: &str) -> Option<Vec<u8>> {
        let mut answer = self.client().await.ok()?.get(url).send().await.ok()?;
        let is_text = answer
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.to_str().is_ok_and(|kind| kind.starts_with("text/plain")));
        if answer.status() != 200 || !is_text {
            return None;
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.ok()? {
            if bytes.len() + chunk.len() > mta_sts::MAX_POLICY_BYTES {
                return None;
            }
            bytes.extend_from_slice(&chunk);
        }
        Some(bytes)
    }
}

/// The start of a response. The rest is not read: the status decides.
async fn excerpt(mut answer: Response) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_EXCERPT_BYTES {
        match answer.chunk().await {
            Ok(Some(chunk)) => {
                bytes.extend_from_slice(&chunk[..chunk.len().min(MAX_EXCERPT_BYTES - bytes.len())]);
            }
            Ok(None) | Err(_) => break,
        }
    }
    // Neither database stores a NUL in a text.
    String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}")
}

/// Tells a forbidden address from failures that may be retried.
fn fault_of(error: &reqwest::Error) -> HttpFault {
    let mut cause: &dyn StdError = error;
    loop {
        if cause.is::<ForbiddenAddress>() {
            return HttpFault::Refused(ForbiddenAddress.to_string());
        }
        match cause.source() {
            Some(deeper) => cause = deeper,
            None => return HttpFault::Network(format!("There was no answer: {cause}.")),
        }
    }
}

/// The address must not be called.
#[derive(Debug)]
struct ForbiddenAddress;

impl fmt::Display for ForbiddenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The host does not lead to public addresses only.")
    }
}
impl StdError for ForbiddenAddress {}

/// Resolves names, and returns only addresses that may be called.
struct Resolver {
    /// The resolver; `None` for the system's.
    dns: Option<Dns>,
    allow_private: bool,
    /// Whether to connect only to this machine, whatever may be called.
    loopback_only: bool,
}

impl Resolver {
    /// Whether an allowed address is also connected to. This check comes last, and matters only in tests.
    fn may_connect(&self, address: IpAddr) -> bool {
        !self.loopback_only || address.is_loopback()
    }

    fn may_call(&self, address: IpAddr) -> bool {
        self.allow_private || is_public(address)
    }

    async fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, Box<dyn StdError + Send + Sync>> {
        let found: Vec<SocketAddr> = match &self.dns {
            None => tokio::net::lookup_host((name, 0)).await?.collect(),
            Some(dns) => {
                let (v4, v6) = tokio::join!(dns.ipv4(name), dns.ipv6(name));
                // Some name servers answer only one of the two queries.
                let (v4, v6) = if v4.is_err() && v6.is_err() {
                    (v4?, v6?)
                } else {
                    (v4.unwrap_or_default(), v6.unwrap_or_default())
                };
                let all = v4.into_iter().map(IpAddr::from).chain(v6.into_iter().map(IpAddr::from));
                all.map(|address| SocketAddr::new(address, 0)).collect()
            }
        };
        if found.is_empty() {
            return Err("the host has no address".into());
        }
        // One forbidden address is enough: a name that mixes both is an attempt to reach it.
        if !found.iter().all(|address| self.may_call(address.ip())) {
            return Err(Box::new(ForbiddenAddress));
        }
        if !found.iter().all(|address| self.may_connect(address.ip())) {
            return Err(LOOPBACK_ONLY.into());
        }
        Ok(found)
    }
}

/// The resolver, in the type of the HTTP client.
struct SharedResolver(Arc<Resolver>);

impl Resolve for SharedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.0.clone();
        Box::pin(async move {
            let found = resolver.addresses(name.as_str()).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
