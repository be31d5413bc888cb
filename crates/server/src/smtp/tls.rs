//! The certificate for STARTTLS: from files, or self-signed once and kept.
//!
//! A self-signed one protects against passive eavesdropping, which is all that mail servers ask of each other by
//! default.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use crate::{
    config::TlsFiles,
    failure::{Failure, Result},
};

/// Accepts TLS with the given certificate, or with a self-signed one for `hostname`.
pub(super) fn acceptor(files: Option<&TlsFiles>, data_dir: &Path, hostname: &str) -> Result<TlsAcceptor> {
    let own = TlsFiles { certificate: own_file(data_dir, hostname), key: own_file(data_dir, hostname) };
    if files.is_none() && !own.certificate.exists() {
        let made =
            make(hostname).and_then(|pem| write(&own.certificate, &pem).map_err(|error| error.to_string()));
        made.map_err(|error| Failure::new(format!("Cannot make a certificate for {hostname}: {error}")))?;
    }
    let files = files.unwrap_or(&own);
    let config = read(files).map_err(|(path, error)| {
        Failure::new(format!("Cannot use {} for TLS: {error}", path.display()))
            .with_fix("Give PEM files in smtp.tls_certificate and smtp.tls_key, or neither.")
    })?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The path of our own certificate and its key. Another host name needs another one.
fn own_file(data_dir: &Path, hostname: &str) -> PathBuf {
    data_dir.join(format!("smtp-{hostname}.pem"))
}

fn read(files: &TlsFiles) -> Result<ServerConfig, (&Path, String)> {
    let at = |path| move |error: &dyn std::fmt::Display| (path, error.to_string());
    let (certificate, key) = (files.certificate.as_path(), files.key.as_path());
    let pem = fs::read(certificate).map_err(|error| at(certificate)(&error))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|error| at(certificate)(&error))?;
    let pem = fs::read(key).map_err(|error| at(key)(&error))?;
    let key_der = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| at(key)(&error))?;
    ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key_der))
        .map_err(|error| at(certificate)(&error))
}

/// A certificate and its key as PEM.
fn make(hostname: &str) -> Result<String, String> {
    let made =
        rcgen::generate_simple_self_signed([hostname.to_owned()]).map_err(|error| error.to_string())?;
    Ok(made.cert.pem() + &made.signing_key.serialize_pem())
}

/// Writes the file atomically, readable by its owner alone.
fn write(path: &Path, pem: &str) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(pem.as_bytes())?;
    file.sync_all()?;
    fs::rename(unfinished, path)
}
