//! The typed parts of a request: path, query, body. Each part reads itself and describes itself.

use axum::body::Bytes;
use garde::Validate;
use operations::{Detail, Error, ErrorKind, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use crate::{
    body::JSON,
    json_body::read_json,
    query::{self, Nothing, Value},
};

/// A request as far as the pipeline has read it.
pub(crate) struct RawInput {
    /// Path parameters, decoded.
    pub(crate) path: Vec<(String, String)>,
    pub(crate) query: String,
    /// The media type of the body, in lower case and without parameters.
    pub(crate) media_type: String,
    pub(crate) body: Bytes,
    /// The requested byte range of a file.
    pub(crate) range: Option<String>,
    /// The `Last-Event-ID` to resume a stream after.
    pub(crate) last_event_id: Option<String>,
    /// Whether the client sent `Prefer: respond-async` (RFC 7240).
    pub(crate) respond_async: bool,
    /// Whether the client asks for server-sent events instead of JSON.
    pub(crate) wants_events: bool,
}

/// An operation's inputs, as schemas for the documentation.
#[derive(Default)]
pub struct InputDescription {
    /// The path parameters, as properties of an object.
    pub path: Option<Schema>,
    /// The query parameters, as properties of an object.
    pub query: Option<Schema>,
    /// The body.
    pub body: Option<Schema>,
    /// Whether `Prefer: respond-async` has an effect.
    pub prefers: bool,
}

/// A part of a request.
pub(crate) trait Part: Sized + Send + 'static {
    fn read(raw: &RawInput) -> Result<Self>;
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator);
}

/// All parts that a handler takes. Other parts are refused.
pub(crate) trait Input: Sized + Send + 'static {
    /// The media types of the body; empty when there is none.
    const BODY_TYPES: &'static [&'static str];
    /// Whether the body is optional.
    const BODY_OPTIONAL: bool = false;
    fn read(raw: &RawInput) -> Result<Self>;
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator);
}

/// The path parameters.
pub(crate) struct Path<T>(pub(crate) T);
/// The query parameters.
pub(crate) struct Query<T>(pub(crate) T);
/// The JSON body.
pub(crate) struct Json<T>(pub(crate) T);
/// A JSON body whose fields are all optional, so that it may be missing.
pub(crate) struct OptionalJson<T>(pub(crate) T);
/// A message as the raw body.
pub(crate) struct MailBody {
    /// Whether it is an mbox file with several messages.
    pub(crate) is_mbox: bool,
    pub(crate) bytes: Bytes,
}
/// The `Last-Event-ID` to resume a stream after.
pub(crate) struct LastEventId(pub(crate) Option<i64>);
/// Whether the client sent `Prefer: respond-async`.
pub(crate) struct RespondAsync(pub(crate) bool);
/// Whether the client asks for server-sent events.
pub(crate) struct WantsEvents(pub(crate) bool);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Part for Path<T> {
    fn read(raw: &RawInput) -> Result<Self> {
        let pairs = raw.path.iter().map(|(name, value)| (name.as_str().into(), Value(value.as_str().into())));
        query::from_pairs(pairs).map(Path).map_err(|fault| refusal(vec![fault]))
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        description.path = Some(generator.root_schema_for::<T>());
    }
}

impl<T: DeserializeOwned + Validate<Context = ()> + JsonSchema + Send + 'static> Part for Query<T> {
    fn read(raw: &RawInput) -> Result<Self> {
        query::from_query(&raw.query).map(Query).map_err(refusal)
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        description.query = Some(generator.root_schema_for::<T>());
    }
}

impl<T: DeserializeOwned + Validate<Context = ()> + JsonSchema + Send + 'static> Part for Json<T> {
    fn read(raw: &RawInput) -> Result<Self> {
        read_json(&raw.body).map(Json)
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        description.body = Some(generator.subschema_for::<T>());
    }
}

impl Input for () {
    const BODY_TYPES: &'static [&'static str] = &[];
    fn read(raw: &RawInput) -> Result<Self> {
        together(refuse_query(&raw.query), refuse_body(raw)).map(|_| ())
    }
    fn describe(_: &mut InputDescription, _: &mut SchemaGenerator) {}
}

