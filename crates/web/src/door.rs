//! How another crate adds a door of its own: it gets the endpoints to call in process, and its routes stand under the
//! same layers as all others.
//!
//! A call through [`Inside`] passes the pipeline of the API: what it may do, costs and answers cannot differ.

use std::{net::IpAddr, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, request::Parts},
    response::Response,
};
use operations::{App, Caller, Credential, Error, ErrorKind, Result};
use tower::ServiceExt;

use crate::{
    State,
    body::{self, Bound, MAX_BODY},
    error, pipeline,
    request::{ClientAddress, RequestId, client_address},
};

/// Makes the routes of a door.
pub type Door = fn(&Inside) -> Router;

/// The service as a door sees it.
#[derive(Clone)]
pub struct Inside {
    pub(crate) state: State,
    pub(crate) api: Router,
}

impl Inside {
    /// The service itself.
    pub fn app(&self) -> &App {
        &self.state.app
    }

    /// Origins that browsers may call from, beside our own.
    pub fn origins(&self) -> &[String] {
        &self.state.options.cors_origins
    }

    /// The address of the client.
    pub fn address(&self, request: &Request) -> IpAddr {
        client_address(request)
    }

    /// Counts something that costs no credits against the client's address, apart from what strangers do there.
    pub fn count(&self, address: IpAddr) -> Result<()> {
        self.state.doors.count(address, self.state.app.now())
    }

    /// Recognises a caller by an API key. Addresses that only ever fail are refused after a while.
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
        body::read(headers, body, Bound { most: MAX_BODY, refusal: ErrorKind::PayloadTooLarge }).await
    }

    /// Makes a call of the API on behalf of the request that a door is answering.
    pub async fn call(&self, outer: &Parts, mut request: Request) -> Response {
        if let Some(id) = outer.extensions.get::<RequestId>() {
            request.extensions_mut().insert(RequestId(id.0.clone()));
        }
        if let Some(client) = outer.extensions.get::<ClientAddress>() {
            request.extensions_mut().insert(*client);
        }
        match self.api.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// An error as any door answers it.
pub fn refuse(refused: &Error) -> Response {
    error::response(refused)
}
