//! The routes outside the catalogue, as the OpenAPI document describes them: public ones and the console's session.

use std::collections::BTreeMap;

use model::{
    accounts::{Login, Me, Session, SignUp, SwitchWorkspace},
    members::AcceptInvite,
};
use operations::ErrorKind as Kind;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::{
    error,
    openapi::{error_response, parameters},
    public::{PublicConfig, Status, TrackQuery},
};

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One route.
struct Route {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    /// Whether it needs a console session.
    session: bool,
    query: Option<SchemaOf>,
    body: Option<SchemaOf>,
    status: u16,
    answer: Option<SchemaOf>,
    errors: &'static [Kind],
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn properties<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.root_schema_for::<T>()
}

impl Route {
    const fn get(path: &'static str, id: &'static str, summary: &'static str, answer: SchemaOf) -> Self {
        Self {
            method: "get",
            path,
            id,
            summary,
            session: false,
            query: None,
            body: None,
            status: 200,
            answer: Some(answer),
            errors: &[Kind::RateLimited, Kind::StorageUnavailable],
        }
    }
    const fn open_post(path: &'static str, id: &'static str, summary: &'static str, body: SchemaOf) -> Self {
        let answer = Some(schema::<Me> as SchemaOf);
        Self {
            method: "post",
            path,
            id,
            summary,
            session: false,
            query: None,
            body: Some(body),
            status: 200,
            answer,
            errors: &[],
        }
    }
    const fn session_post(path: &'static str, id: &'static str, summary: &'static str) -> Self {
        let errors = &[Kind::Unauthorized, Kind::CrossSiteRequest, Kind::StorageUnavailable];
        Self {
            method: "post",
            path,
            id,
            summary,
            session: true,
            query: None,
            body: None,
            status: 204,
            answer: None,
            errors,
        }
    }
}

const ROUTES: &[Route] = &[
    Route::get("/api/status", "getStatus", "Tells whether the service works.", schema::<Status>),
    Route::get(
        "/api/v1/config",
        "getConfig",
        "Tells what a client needs to know before it has a key.",
        schema::<PublicConfig>,
    ),
    Route {
        query: Some(properties::<TrackQuery>),
        status: 302,
        answer: None,
        ..Route::get(
            "/api/affiliate/track",
            "trackAffiliate",
            "Counts a click on an affiliate's link and leads on to signing up.",
            schema::<Status>,
        )
    },
    Route {
        status: 201,
        errors: &[
            Kind::ValidationFailed,
            Kind::CrossSiteRequest,
            Kind::RoleRequired,
            Kind::AccountExists,
            Kind::PayloadTooLarge,
            Kind::UnsupportedMediaType,
            Kind::RateLimited,
            Kind::StorageUnavailable,
        ],
        ..Route::open_post(
            "/api/console/sign-up",
            "signUp",
            "Makes an account and its workspace, and logs in.",
            schema::<SignUp>,
        )
    },
    Route {
        errors: &[
            Kind::ValidationFailed,
            Kind::Unauthorized,
            Kind::CrossSiteRequest,
            Kind::PayloadTooLarge,
            Kind::UnsupportedMediaType,
            Kind::RateLimited,
            Kind::StorageUnavailable,
        ],
        ..Route::open_post("/api/console/login", "logIn", "Logs in.", schema::<Login>)
    },
    Route {
        errors: &[
            Kind::ValidationFailed,
            Kind::Unauthorized,
            Kind::CrossSiteRequest,
            Kind::NotFound,
            Kind::PayloadTooLarge,
            Kind::UnsupportedMediaType,
            Kind::RateLimited,
            Kind::StorageUnavailable,
        ],
        ..Route::open_post(
            "/api/console/invites/accept",
            "acceptInvite",
            "Accepts an invitation and logs in.",
            schema::<AcceptInvite>,
        )
    },
    Route::session_post("/api/console/logout", "logOut", "Ends the session."),
    Route::session_post(
        "/api/console/logout-everywhere",
        "logOutEverywhere",
        "Ends all sessions of the account.",
    ),
    Route {
        session: true,
        errors: &[Kind::Unauthorized, Kind::StorageUnavailable],
        ..Route::get("/api/console/me", "getMe", "Tells who is logged in.", schema::<Me>)
    },
    Route {
        body: Some(schema::<SwitchWorkspace>),
        status: 200,
        answer: Some(schema::<Me>),
        errors: &[
            Kind::ValidationFailed,
            Kind::Unauthorized,
            Kind::WorkspaceScopeDenied,
            Kind::CrossSiteRequest,
            Kind::PayloadTooLarge,
            Kind::UnsupportedMediaType,
            Kind::StorageUnavailable,
        ],
        ..Route::session_post("/api/console/workspace", "switchWorkspace", "Chooses the session's workspace.")
    },
    Route {
        session: true,
        errors: &[Kind::Unauthorized, Kind::StorageUnavailable],
        ..Route::get(
            "/api/console/sessions",
            "listSessions",
            "Lists the sessions of the account.",
            schema::<Vec<Session>>,
        )
    },
    Route {
        method: "delete",
        errors: &[Kind::Unauthorized, Kind::CrossSiteRequest, Kind::NotFound, Kind::StorageUnavailable],
        ..Route::session_post("/api/console/sessions/{sessionId}", "revokeSession", "Ends one session.")
    },
];

/// All of them.
pub(crate) fn paths(reading: &mut SchemaGenerator, writing: &mut SchemaGenerator) -> Map<String, Value> {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = describe(route, reading, writing);
    }
    paths
}

fn describe(route: &Route, reading: &mut SchemaGenerator, writing: &mut SchemaGenerator) -> Value {
    let json_of = |schema: Schema| json!({ "application/json": { "schema": schema } });
    let query = route.query.map(|query| query(reading));
    let mut parameters = parameters("query", query.as_ref());
    if route.path.contains("{sessionId}") {
        parameters.push(json!({
            "name": "sessionId", "in": "path", "required": true,
            "description": "The id of the session.", "schema": { "type": "string" },
        }));
    }
    let body = route.body.map(|body| json!({ "required": true, "content": json_of(body(reading)) }));
    let mut success =
        json!({ "description": if route.answer.is_some() { "What was asked for." } else { "Done." } });
    if let Some(answer) = route.answer {
        success["content"] = json_of(answer(writing));
    }
    let mut responses = Map::new();
    responses.insert(route.status.to_string(), success);
    let mut by_status: BTreeMap<u16, Vec<Kind>> = BTreeMap::new();
    for kind in route.errors {
        by_status.entry(error::status(*kind).as_u16()).or_default().push(*kind);
    }
    for (status, kinds) in by_status {
        responses.insert(status.to_string(), error_response(&kinds));
    }
    json!({
        "operationId": route.id,
        "summary": route.summary,
        "tags": [if route.path.starts_with("/api/console") { "Console session" } else { "Public" }],
        "security": if route.session { json!([{ "session": [] }]) } else { json!([]) },
        "parameters": parameters,
        "requestBody": body,
        "responses": responses,
    })
}
