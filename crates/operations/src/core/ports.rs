//! The outside world, as far as operations need it: time, chance, other mail servers, language models, what makes vectors
//! of texts, a chat bot, and HTTP requests that customers have us make. Each trait has one real implementation and one for
//! tests.

use std::{net::SocketAddr, pin::Pin, time::Duration};

use bytes::Bytes;
use mail::Encryption;
use model::Timestamp;
use pay::{facilitator::Settlement, x402::Resource};
use url::Url;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// Gives random bytes.
pub trait Entropy: Send + Sync {
    /// Fills a buffer with bytes that nobody can guess.
    fn fill(&self, buffer: &mut [u8]);
}

/// A message on its way to another server.
#[derive(Clone, Debug)]
pub struct Handover {
    /// The domain of the recipients.
    pub domain: String,
    /// The envelope's sender; nothing for a null sender.
    pub sender: Option<String>,
    /// The recipients, all of one domain unless a relay takes them.
    pub recipients: Vec<String>,
    /// The message as it goes over the wire, before dots are stuffed.
    pub message: Bytes,
}

/// What became of a handover for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandoverOutcome {
    /// The other server has taken it.
    Accepted(String),
    /// It never will.
    Refused(String),
    /// It may later.
    Later(String),
    /// No server could be reached, so that others of this domain need not be tried at once.
    Unreachable(String),
}

/// The server that answered, or that could not be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub host: String,
    /// Where it is.
    pub address: Option<SocketAddr>,
    /// How the connection was encrypted, if it was.
    pub tls: Option<Encryption>,
    /// Whether the server has proven who it is.
    pub verified: bool,
}

impl Peer {
    /// How the connection was encrypted, in words.
    pub fn encryption(&self) -> String {
        let Some(tls) = self.tls else { return "none".to_owned() };
        format!("{tls} {}", if self.verified { "verified" } else { "unverified" })
    }
}

/// What became of a handover.
#[derive(Clone, Debug)]
pub struct Handed {
    /// For each recipient, in their order.
    pub outcomes: Vec<HandoverOutcome>,
    /// Who answered; nothing when it did not come to that.
    pub peer: Option<Peer>,
}

/// Takes mail for other servers.
pub trait NextHop: Send + Sync {
    /// Hands a message over.
    fn hand_over(&self, handover: Handover) -> Pin<Box<dyn Future<Output = Handed> + Send + '_>>;
}

/// A payment that a facilitator is asked about.
#[derive(Clone)]
pub struct SettleRequest {
    /// What was asked for.
    pub terms: pay::Terms,
    /// What it is for.
    pub resource: Resource,
    /// What was signed.
    pub payment: pay::Payment,
}

/// What a facilitator thinks of a payment before it is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be settled.
    Good,
    /// It cannot.
    Bad(String),
    /// There was no answer.
    Unknown(String),
}

/// Brings payments onto their chain, each in bounded time.
pub trait Facilitator: Send + Sync {
    /// Whether a payment can be settled.
    fn verify<'a>(&'a self, request: &'a SettleRequest)
    -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;
    /// Settles a payment. The same one can be asked for again.
    fn settle<'a>(
        &'a self,
        request: &'a SettleRequest,
    ) -> Pin<Box<dyn Future<Output = Settlement> + Send + 'a>>;
    /// Whether it asks no chain.
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

/// Posts to addresses that customers chose.
pub trait HttpClient: Send + Sync {
    /// Posts a body of JSON and reads how the answer begins, within a bounded time, without following redirects.
    fn post(
        &self,
        request: HttpPost,
    ) -> Pin<Box<dyn Future<Output = Result<HttpAnswer, HttpFault>> + Send + '_>>;
    /// Makes a request and reads the whole answer, within the bounds that it names. Redirects lead on within the same
    /// host only, since the headers are meant for it.
    fn exchange(
        &self,
        request: HttpExchange,
    ) -> Pin<Box<dyn Future<Output = Result<HttpWhole, HttpFault>> + Send + '_>>;
}

