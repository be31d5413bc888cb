//! The routes outside the catalogue, as the OpenAPI document describes them: public ones and the console's session.

use model::{
    Plan,
    accounts::{CompleteSignUp, Login, Me, Session, SignUp, SwitchWorkspace, VerificationSent},
    members::AcceptInvite,
};
use operations::ErrorKind as Kind;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{
    examples,
    inputs::{add_query_examples, parameters},
    plans::plans_from,
    responses::{by_status, error_response},
};
use crate::{
    inbound::HookResponse,
    public::{PublicConfig, Status, TrackQuery},
};

/// One route.
struct Route {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    /// Its own errors, besides those of all routes of its kind.
    errors: &'static [Kind],
}

/// Who a route is for.
#[derive(Clone, Copy)]
enum Audience {
    /// Public, without side effects.
    Public,
    /// Public, with a small JSON body: signing up, logging in.
    Stranger,
    /// A receiving service that signs its requests.
    MailService,
    /// A person with a session.
    Person,
    /// A person with a session, and a small JSON body.
    PersonWithBody,
}

impl Audience {
    /// The errors of every route of this kind.
    fn errors(self) -> Vec<Kind> {
        let mut errors = vec![Kind::Overloaded, Kind::StorageUnavailable, Kind::Internal];
        if !matches!(self, Self::MailService) {
            errors.push(Kind::NotAcceptable);
        }
        if !self.has_session() {
            errors.push(Kind::RateLimited);
        }
        if !matches!(self, Self::Public | Self::MailService) {
            errors.extend([Kind::CrossSiteRequest, Kind::ValidationFailed]);
        }
        if self.has_session() {
            errors.push(Kind::Unauthorized);
        }
        if matches!(self, Self::Stranger | Self::PersonWithBody) {
            errors.extend([Kind::PayloadTooLarge, Kind::UnsupportedMediaType]);
        }
        errors
    }

    const fn has_session(self) -> bool {
        matches!(self, Self::Person | Self::PersonWithBody)
    }

    const fn tag(self) -> &'static str {
        match self {
            Self::Public => "Public",
            Self::MailService => "Receiving mail",
            _ => "Console session",
        }
    }
}

/// The paths of all routes outside the catalogue.
pub(crate) fn paths(reading: &mut SchemaGenerator, writing: &mut SchemaGenerator) -> Map<String, Value> {
    let mut doc = Document { reading, writing, paths: Map::new() };
    doc.public();
    doc.strangers();
    doc.session();
    doc.hook();
    doc.paths
}

struct Document<'a> {
    reading: &'a mut SchemaGenerator,
    writing: &'a mut SchemaGenerator,
    paths: Map<String, Value>,
}

