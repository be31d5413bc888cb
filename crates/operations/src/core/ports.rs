//! Ports to the outside world: clock, entropy, next hops, language models, embeddings, a chat bot, and HTTP requests
//! to addresses that customers chose. Each trait has one real implementation and one for tests.

use std::{net::SocketAddr, pin::Pin, time::Duration};

use bytes::Bytes;
use mail::Encryption;
use model::Timestamp;
use pay::{facilitator::Settlement, x402::Resource};
use url::Url;

/// The clock.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
    /// What the clock of this machine says, which may be wrong.
    fn machine_now(&self) -> Timestamp {
        self.now()
    }
    /// Microseconds by which the machine's clock is ahead of the one that is followed, if another one is.
    fn machine_ahead(&self) -> i64 {
        0
    }
    /// Corrects the clock, if it follows the database's.
    fn correct(&self, _reading: &ClockReading) {}
}

/// The database's clock, and the others right before and after it was read.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// The database's.
    pub database: Timestamp,
    /// The process's, before.
    pub before: Timestamp,
    /// The process's, after.
    pub after: Timestamp,
    /// The machine's, before.
    pub machine_before: Timestamp,
    /// The machine's, after.
    pub machine_after: Timestamp,
}

impl ClockReading {
    /// Microseconds by which the process's clock is certainly ahead of the database's; negative if it is behind.
    pub fn ahead(&self) -> i64 {
        certainly_ahead(self.database, self.before, self.after)
    }

    /// The same of the machine's clock.
    pub fn machine_ahead(&self) -> i64 {
        certainly_ahead(self.database, self.machine_before, self.machine_after)
    }
}

/// Nothing is certain about the time between the question and its answer.
fn certainly_ahead(database: Timestamp, before: Timestamp, after: Timestamp) -> i64 {
    let (earliest, latest) = (before.min(after).as_micros(), before.max(after).as_micros());
    let database = database.as_micros();
    database.clamp(earliest, latest).saturating_sub(database)
}

/// The source of random bytes.
pub trait Entropy: Send + Sync {
    /// Fills a buffer with cryptographically secure random bytes.
    fn fill(&self, buffer: &mut [u8]);
}

/// A message to be delivered to another server.
#[derive(Clone, Debug)]
pub struct Handover {
    /// The domain of the recipients.
    pub domain: String,
    /// The envelope sender; `None` for the null sender.
    pub sender: Option<String>,
    /// The recipients, all of one domain unless they go to a relay.
    pub recipients: Vec<String>,
    /// The message as it goes over the wire, before dot-stuffing.
    pub message: Bytes,
}

/// The outcome of a delivery attempt for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandoverOutcome {
    /// The server accepted it.
    Accepted(String),
    /// A permanent failure.
    Refused(String),
    /// A temporary failure.
    Deferred(String),
    /// No server could be reached, so other messages to this domain need not be tried at once.
    Unreachable(String),
}

/// The server that answered, or that could not be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub host: String,
    /// Its socket address.
    pub address: Option<SocketAddr>,
    /// How the connection was encrypted, if it was.
    pub tls: Option<Encryption>,
    /// Whether its certificate was verified.
    pub verified: bool,
}

impl Peer {
    /// The encryption of the connection, for logs.
    pub fn encryption(&self) -> String {
        let Some(tls) = self.tls else { return "none".to_owned() };
        format!("{tls} {}", if self.verified { "verified" } else { "unverified" })
    }
}

/// The result of a delivery attempt.
#[derive(Clone, Debug)]
pub struct HandoverResult {
    /// One for each recipient, in their order.
    pub outcomes: Vec<HandoverOutcome>,
    /// The server that answered, if one did.
    pub peer: Option<Peer>,
}

/// Delivers messages to other servers.
pub trait NextHop: Send + Sync {
    /// Attempts a delivery.
    fn hand_over(&self, handover: Handover) -> Pin<Box<dyn Future<Output = HandoverResult> + Send + '_>>;
}

/// A payment for a facilitator.
#[derive(Clone)]
pub struct SettleRequest {
    /// The requested terms.
    pub terms: pay::Terms,
    /// The resource that is paid for.
    pub resource: Resource,
    /// The signed payment.
    pub payment: pay::Payment,
}

/// A facilitator's verdict on a payment before it is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be settled.
    Good,
    /// It cannot.
    Bad(String),
    /// The facilitator did not answer.
    Unknown(String),
}

/// Settles payments on their chain, each in bounded time.
pub trait Facilitator: Send + Sync {
    /// Whether a payment can be settled.
    fn verify<'a>(&'a self, request: &'a SettleRequest)
    -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;
    /// Settles a payment; idempotent.
    fn settle<'a>(
        &'a self,
        request: &'a SettleRequest,
    ) -> Pin<Box<dyn Future<Output = Settlement> + Send + 'a>>;
    /// Whether it is the ledger of a test network, without a chain.
    fn is_ledger(&self) -> bool {
        false
    }
}

/// The machine's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(jiff::Timestamp::now().as_microsecond())
    }
}

/// The machine's random number generator.
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(
        clippy::expect_used,
        reason = "without random numbers no secret can be made; going on would be worse"
    )]
    fn fill(&self, buffer: &mut [u8]) {
        getrandom::fill(buffer).expect("the system gives random numbers");
    }
}

