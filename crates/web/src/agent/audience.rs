//! The audience of a wallet's proof: challenges name it, and proofs are checked against it.

use axum::http::request::Parts;
use operations::App;
use pay::siwx::Audience;

/// The audience of a wallet's proof: this server by its configured address, never by what a request claims.
pub(crate) fn audience(app: &App, parts: &Parts) -> Audience {
    let settings = app.settings();
    let domain = settings.public_url.split_once("://").map_or("", |(_, rest)| rest);
    let path = parts.uri.path_and_query().map_or(parts.uri.path(), |whole| whole.as_str());
    Audience {
        domain: domain.split('/').next().unwrap_or_default().to_owned(),
        uri: format!("{}{path}", settings.public_url),
        network: settings.payments.terms.network.clone(),
        statement: "Show your wallet to Agent Mailbox. This costs nothing.".to_owned(),
    }
}