impl Document<'_> {
    fn public(&mut self) {
        let route = |path, id, summary, errors| Route { method: "get", path, id, summary, errors };
        let answer = self.json::<Status>(200, "The service works.");
        self.add(
            Audience::Public,
            &route("/api/status", "getStatus", "Shows whether the service works.", &[Kind::ValidationFailed]),
            &Value::Null,
            answer,
        );
        let answer = self.json::<PublicConfig>(200, "What this server offers.");
        self.add(
            Audience::Public,
            &route(
                "/api/v1/config",
                "getConfig",
                "Returns what a client needs to know before it has a key.",
                &[Kind::ValidationFailed],
            ),
            &Value::Null,
            answer,
        );
        let summary = "Counts a click on an affiliate link and redirects to the sign-up page.";
        let mut query = parameters("query", Some(&self.reading.root_schema_for::<TrackQuery>()));
        add_query_examples("trackAffiliate", &mut query);
        let location =
            json!({ "Location": { "description": "The sign-up page.", "schema": { "type": "string" } } });
        self.add(
            Audience::Public,
            &route("/api/affiliate/track", "trackAffiliate", summary, &[]),
            &Value::Null,
            (302, json!({ "description": "A redirect to the sign-up page.", "headers": location })),
        );
        self.paths["/api/affiliate/track"]["get"]["parameters"] = Value::Array(query);
    }

    fn strangers(&mut self) {
        let route = |path, id, summary, errors| Route { method: "post", path, id, summary, errors };
        let (body, answer) = (self.body::<SignUp>(), self.json::<Me>(201, "The new account, logged in."));
        let summary = "Creates an account with its workspace, and logs in. If the server verifies addresses, it sends a link instead.";
        let errors = &[Kind::RoleRequired, Kind::AccountExists];
        let path = "/api/console/sign-up";
        self.add(Audience::Stranger, &route(path, "signUp", summary, errors), &body, answer);
        self.add_verification(path);
        let (body, answer) =
            (self.body::<CompleteSignUp>(), self.json::<Me>(201, "The new account, logged in."));
        let summary = "Completes a sign-up with the token of the link that was sent, and logs in.";
        let errors = &[Kind::RoleRequired, Kind::NotFound];
        let path = "/api/console/sign-up/complete";
        self.add(Audience::Stranger, &route(path, "completeSignUp", summary, errors), &body, answer);
        let (body, answer) =
            (self.body::<Login>(), self.json::<Me>(200, "The account that is now logged in."));
        let path = "/api/console/login";
        self.add(Audience::Stranger, &route(path, "logIn", "Logs in.", &[Kind::Unauthorized]), &body, answer);
        let (body, answer) =
            (self.body::<AcceptInvite>(), self.json::<Me>(200, "The account that is now logged in."));
        let summary = "Accepts an invite with the account that is logged in; or, with a password, creates an account for the invited address and logs in.";
        let errors = &[Kind::Unauthorized, Kind::RoleRequired, Kind::NotFound, Kind::AccountExists];
        let path = "/api/console/invites/accept";
        self.add(Audience::Stranger, &route(path, "acceptInvite", summary, errors), &body, answer);
        self.add_verification(path);
    }

    /// The response of a server that verifies addresses before it creates accounts.
    fn add_verification(&mut self, path: &str) {
        let (status, answer) =
            self.json::<VerificationSent>(202, "An email with a link that completes the sign-up was sent.");
        self.paths[path]["post"]["responses"][status.to_string()] = answer;
    }

    fn session(&mut self) {
        let route = |method, path, id, summary, errors| Route { method, path, id, summary, errors };
        let log_out = route("post", "/api/console/logout", "logOut", "Ends the session.", &[]);
        self.add(Audience::Person, &log_out, &Value::Null, nothing());
        let summary = "Ends all sessions of the account.";
        let everywhere = route("post", "/api/console/logout-everywhere", "logOutEverywhere", summary, &[]);
        self.add(Audience::Person, &everywhere, &Value::Null, nothing());
        let answer = self.json::<Me>(200, "The account that is logged in.");
        let me = route("get", "/api/console/me", "getMe", "Returns the account that is logged in.", &[]);
        self.add(Audience::Person, &me, &Value::Null, answer);
        let (body, answer) = (
            self.body::<SwitchWorkspace>(),
            self.json::<Me>(200, "The account that is logged in, with the new workspace."),
        );
        let summary = "Switches the session to another workspace.";
        let switch = route(
            "post",
            "/api/console/workspace",
            "switchWorkspace",
            summary,
            &[Kind::WorkspaceScopeDenied],
        );
        self.add(Audience::PersonWithBody, &switch, &body, answer);
        let answer = self.json::<Vec<Session>>(200, "The sessions.");
        let summary = "Lists the sessions of the account.";
        self.add(
            Audience::Person,
            &route("get", "/api/console/sessions", "listSessions", summary, &[]),
            &Value::Null,
            answer,
        );
        let path = "/api/console/sessions/{sessionId}";
        let revoke = route("delete", path, "revokeSession", "Ends one session.", &[Kind::NotFound]);
        self.add(Audience::Person, &revoke, &Value::Null, nothing());
        self.paths[path]["delete"]["parameters"] = json!([{
            "name": "sessionId", "in": "path", "required": true, "description": "The id of the session.",
            "schema": { "type": "string" },
        }]);
    }

    /// The hook that a receiving service posts messages to.
    fn hook(&mut self) {
        let route = Route {
            method: "post",
            path: "/inbound/v1/raw",
            id: "receiveRawMail",
            summary: "Accepts a message from a receiving service. The headers and the body are signed with the secret `inbound.http_secret`; without that setting the route does not exist. The same signed request delivers once.",
            errors: &[
                Kind::ValidationFailed,
                Kind::Unauthorized,
                Kind::NotFound,
                Kind::PayloadTooLarge,
                Kind::RecipientsRefused,
            ],
        };
        let body = json!({
            "required": true,
            "description": "The message, byte for byte.",
            "content": { "message/rfc822": { "schema": { "type": "string", "format": "binary" } } },
        });
        let answer = self.json::<HookResponse>(200, "The message is stored for the recipients listed.");
        self.add(Audience::MailService, &route, &body, answer);
        let header = |name: &str, required: bool, description: &str| {
            json!({
                "name": name, "in": "header", "required": required, "description": description,
                "schema": { "type": "string" },
            })
        };
        self.paths[route.path]["post"]["parameters"] = json!([
            header(
                "X-Signature-Time",
                true,
                "When the request was signed, in seconds since 1970. It may differ from the server's clock by at most 300 seconds."
            ),
            header(
                "X-Signature",
                true,
                "`sha256=` and the hex HMAC-SHA256 of the time, the four headers below and the body, with a line feed after each but the last."
            ),
            header("X-Envelope-From", false, "The envelope's sender; empty for none."),
            header("X-Envelope-To", true, "1 to 100 recipients, separated by commas."),
            header(
                "X-Client-Address",
                false,
                "The IP address of the client that delivered the message, for sender checks."
            ),
            header("X-Client-Helo", false, "The name that the client gave in HELO or EHLO."),
        ]);
    }

    fn body<T: JsonSchema>(&mut self) -> Value {
        let schema = self.reading.subschema_for::<T>();
        json!({ "required": true, "content": { "application/json": { "schema": schema } } })
    }

    fn json<T: JsonSchema>(&mut self, status: u16, description: &str) -> (u16, Value) {
        let schema = self.writing.subschema_for::<T>();
        let content = json!({ "application/json": { "schema": schema } });
        (status, json!({ "description": description, "content": content }))
    }

    fn add(&mut self, kind: Audience, route: &Route, body: &Value, (status, success): (u16, Value)) {
        let mut body = body.clone();
        if let Some(example) = examples::body(route.id) {
            body["content"]["application/json"]["example"] = example;
        }
        let mut responses = Map::new();
        responses.insert(status.to_string(), success);
        for (status, kinds) in by_status([kind.errors().as_slice(), route.errors].concat()) {
            responses.insert(status.to_string(), error_response(&kinds));
        }
        let security = if kind.has_session() { json!([{ "session": [] }]) } else { json!([]) };
        let path = self.paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = json!({
            "operationId": route.id,
            "summary": route.summary,
            "tags": [kind.tag()],
            "security": security,
            "x-credits": 0,
            "x-plans": plans_from(Plan::Free),
            "requestBody": body,
            "responses": responses,
        });
    }
}

fn nothing() -> (u16, Value) {
    (204, json!({ "description": "Done. There is no body." }))
}