impl<T> Input for Path<T>
where
    Path<T>: Part,
{
    const BODY_TYPES: &'static [&'static str] = &[];
    fn read(raw: &RawInput) -> Result<Self> {
        let nothing_else = together(refuse_query(&raw.query), refuse_body(raw));
        Ok(together(nothing_else, Part::read(raw))?.1)
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        <Self as Part>::describe(description, generator);
    }
}

impl<T> Input for Query<T>
where
    Query<T>: Part,
{
    const BODY_TYPES: &'static [&'static str] = &[];
    fn read(raw: &RawInput) -> Result<Self> {
        Ok(together(refuse_body(raw), Part::read(raw))?.1)
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        <Self as Part>::describe(description, generator);
    }
}

impl<T> Input for Json<T>
where
    Json<T>: Part,
{
    const BODY_TYPES: &'static [&'static str] = &[JSON];
    fn read(raw: &RawInput) -> Result<Self> {
        Ok(together(refuse_query(&raw.query), Part::read(raw))?.1)
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        <Self as Part>::describe(description, generator);
    }
}

impl<T> Input for OptionalJson<T>
where
    T: DeserializeOwned + Validate<Context = ()> + JsonSchema + Send + 'static,
{
    const BODY_TYPES: &'static [&'static str] = &[JSON];
    const BODY_OPTIONAL: bool = true;
    fn read(raw: &RawInput) -> Result<Self> {
        let body = if raw.body.is_empty() { b"{}" } else { &raw.body[..] };
        let ((), body) = together(refuse_query(&raw.query), read_json(body))?;
        Ok(OptionalJson(body))
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        <Json<T> as Part>::describe(description, generator);
    }
}

impl<P, T> Input for (Path<P>, OptionalJson<T>)
where
    Path<P>: Part,
    T: DeserializeOwned + Validate<Context = ()> + JsonSchema + Send + 'static,
{
    const BODY_TYPES: &'static [&'static str] = &[JSON];
    const BODY_OPTIONAL: bool = true;
    fn read(raw: &RawInput) -> Result<Self> {
        let (path, body) = together(Part::read(raw), OptionalJson::read(raw))?;
        Ok((path, body))
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        <Path<P> as Part>::describe(description, generator);
        <OptionalJson<T> as Input>::describe(description, generator);
    }
}

impl<P, B> Input for (Path<P>, Json<B>)
where
    Path<P>: Part,
    Json<B>: Part,
{
    const BODY_TYPES: &'static [&'static str] = &[JSON];
    fn read(raw: &RawInput) -> Result<Self> {
        let ((), both) = together(refuse_query(&raw.query), together(Part::read(raw), Part::read(raw)))?;
        Ok(both)
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        <Path<P> as Part>::describe(description, generator);
        <Json<B> as Part>::describe(description, generator);
    }
}

impl<P, Q> Input for (Path<P>, Query<Q>)
where
    Path<P>: Part,
    Query<Q>: Part,
{
    const BODY_TYPES: &'static [&'static str] = &[];
    fn read(raw: &RawInput) -> Result<Self> {
        let ((), both) = together(refuse_body(raw), together(Part::read(raw), Part::read(raw)))?;
        Ok(both)
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        <Path<P> as Part>::describe(description, generator);
        <Query<Q> as Part>::describe(description, generator);
    }
}

impl Part for MailBody {
    fn read(raw: &RawInput) -> Result<Self> {
        if raw.body.is_empty() {
            return Err(Error::invalid("", "the body is empty"));
        }
        Ok(Self { is_mbox: raw.media_type == MBOX, bytes: raw.body.clone() })
    }
    fn describe(description: &mut InputDescription, _: &mut SchemaGenerator) {
        description.body = Some(schemars::json_schema!({ "type": "string", "format": "binary" }));
    }
}

const MBOX: &str = "application/mbox";

impl<P> Input for (Path<P>, MailBody)
where
    Path<P>: Part,
{
    const BODY_TYPES: &'static [&'static str] = &["message/rfc822", MBOX];
    fn read(raw: &RawInput) -> Result<Self> {
        let ((), both) = together(refuse_query(&raw.query), together(Part::read(raw), Part::read(raw)))?;
        Ok(both)
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        <Path<P> as Part>::describe(description, generator);
        <MailBody as Part>::describe(description, generator);
    }
}

