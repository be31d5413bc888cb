//! The console's static files: embedded, named by the hash of their content, and cached by browsers for good.
//!
//! Modules import each other by plain names, which are replaced by hashed ones at start-up, so that no build step
//! is needed.

use std::{collections::HashMap, sync::LazyLock};

use axum::{
    extract::Path,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use sha2::{Digest, Sha256};

use crate::error;

/// The path prefix of the files.
const BASE: &str = "/console/assets/";

/// The stylesheet: what all pages share, then what some of them need.
const STYLES: &str = concat!(
    include_str!("../../assets/style.css"),
    include_str!("../../assets/pages.css"),
    include_str!("../../assets/mail.css"),
    include_str!("../../assets/compose.css"),
    include_str!("../../assets/reviews.css"),
);

/// The files; imported ones come before those that import them.
const FILES: &[(&str, &str, &str)] = &[
    ("style.css", "text/css; charset=utf-8", STYLES),
    ("htmx.js", "text/javascript; charset=utf-8", include_str!("../../assets/htmx.min.js")),
    ("toast.js", "text/javascript; charset=utf-8", include_str!("../../assets/toast.js")),
    ("ui.js", "text/javascript; charset=utf-8", include_str!("../../assets/ui.js")),
    ("palette.js", "text/javascript; charset=utf-8", include_str!("../../assets/palette.js")),
    ("keys.js", "text/javascript; charset=utf-8", include_str!("../../assets/keys.js")),
    ("live.js", "text/javascript; charset=utf-8", include_str!("../../assets/live.js")),
    ("compose.js", "text/javascript; charset=utf-8", include_str!("../../assets/compose.js")),
    ("agent.js", "text/javascript; charset=utf-8", include_str!("../../assets/agent.js")),
    ("app.js", "text/javascript; charset=utf-8", include_str!("../../assets/app.js")),
    ("icon.svg", "image/svg+xml", include_str!("../../assets/icon.svg")),
    ("LICENSE-htmx.txt", "text/plain; charset=utf-8", include_str!("../../assets/LICENSE-htmx.txt")),
];

struct Asset {
    kind: &'static str,
    text: String,
}

/// All files by their hashed names, and those names by the plain ones.
struct Assets {
    files: HashMap<String, Asset>,
    urls: HashMap<&'static str, String>,
}

static ASSETS: LazyLock<Assets> = LazyLock::new(|| {
    let mut assets = Assets { files: HashMap::new(), urls: HashMap::new() };
    for (name, kind, text) in FILES {
        let mut text = (*text).to_owned();
        if *name != "htmx.js" {
            for (imported, url) in &assets.urls {
                text = text.replace(&format!("\"./{imported}\""), &format!("\"{url}\""));
            }
        }
        let hashed = hashed_name(name, &text);
        assets.urls.insert(name, format!("{BASE}{hashed}"));
        assets.files.insert(hashed, Asset { kind, text });
    }
    assets
});

fn hashed_name(name: &str, text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let number = digest.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    format!("{stem}.{number:012x}.{ending}")
}

/// The URL of a file.
pub(super) fn url(name: &str) -> &'static str {
    ASSETS.urls.get(name).map_or("", String::as_str)
}

/// Serves a file.
pub(super) async fn serve(Path(name): Path<String>) -> Response {
    let Some(asset) = ASSETS.files.get(&name) else { return error::unknown_route().await };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    (headers, asset.text.as_str()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_import_leads_to_a_file_that_is_there() {
        for (name, asset) in &ASSETS.files {
            assert!(name.starts_with("htmx.") || !asset.text.contains("from \"./"), "{name}");
            assert!(name.starts_with("htmx.") || !asset.text.contains("import \"./"), "{name}");
            assert!(!name.starts_with("style.") || !asset.text.contains("url("), "{name}");
        }
    }
}
