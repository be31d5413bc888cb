//! The routes outside the catalogue, as the OpenAPI document describes them: public ones and the console's session.

use model::{
    accounts::{Login, Me, Session, SignUp, SwitchWorkspace},
    members::AcceptInvite,
};
use operations::ErrorKind as Kind;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::{
    error,
    openapi::{error_response, parameters},
    public::{PublicConfig, Status, TrackQuery},
};

/// One route.
struct Route {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    tag: &'static str,
    errors: &'static [Kind],
}

const PUBLIC: &str = "Public";
const CONSOLE: &str = "Console session";

/// What every route that takes a JSON body from anybody can refuse with.
const OPEN: &[Kind] = &[
    Kind::ValidationFailed,
    Kind::CrossSiteRequest,
    Kind::PayloadTooLarge,
    Kind::UnsupportedMediaType,
    Kind::RateLimited,
    Kind::StorageUnavailable,
];

/// All of them.
pub(crate) fn paths(reading: &mut SchemaGenerator, writing: &mut SchemaGenerator) -> Map<String, Value> {
    let mut doc = Document { reading, writing, paths: Map::new() };
    doc.public();
    doc.session();
    doc.paths
}

struct Document<'a> {
    reading: &'a mut SchemaGenerator,
    writing: &'a mut SchemaGenerator,
    paths: Map<String, Value>,
}

impl Document<'_> {
    fn public(&mut self) {
        let route = |path, id, summary| Route {
            method: "get",
            path,
            id,
            summary,
            tag: PUBLIC,
            errors: &[Kind::RateLimited],
        };
        let status = route("/api/status", "getStatus", "Tells whether the service works.");
        let answer = self.json::<Status>(200);
        self.add(Route { errors: &[Kind::RateLimited, Kind::StorageUnavailable], ..status }, None, answer);
        let answer = self.json::<PublicConfig>(200);
        self.add(
            route("/api/v1/config", "getConfig", "Tells what a client needs to know before it has a key."),
            None,
            answer,
        );
        let summary = "Counts a click on an affiliate's link and leads on to signing up.";
        let query = parameters("query", Some(&self.reading.root_schema_for::<TrackQuery>()));
        self.add(
            route("/api/affiliate/track", "trackAffiliate", summary),
            None,
            (302, json!({ "description": "On to signing up." })),
        );
        self.paths["/api/affiliate/track"]["get"]["parameters"] = Value::Array(query);
    }

    fn session(&mut self) {
        let route =
            |method, path, id, summary, errors| Route { method, path, id, summary, tag: CONSOLE, errors };
        let known: &[Kind] = &[Kind::Unauthorized, Kind::CrossSiteRequest, Kind::StorageUnavailable];
        let body = self.body::<SignUp>();
        let answer = self.json::<Me>(201);
        let errors: &[Kind] = &[
            Kind::ValidationFailed,
            Kind::CrossSiteRequest,
            Kind::RoleRequired,
            Kind::AccountExists,
            Kind::PayloadTooLarge,
            Kind::UnsupportedMediaType,
            Kind::RateLimited,
        ];
        self.add(
            route(
                "post",
                "/api/console/sign-up",
                "signUp",
                "Makes an account and its workspace, and logs in.",
                errors,
            ),
            body,
            answer,
        );
        let body = self.body::<Login>();
        let answer = self.json::<Me>(200);
        let errors: &[Kind] = &[
            Kind::ValidationFailed,
            Kind::Unauthorized,
            Kind::CrossSiteRequest,
            Kind::PayloadTooLarge,
            Kind::UnsupportedMediaType,
            Kind::RateLimited,
        ];
        self.add(route("post", "/api/console/login", "logIn", "Logs in.", errors), body, answer);
        self.add(route("post", "/api/console/logout", "logOut", "Ends the session.", known), None, nothing());
        self.add(
            route(
                "post",
                "/api/console/logout-everywhere",
                "logOutEverywhere",
                "Ends all sessions of the account.",
                known,
            ),
            None,
            nothing(),
        );
        let answer = self.json::<Me>(200);
        self.add(route("get", "/api/console/me", "getMe", "Tells who is logged in.", known), None, answer);
        let (body, answer) = (self.body::<SwitchWorkspace>(), self.json::<Me>(200));
        let errors: &[Kind] = &[
            Kind::ValidationFailed,
            Kind::Unauthorized,
            Kind::WorkspaceScopeDenied,
            Kind::CrossSiteRequest,
            Kind::UnsupportedMediaType,
        ];
        self.add(
            route(
                "post",
                "/api/console/workspace",
                "switchWorkspace",
                "Chooses the session's workspace.",
                errors,
            ),
            body,
            answer,
        );
        let answer = self.json::<Vec<Session>>(200);
        self.add(
            route(
                "get",
                "/api/console/sessions",
                "listSessions",
                "Lists the sessions of the account.",
                known,
            ),
            None,
            answer,
        );
        let errors: &[Kind] = &[Kind::Unauthorized, Kind::CrossSiteRequest, Kind::NotFound];
        self.add(
            route(
                "delete",
                "/api/console/sessions/{sessionId}",
                "revokeSession",
                "Ends one session.",
                errors,
            ),
            None,
            nothing(),
        );
        self.paths["/api/console/sessions/{sessionId}"]["delete"]["parameters"] = json!([{
            "name": "sessionId", "in": "path", "required": true, "description": "The id of the session.", "schema": { "type": "string" },
        }]);
        let (body, answer) = (self.body::<AcceptInvite>(), self.json::<Me>(200));
        let route = route(
            "post",
            "/api/console/invites/accept",
            "acceptInvite",
            "Accepts an invitation and logs in.",
            OPEN,
        );
        self.add(
            Route {
                errors: &[
                    Kind::ValidationFailed,
                    Kind::Unauthorized,
                    Kind::CrossSiteRequest,
                    Kind::NotFound,
                    Kind::UnsupportedMediaType,
                    Kind::RateLimited,
                ],
                ..route
            },
            body,
            answer,
        );
    }

    fn body<T: JsonSchema>(&mut self) -> Option<Value> {
        let schema = self.reading.subschema_for::<T>();
        Some(json!({ "required": true, "content": { "application/json": { "schema": schema } } }))
    }

    fn json<T: JsonSchema>(&mut self, status: u16) -> (u16, Value) {
        let schema = self.writing.subschema_for::<T>();
        let content = json!({ "application/json": { "schema": schema } });
        (status, json!({ "description": "What was asked for.", "content": content }))
    }

    fn add(&mut self, route: Route, body: Option<Value>, (status, success): (u16, Value)) {
        let mut responses = Map::new();
        responses.insert(status.to_string(), success);
        let mut by_status: std::collections::BTreeMap<u16, Vec<Kind>> = std::collections::BTreeMap::new();
        for kind in route.errors {
            by_status.entry(error::status(*kind).as_u16()).or_default().push(*kind);
        }
        for (status, kinds) in by_status {
            responses.insert(status.to_string(), error_response(&kinds));
        }
        let security = if route.errors.contains(&Kind::Unauthorized) && body.is_none() {
            json!([{ "session": [] }])
        } else {
            json!([])
        };
        let path = self.paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = json!({
            "operationId": route.id,
            "summary": route.summary,
            "tags": [route.tag],
            "security": security,
            "requestBody": body,
            "responses": responses,
        });
    }
}

fn nothing() -> (u16, Value) {
    (204, json!({ "description": "Done; there is nothing to say." }))
}