/// Makes HTTP requests to addresses that customers chose.
pub trait HttpClient: Send + Sync {
    /// Posts JSON and reads the beginning of the response, within a bounded time, without following redirects.
    fn post(
        &self,
        request: HttpPost,
    ) -> Pin<Box<dyn Future<Output = Result<HttpExcerpt, HttpFault>> + Send + '_>>;
    /// Makes a request and reads the whole response, within the request's bounds. Redirects are followed on the same
    /// host only, since the headers are meant for it.
    fn exchange(
        &self,
        request: HttpExchange,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpFault>> + Send + '_>>;
}

/// A request whose whole response is read.
#[derive(Clone)]
pub struct HttpExchange {
    /// The URL.
    pub url: Url,
    /// Whether the method is DELETE instead of POST.
    pub delete: bool,
    /// Headers beside the default ones.
    pub headers: Vec<(String, String)>,
    /// The JSON body.
    pub body: Vec<u8>,
    /// Maximum size of the response, in bytes.
    pub max_bytes: usize,
    /// Maximum time for everything.
    pub timeout: Duration,
    /// Whether an event stream already contains the expected event, so that the rest need not be read.
    pub complete: fn(&[u8]) -> bool,
}

/// A whole response.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// Its status.
    pub status: u16,
    /// Its media type, in lower case and without parameters.
    pub media_type: String,
    /// The session id that the server assigned, if it did.
    pub session: Option<String>,
    /// Its body.
    pub body: Vec<u8>,
}

/// A request of which only the beginning of the response is read.
#[derive(Clone, Debug)]
pub struct HttpPost {
    /// The URL.
    pub url: Url,
    /// Headers beside the default ones.
    pub headers: Vec<(&'static str, String)>,
    /// The JSON body.
    pub body: Vec<u8>,
}

/// The beginning of a response.
#[derive(Clone, Debug)]
pub struct HttpExcerpt {
    /// Its status.
    pub status: u16,
    /// The beginning of its body.
    pub excerpt: String,
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpFault {
    /// Temporary: network, name server, certificate, timeout.
    Network(String),
    /// The address may not be called.
    Refused(String),
}

/// A message of a conversation with a model, by role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatMessage {
    /// The service's instructions. Never contains anything from a message.
    System(String),
    /// The caller, or data that the model is asked about.
    User(String),
    /// The model, with the tools it calls.
    Assistant {
        /// Its text.
        text: String,
        /// The tools it calls.
        calls: Vec<ToolCall>,
    },
    /// The result of a tool.
    Tool {
        /// The call that this answers.
        call_id: String,
        /// The result, as JSON.
        result: String,
    },
}

/// A tool that a model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: serde_json::Value,
}

/// A tool call of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The model's id of this call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, as the model wrote them; may not be valid JSON.
    pub arguments: String,
}

/// A request to a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// The tools it may call.
    pub tools: Vec<ToolSpec>,
    /// Whether the answer must be one JSON object.
    pub json: bool,
    /// Maximum length of the answer, in tokens.
    pub max_tokens: u32,
}

/// A model's answer: text, or tools to call first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatReply {
    /// Its text.
    pub text: String,
    /// The tools to call before it continues.
    pub calls: Vec<ToolCall>,
}

/// Why a model gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssistantFault {
    /// Temporary.
    #[error("the model cannot be reached: {0}")]
    Unavailable(String),
    /// Permanent for this request.
    #[error("the model refused: {0}")]
    Refused(String),
}

/// Receives the deltas of an answer while the model generates it.
pub type ChatDeltas = tokio::sync::mpsc::Sender<String>;

/// A language model.
pub trait Assistant: Send + Sync {
    /// Its name.
    fn model(&self) -> &str;
    /// Maximum concurrent requests; further ones wait.
    fn concurrency(&self) -> usize;
    /// Answers within a bounded time, with retries. Deltas of the text are streamed.
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        deltas: Option<ChatDeltas>,
    ) -> Pin<Box<dyn Future<Output = Result<ChatReply, AssistantFault>> + Send + 'a>>;
}

/// How soon embeddings are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// A caller waits for them.
    Now,
    /// A user watches the progress.
    Soon,
    /// Background work.
    Idle,
}

/// Why no embeddings were made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedFault {
    /// Temporary.
    #[error("texts cannot be embedded: {0}")]
    Unavailable(String),
    /// Permanent for this text.
    #[error("a text was refused: {0}")]
    Refused(String),
}

/// The future of [`Embedder::embed`].
pub type Embedding<'a> = Pin<Box<dyn Future<Output = Result<Vec<Vec<f32>>, EmbedFault>> + Send + 'a>>;

/// Makes embeddings: texts with similar meaning get nearby vectors.
pub trait Embedder: Send + Sync {
    /// The model's name, which is stored with every vector: vectors of two models cannot be compared.
    fn model(&self) -> &str;
    /// The dimension of a vector.
    fn dimension(&self) -> usize;
    /// Maximum tokens of a text; the rest is cut off.
    fn max_tokens(&self) -> usize;
    /// The tokens of a text, or an upper bound of them, counted up to a limit.
    fn count_tokens(&self, text: &str, limit: usize) -> usize;
    /// A unit vector for each text, in bounded time.
    fn embed(&self, texts: Vec<String>, urgency: Urgency) -> Embedding<'_>;
}

/// The API of a chat bot.
pub trait BotApi: Send + Sync {
    /// Makes a call and returns its result, within a bounded time.
    fn call(
        &self,
        method: &'static str,
        body: serde_json::Value,
        timeout: std::time::Duration,
    ) -> Pin<Box<dyn Future<Output = Result<serde_json::Value, BotFault>> + Send + '_>>;
}

/// Why a bot API call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BotFault {
    /// No response, or an unreadable one.
    #[error("the bot's server gave no answer: {0}")]
    Unreachable(String),
    /// It was refused.
    #[error("the bot's server refused with {code}: {description}")]
    Refused {
        /// The code, like an HTTP status.
        code: u16,
        /// Its description.
        description: String,
        /// When to retry, in seconds.
        retry_after: Option<u64>,
    },
}