impl<P, B> Input for (Path<P>, Json<B>, RespondAsync)
where
    Path<P>: Part,
    Json<B>: Part,
{
    const BODY_TYPES: &'static [&'static str] = &[JSON];
    fn read(raw: &RawInput) -> Result<Self> {
        let both = together(Part::read(raw), Part::read(raw));
        let ((), (path, body)) = together(refuse_query(&raw.query), both)?;
        Ok((path, body, RespondAsync(raw.respond_async)))
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        <Path<P> as Part>::describe(description, generator);
        <Json<B> as Part>::describe(description, generator);
        description.prefers = true;
    }
}

impl<P, B> Input for (Path<P>, Json<B>, WantsEvents)
where
    Path<P>: Part,
    Json<B>: Part,
{
    const BODY_TYPES: &'static [&'static str] = &[JSON];
    fn read(raw: &RawInput) -> Result<Self> {
        let both = together(Part::read(raw), Part::read(raw));
        let ((), (path, body)) = together(refuse_query(&raw.query), both)?;
        Ok((path, body, WantsEvents(raw.wants_events)))
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        <Path<P> as Part>::describe(description, generator);
        <Json<B> as Part>::describe(description, generator);
    }
}

impl<P> Input for (Path<P>, RespondAsync)
where
    Path<P>: Part,
{
    const BODY_TYPES: &'static [&'static str] = &[];
    fn read(raw: &RawInput) -> Result<Self> {
        let nothing_else = together(refuse_query(&raw.query), refuse_body(raw));
        let (_, path) = together(nothing_else, Part::read(raw))?;
        Ok((path, RespondAsync(raw.respond_async)))
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        <Path<P> as Part>::describe(description, generator);
        description.prefers = true;
    }
}

impl<P, Q> Input for (Path<P>, Query<Q>, LastEventId)
where
    Path<P>: Part,
    Query<Q>: Part,
{
    const BODY_TYPES: &'static [&'static str] = &[];
    fn read(raw: &RawInput) -> Result<Self> {
        let both = together(Part::read(raw), Part::read(raw));
        let rest = together(refuse_body(raw), last_event_id(raw));
        let ((path, query), ((), last)) = together(both, rest)?;
        Ok((path, query, LastEventId(last)))
    }
    fn describe(description: &mut InputDescription, generator: &mut SchemaGenerator) {
        <Path<P> as Part>::describe(description, generator);
        <Query<Q> as Part>::describe(description, generator);
    }
}

/// The `Last-Event-ID` to resume a stream after, if one is given.
fn last_event_id(raw: &RawInput) -> Result<Option<i64>> {
    let Some(text) = raw.last_event_id.as_deref().filter(|text| !text.is_empty()) else { return Ok(None) };
    let number = text.parse().ok().filter(|number: &i64| *number >= 0);
    let message = "expected the sequence of an event of this stream";
    number.map(Some).ok_or_else(|| Error::invalid("Last-Event-ID", message))
}

/// Refuses every query parameter, for routes that take none.
pub(crate) fn refuse_query(query: &str) -> Result<()> {
    query::from_query::<Nothing>(query).map(|_| ()).map_err(refusal)
}

/// A misplaced body would be ignored silently otherwise. Some clients always send an empty object: that is
/// accepted.
fn refuse_body(raw: &RawInput) -> Result<()> {
    let body = raw.body.trim_ascii();
    if body.is_empty() || body == b"{}" {
        return Ok(());
    }
    Err(Error::invalid("", "this operation takes no body"))
}

fn refusal(faults: Vec<Detail>) -> Error {
    Error::new(ErrorKind::ValidationFailed).with_details(faults)
}

/// Both parts of a request, or the faults of both.
pub(crate) fn together<A, B>(one: Result<A>, other: Result<B>) -> Result<(A, B)> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(refused), Ok(_)) | (Ok(_), Err(refused)) => Err(refused),
        (Err(one), Err(other)) => Err(refusal([one.details(), other.details()].concat())),
    }
}
