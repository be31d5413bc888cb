//! TLS for client connections, with or without certificate verification.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_rustls::TlsConnector;

use super::error::Error;
use super::wire::Io;
use crate::Encryption;

/// Why no encryption can be set up.
#[derive(Debug, thiserror::Error)]
#[error("Encryption cannot be set up: {0}.")]
pub struct TlsError(#[source] rustls::Error);

/// The TLS configuration; one per process is enough.
#[derive(Clone)]
pub struct Tls {
    verified: Arc<ClientConfig>,
    unverified: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Trusts the authorities that the system trusts.
    pub fn system() -> Result<Self, TlsError> {
        let builder = builder()?.with_platform_verifier().map_err(TlsError)?;
        Self::new(builder.with_no_client_auth())
    }

    /// Trusts only these authorities.
    pub fn with_roots(roots: Vec<CertificateDer<'static>>) -> Result<Self, TlsError> {
        let mut store = RootCertStore::empty();
        for root in roots {
            store.add(root).map_err(TlsError)?;
        }
        Self::new(builder()?.with_root_certificates(store).with_no_client_auth())
    }

    fn new(verified: ClientConfig) -> Result<Self, TlsError> {
        let unverified = builder()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider())))
            .with_no_client_auth();
        Ok(Self { verified: Arc::new(verified), unverified: Arc::new(unverified) })
    }

    pub(super) async fn connect(
        &self,
        stream: Box<dyn Io>,
        server_name: &str,
        verified: bool,
    ) -> Result<(Box<dyn Io>, Encryption), Error> {
        let host = server_name.trim_end_matches('.').to_owned();
        let name = ServerName::try_from(host).map_err(|_| Error::Tls("not a host name".to_owned()))?;
        let config = if verified { &self.verified } else { &self.unverified };
        let connector = TlsConnector::from(Arc::clone(config));
        match connector.connect(name, stream).await {
            Ok(secured) => {
                let encryption = Encryption::of(secured.get_ref().1);
                Ok((Box::new(secured), encryption))
            }
            Err(error) => Err(Error::Tls(error.to_string())),
        }
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, TlsError> {
    ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().map_err(TlsError)
}

/// Accepts every certificate, as opportunistic TLS does: many mail servers have one that cannot be verified, and the
/// alternative is no encryption. The peer must still prove that it has the certificate's key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
