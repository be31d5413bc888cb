//! TLS for connections to PostgreSQL.

use std::sync::Arc;

use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Result};

/// TLS that checks certificates against the system's roots. With `sslmode=prefer` a server without TLS is accepted.
pub(in crate::sql) fn connector() -> Result<MakeRustlsConnect> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = rustls_platform_verifier::Verifier::new(provider.clone())
        .map_err(|error| Error::Unavailable(format!("no root certificates: {error}").into()))?;
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Internal(error.into()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
