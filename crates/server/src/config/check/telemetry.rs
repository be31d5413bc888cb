//! The options of trace export.

use url::Url;

use super::Reader;
use crate::config::Telemetry;

impl Reader<'_> {
    pub(super) fn telemetry(&mut self) -> Option<Telemetry> {
        let service_name = self.parsed("telemetry.service_name", service_name);
        let endpoint = self.optional("telemetry.otlp_endpoint", endpoint);
        if endpoint.is_some() && !cfg!(feature = "opentelemetry") {
            let message = "this program cannot export traces: build it with `--features opentelemetry`";
            self.complain("telemetry.otlp_endpoint", message);
        }
        Some(Telemetry { endpoint: endpoint?, service_name: service_name? })
    }
}

fn endpoint(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("expected an address such as http://127.0.0.1:4318".to_owned());
    }
    Ok(url)
}

fn service_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err("must be a name".to_owned());
    }
    Ok(text.to_owned())
}