/// A request whose whole answer counts.
#[derive(Clone)]
pub struct HttpExchange {
    /// Where to.
    pub url: Url,
    /// Whether it ends something (DELETE) instead of asking for something (POST).
    pub ends: bool,
    /// Headers beside those that every request has.
    pub headers: Vec<(String, String)>,
    /// The body, which is JSON.
    pub body: Vec<u8>,
    /// The longest answer, in bytes.
    pub most: usize,
    /// How long everything may take.
    pub time_limit: Duration,
    /// Whether a stream of events holds what is waited for, so that the rest of it need not be read.
    pub complete: fn(&[u8]) -> bool,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct HttpWhole {
    /// Its status.
    pub status: u16,
    /// Its media type, in lower case and without parameters.
    pub media_type: String,
    /// The session that it begins, if it begins one.
    pub session: Option<String>,
    /// Its body.
    pub body: Vec<u8>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct HttpPost {
    /// Where to.
    pub url: Url,
    /// Headers beside those that every request has.
    pub headers: Vec<(&'static str, String)>,
    /// The body, which is JSON.
    pub body: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    /// Its status.
    pub status: u16,
    /// How its body begins.
    pub excerpt: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpFault {
    /// It may work another time: the network, a name server, a certificate, a time limit.
    Network(String),
    /// The address is none that may be called.
    Refused(String),
}

/// Who says a message of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatMessage {
    /// The service: what the model is to do. Never anything that came in a mail.
    System(String),
    /// The person or program that asks, or data that it is asked about.
    User(String),
    /// The model, with the tools it wants to be used.
    Assistant {
        /// What it says.
        text: String,
        /// The tools it calls.
        calls: Vec<ToolCall>,
    },
    /// What a tool gave.
    Tool {
        /// The call that this answers.
        call_id: String,
        /// The result, as JSON.
        result: String,
    },
}

/// A tool that a model may ask to be used.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: serde_json::Value,
}

/// A model's wish that a tool be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The model's name for this call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, as the model wrote them: hopefully JSON.
    pub arguments: String,
}

/// What a model is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// The conversation so far.
    pub messages: Vec<ChatMessage>,
    /// The tools it may call.
    pub tools: Vec<ToolSpec>,
    /// Whether the answer must be one JSON object.
    pub json: bool,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
}

/// What a model answers: text, or tools to call first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatReply {
    /// What it says.
    pub text: String,
    /// The tools it wants to be used before it goes on.
    pub calls: Vec<ToolCall>,
}

/// Why a model gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssistantFault {
    /// It may answer later.
    #[error("the model cannot be reached: {0}")]
    Unavailable(String),
    /// It will not answer this.
    #[error("the model refused: {0}")]
    Refused(String),
}

/// Takes the pieces of an answer while the model is still writing.
pub type ChatDeltas = tokio::sync::mpsc::Sender<String>;

/// A language model.
pub trait Assistant: Send + Sync {
    /// Its name.
    fn model(&self) -> &str;
    /// How many questions it takes at the same time; others wait for their turn.
    fn concurrency(&self) -> usize;
    /// Answers within a bounded time, retrying what can be retried. Pieces of the text are passed on as they come.
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        deltas: Option<ChatDeltas>,
    ) -> Pin<Box<dyn Future<Output = Result<ChatReply, AssistantFault>> + Send + 'a>>;
}

/// How soon vectors are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Somebody waits for them.
    Now,
    /// Somebody watches how they become more.
    Soon,
    /// When nothing else has to be done.
    Idle,
}

/// Why no vectors were made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbedFault {
    /// It may work later.
    #[error("texts cannot be embedded: {0}")]
    Unavailable(String),
    /// It never will with this text.
    #[error("a text was refused: {0}")]
    Refused(String),
}

/// What [`Embedder::embed`] gives in the end.
pub type Embedding<'a> = Pin<Box<dyn Future<Output = Result<Vec<Vec<f32>>, EmbedFault>> + Send + 'a>>;

/// Makes vectors of texts, so that texts that mean the same are near each other.
pub trait Embedder: Send + Sync {
    /// The model's name, which is stored with every vector: vectors of two models cannot be compared.
    fn model(&self) -> &str;
    /// Numbers in a vector.
    fn dimension(&self) -> usize;
    /// Tokens of a text that count; what comes behind is cut.
    fn most_tokens(&self) -> usize;
    /// Tokens of a text, or a number that is not smaller, counted up to a bound.
    fn count_tokens(&self, text: &str, most: usize) -> usize;
    /// A vector of length 1 for each text, in bounded time.
    fn embed(&self, texts: Vec<String>, urgency: Urgency) -> Embedding<'_>;
}

/// The server of a chat bot.
pub trait BotApi: Send + Sync {
    /// Makes a call and gives its result, within a bounded time.
    fn call(
        &self,
        method: &'static str,
        body: serde_json::Value,
        patience: std::time::Duration,
    ) -> Pin<Box<dyn Future<Output = Result<serde_json::Value, BotFault>> + Send + '_>>;
}

/// Why a call of a bot's server gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BotFault {
    /// There was no answer, or none that can be read.
    #[error("the bot's server gave no answer: {0}")]
    Unreachable(String),
    /// It refused.
    #[error("the bot's server refused with {code}: {description}")]
    Refused {
        /// The code, like a status of HTTP.
        code: u16,
        /// Its words.
        description: String,
        /// When it wants to be asked again, in seconds.
        retry_after: Option<u64>,
    },
}
