//! How another crate adds a door: it calls the endpoints in process, and its routes get the same layers as all
//! others.
//!
//! A call through [`DoorContext`] passes the API's pipeline, so permissions, prices and responses are the same.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, request::Parts},
    response::Response,
};
use operations::{App, Caller, Credential, Error, ErrorKind, Result};
use tower::ServiceExt;
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    State, api,
    body::{self, BodyLimit, MAX_BODY_BYTES},
    error, pipeline,
    request::{ClientAddress, RequestId, client_address},
};

/// Builds the routes of a door.
pub type Door = fn(&DoorContext) -> Router;

/// The service as a door sees it.
#[derive(Clone)]
pub struct DoorContext {
    state: State,
    /// The endpoints alone, built for the first call.
    api: Arc<OnceLock<Router>>,
}

impl DoorContext {
    pub(crate) fn new(state: State) -> Self {
        Self { state, api: Arc::default() }
    }

    fn api(&self) -> Router {
        let make = || {
            let routes = api::routes(&self.state).into_iter();
            let router = routes.fold(Router::new(), |router, (path, methods)| router.route(path, methods));
            router.with_state(self.state.clone()).layer(CatchPanicLayer::custom(error::panicked))
        };
        self.api.get_or_init(make).clone()
    }

    /// The service itself.
    pub fn app(&self) -> &App {
        &self.state.app
    }

    /// Origins that may call from a browser, besides our own.
    pub fn origins(&self) -> &[String] {
        &self.state.cors_origins
    }

    /// The address of the client.
    pub fn address(&self, request: &Request) -> IpAddr {
        client_address(request)
    }

    /// Counts a free request against the client's address, separately from unauthenticated API requests.
    pub fn count(&self, address: IpAddr) -> Result<()> {
        self.state.doors.count(address, self.state.app.now())
    }

    /// Authenticates an API key. Addresses that only ever fail are rate-limited.
    pub async fn identify(&self, address: IpAddr, key: Option<&str>) -> Result<Arc<Caller>> {
        let recognised = async {
            let key = key.ok_or_else(|| Error::new(ErrorKind::Unauthorized))?;
            self.app().authenticate(&Credential::ApiKey(key.to_owned())).await
        };
        pipeline::recognise(&self.state, address, recognised).await
    }

    /// Reads a JSON body, bounded in size and time.
    pub async fn read_json(&self, headers: &HeaderMap, body: Body) -> Result<Bytes> {
        body::refuse_encoding(headers)?;
        body::read(headers, body, BodyLimit { max: MAX_BODY_BYTES, refusal: ErrorKind::PayloadTooLarge })
            .await
    }

    /// Calls the API on behalf of the request that a door is serving.
    pub async fn call(&self, outer: &Parts, mut request: Request) -> Response {
        if let Some(id) = outer.extensions.get::<RequestId>() {
            request.extensions_mut().insert(RequestId(id.0.clone()));
        }
        if let Some(client) = outer.extensions.get::<ClientAddress>() {
            request.extensions_mut().insert(*client);
        }
        match self.api().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// An error as a response.
pub fn refuse(refused: &Error) -> Response {
    error::response(refused)
}
