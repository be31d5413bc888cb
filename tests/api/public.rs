//! The description of the interface, and the routes that need no credential.

use std::{fs, path::Path, sync::Arc};

use axum::http::Method;
use model::Plan;
use serde_json::{Value, json};
use testkit::{Engine, Server, ServerOptions, both_engines};

fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            found.push((method.to_uppercase(), path.clone(), operation.clone()));
        }
    }
    found
}

/// rules: API-1
#[both_engines]
async fn the_document_is_the_one_in_the_repository(engine: Engine) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi/v1.json");
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == web::openapi_json(),
        "openapi/v1.json is not what the service describes. If the change is meant, write it anew and look at the \
         difference:\n\n    cargo run -p server -- openapi > openapi/v1.json\n"
    );
    let server = Server::start(engine).await;
    let served = server.anonymous().get("/openapi.json").await;
    assert_eq!((served.status, served.header("content-type")), (200, "application/json"));
    assert!(served.text() == kept, "the service serves another document than the repository holds");
    let document = served.json();
    assert_eq!((&document["openapi"], &document["info"]["version"]), (&json!("3.1.0"), &json!("1.0.0")));
}

/// rules: API-2
#[both_engines]
async fn the_document_and_the_router_have_the_same_operations(engine: Engine) {
    let document = web::document();
    let all = operations(&document);
    let mut ids: Vec<&str> =
        all.iter().map(|(_, _, operation)| operation["operationId"].as_str().unwrap()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an operationId appears twice");
    // What operations declares is served, and what is served is declared.
    let catalogue: Vec<&str> = operations::catalog().iter().map(|operation| operation.id).collect();
    let endpoints: Vec<&str> = web::endpoints().iter().map(|endpoint| endpoint.operation.id).collect();
    let mut sorted = [catalogue.clone(), endpoints];
    for list in &mut sorted {
        list.sort_unstable();
    }
    assert_eq!(sorted[0], sorted[1]);
    for (method, path, operation) in &all {
        let id = operation["operationId"].as_str().unwrap();
        let public = ["getStatus", "getConfig", "trackAffiliate", "receiveRawMail"].contains(&id);
        let console = path.starts_with("/api/console/");
        assert!(public || console || path.starts_with("/api/v1/"), "{path}");
        assert_eq!(catalogue.contains(&id), !public && !console, "{method} {path}");
    }
    // Without its secret the hook for mail is not there.
    let options = ServerOptions { inbound_secret: Some("s".repeat(32)), ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    for (method, path, _) in &all {
        let path = path.replace(['{', '}'], "");
        let answer = server.anonymous().send(method.parse().unwrap(), &path, None).await;
        assert!(!matches!(answer.status, 404 | 405), "{method} {path}: {}", answer.text());
    }
}

/// rules: API-3
#[test]
fn every_operation_is_described_whole() {
    let document = web::document();
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    for (method, path, operation) in operations(&document) {
        let name = format!("{method} {path}");
        assert!(text(&operation["summary"]) && text(&operation["tags"][0]), "{name}");
        assert!(operation["x-credits"].as_u64().is_some_and(|credits| credits <= 25), "{name}");
        let plans = operation["x-plans"].as_array().unwrap();
        assert!(!plans.is_empty() && plans.iter().all(text), "{name}");
        // Every parameter in the path is described, and no other.
        let in_path: Vec<&str> =
            path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')).collect();
        let none = Vec::new();
        let parameters = operation["parameters"].as_array().unwrap_or(&none);
        for parameter in parameters {
            assert!(
                text(&parameter["description"]) && parameter["schema"].is_object(),
                "{name}: {parameter}"
            );
        }
        let described: Vec<&str> = parameters
            .iter()
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        assert_eq!(described, in_path, "{name}");
        let takes_key = parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key");
        let writes = path.starts_with("/api/v1/") && method != "GET";
        assert_eq!(takes_key, writes, "{name}");
        if let Some(body) = operation.get("requestBody") {
            let takes_mail = path.ends_with("/emails/import") || path == "/inbound/v1/raw";
            let kind = if takes_mail { "message/rfc822" } else { "application/json" };
            assert!(!body["content"][kind]["schema"].is_null(), "{name}");
        }
        let responses = operation["responses"].as_object().unwrap();
        for (status, response) in responses {
            assert!(text(&response["description"]), "{name} {status}");
            let status: u16 = status.parse().unwrap();
            if status >= 400 {
                assert!(
                    response["x-codes"].as_array().is_some_and(|codes| !codes.is_empty()),
                    "{name} {status}"
                );
                let schema = &response["content"]["application/json"]["schema"]["$ref"];
                assert_eq!(schema, "#/components/schemas/Error", "{name} {status}");
            }
            assert_eq!(status == 429 || status == 503, retries(response), "{name} {status}");
        }
        for always in ["500", "503"] {
            assert!(responses.contains_key(always), "{name} {always}");
        }
        // The hook answers a program that has nothing to choose from.
        assert_eq!(responses.contains_key("406"), path != "/inbound/v1/raw", "{name}");
        if path.starts_with("/api/v1/") && path != "/api/v1/config" {
            for always in ["400", "401", "413", "415", "429"] {
                assert!(responses.contains_key(always), "{name} {always}");
            }
        }
    }
}

/// 409 may say it too: a request with the same key is still running.
fn retries(response: &Value) -> bool {
    let running = response["x-codes"]
        .as_array()
        .is_some_and(|codes| codes.iter().any(|code| code == "idempotency_in_progress"));
    !running && response["headers"]["Retry-After"].is_object()
}

/// The names that the specification and the contract spell otherwise.
const SPELT_OTHERWISE: &[&str] = &[
    "workspaceId",
    "folderId",
    "unreadCount",
    "totalCount",
    "deletedCount",
    "trashedCount",
    "cancelledScheduledCount",
    "sortColumn",
    "sortDirection",
    "contentId",
    "draftId",
    "nextCursor",
    "blobId",
    "ownerAddress",
    "mailDomains",
    "onlyInbox",
];

/// rules: API-3
#[test]
fn fields_are_written_in_snake_case() {
    let document = web::document();
    let snake = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let settings: Vec<String> = {
        let mut names = Vec::new();
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            let of_settings =
                ["MailboxSettings", "AgentInbox", "AutoDraft", "AutoReply", "SenderPolicy", "Spam"];
            if of_settings.iter().any(|one| name.strip_suffix("Input").unwrap_or(name) == *one) {
                names.extend(schema["properties"].as_object().unwrap().keys().cloned());
            }
        }
        names
    };
    assert!(settings.iter().any(|name| name == "autoReply"));
    let mut faulty = Vec::new();
    for (schema, described) in document["components"]["schemas"].as_object().unwrap() {
        for (name, property) in described["properties"].as_object().into_iter().flatten() {
            let named = SPELT_OTHERWISE.contains(&name.as_str()) || settings.contains(name);
            if !snake(name) && !named {
                faulty.push(format!("{schema}.{name}"));
            }
            let described = property["description"].is_string() || property["$ref"].is_string();
            assert!(described || property["allOf"].is_array(), "{schema}.{name} is not described");
        }
    }
    for (_, path, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            if parameter["in"] == "query" && !snake(name) && !SPELT_OTHERWISE.contains(&name) {
                faulty.push(format!("{path}?{name}"));
            }
        }
    }
    assert!(faulty.is_empty(), "{faulty:?}");
}

/// rules: API-5
#[both_engines]
async fn the_documentation_loads_nothing_from_elsewhere(engine: Engine) {
    let document = web::document();
    let server = Server::start(engine).await;
    for path in ["/docs", "/"] {
        let page = server.anonymous().get(path).await;
        assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
        let policy = page.header("content-security-policy");
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(!policy.contains("http") && !policy.contains('*') && !policy.contains("data:"), "{policy}");
        assert!(page.text().contains("rel=\"icon\" href=\"/favicon.svg\""));
        let text = page.text().to_lowercase();
        for loading in
            ["<script", "<iframe", "<img", "<object", "<embed", "@import", "url(", "srcset", "src="]
        {
            assert!(!text.contains(loading), "{path} has {loading}");
        }
        for link in text.split("<link").skip(1) {
            assert!(!link.split('>').next().unwrap_or_default().contains("//"), "{path} has <link{link}");
        }
    }
    let page = server.anonymous().get("/docs").await.text();
    // A path is broken up by the marks around its parameters.
    let shown: String =
        page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    for (method, path, operation) in operations(&document) {
        assert!(shown.contains(&path), "/docs does not show {method} {path}");
        let id = operation["operationId"].as_str().unwrap();
        assert!(page.contains(id), "/docs does not show {id}");
    }
}

/// rules: API-6
#[both_engines]
async fn an_agent_finds_its_way_in(engine: Engine) {
    let options = ServerOptions { public_url: "https://mail.example".to_owned(), ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let guide = server.anonymous().get("/llms.txt").await;
    assert_eq!((guide.status, guide.header("content-type")), (200, "text/plain; charset=utf-8"));
    let guide = guide.text();
    for wanted in [
        "https://mail.example/openapi.json",
        "https://mail.example/openapi.json?tag=Emails",
        "x-api-key",
        "sk-proj-",
        "/api/v1/",
        "next_cursor",
        "Idempotency-Key",
        "webhook-signature",
        "- `Attachment`: id: string, filename: string",
        "Returns: `EmailPage`",
    ] {
        assert!(guide.contains(wanted), "llms.txt does not tell {wanted}:\n{guide}");
    }
    for event in model::events::EventType::ALL {
        assert!(guide.contains(&format!("- `{}`: ", event.as_str())), "{}", event.as_str());
    }
    // Short enough for a context, unlike the document.
    assert!(guide.len() < 80_000, "{}", guide.len());
    let catalogue = server.anonymous().get("/.well-known/api-catalog").await;
    assert_eq!((catalogue.status, catalogue.header("content-type")), (200, "application/linkset+json"));
    let link = &catalogue.json()["linkset"][0];
    assert_eq!(link["anchor"], "https://mail.example/api/v1");
    assert_eq!(link["service-desc"][0]["href"], "https://mail.example/openapi.json");
    assert_eq!(link["service-doc"][0]["href"], "https://mail.example/docs");
    assert_eq!(link["status"][0]["href"], "https://mail.example/api/status");
    // Each of the links leads somewhere.
    for kind in ["service-desc", "service-doc", "status"] {
        for target in link[kind].as_array().unwrap() {
            let path = target["href"].as_str().unwrap().strip_prefix("https://mail.example").unwrap();
            let answer = server.anonymous().get(path).await;
            assert_eq!(answer.status, 200);
            assert!(answer.header("content-type").starts_with(target["type"].as_str().unwrap()));
        }
    }
}

/// rules: API-12
#[both_engines]
async fn the_document_is_served_in_parts(engine: Engine) {
    let server = Server::start(engine).await;
    let whole = server.anonymous().get("/openapi.json").await;
    for tag in whole.json()["tags"].as_array().unwrap() {
        let tag = tag["name"].as_str().unwrap();
        let part = server.anonymous().get(&format!("/openapi.json?tag={}", tag.replace(' ', "%20"))).await;
        assert_eq!((part.status, part.header("content-type")), (200, "application/json"));
        let document = part.json();
        assert_eq!(document["tags"], json!([{ "name": tag }]));
        let all = operations(&document);
        assert!(
            !all.is_empty() && all.iter().all(|(_, _, operation)| operation["tags"] == json!([tag])),
            "{tag}"
        );
        assert!(part.bytes.len() * 4 < whole.bytes.len(), "{tag} has {} bytes", part.bytes.len());
    }
    let unknown = server.anonymous().get("/openapi.json?tag=Letters").await;
    unknown.expect(400, "validation_failed");
    assert!(unknown.json()["fix"].as_str().unwrap().contains("Emails, Sending"), "{}", unknown.text());
    // Programs that follow links add parameters of their own.
    assert_eq!(server.anonymous().get("/openapi.json?utm_source=a").await.bytes, whole.bytes);
}

/// rules: API-7, API-8
#[both_engines]
async fn the_server_tells_how_it_is_and_what_it_offers(engine: Engine) {
    for (open, receives) in [(true, false), (false, true)] {
        let sign_up = operations::SignUpPolicy { open, ..Default::default() };
        let options = ServerOptions { sign_up, receives_mail: receives, ..ServerOptions::default() };
        let server = Server::with(engine, options).await;
        let status = server.anonymous().get("/api/status").await;
        assert_eq!(status.ok(), json!({ "ok": true, "version": env!("CARGO_PKG_VERSION") }));
        let config = server.anonymous().get("/api/v1/config").await.ok();
        let mode = if open { "open" } else { "invite" };
        assert_eq!(
            config,
            json!({
                "domains": ["agents.test", "second.test"], "sign_up": mode,
                "features": { "receiving": receives, "outbound": "local", "ai": false },
            })
        );
        // A key changes nothing about them, and neither does a wrong one.
        assert_eq!(server.key("wrong").get("/api/v1/config").await.ok(), config);
    }
}

/// rules: API-9, ERR-8
#[both_engines]
async fn a_server_without_its_blobs_is_alive_and_not_ready(engine: Engine) {
    let server = Server::start(engine).await;
    let probe = async |path: &str| {
        let answer = server.anonymous().get(path).await;
        (answer.status, answer.text(), answer.header("retry-after").to_owned())
    };
    let fine = |text: &str| (200, text.to_owned(), String::new());
    server.app.check_blobs().await.unwrap();
    assert_eq!(probe("/healthz").await, fine("ok\n"));
    assert!(is_ready(&probe("/readyz").await));

    let (folder, away) = (server.folder().join("blobs"), server.folder().join("away"));
    fs::rename(&folder, &away).unwrap();
    fs::write(&folder, "not a folder").unwrap();
    operations::maintenance::run(&server.app).await.unwrap();
    let refused = r#"{"error":"The storage is not available.","code":"storage_unavailable"}"#;
    assert_eq!(probe("/readyz").await, (503, refused.to_owned(), "2".to_owned()));
    assert_eq!(probe("/healthz").await, fine("ok\n"));
    // What needs no blobs goes on.
    let tenant = server.tenant(Plan::Free).await;
    assert_eq!(tenant.key.get("/api/v1/mailboxes").await.status, 200);

    fs::remove_file(&folder).unwrap();
    fs::rename(&away, &folder).unwrap();
    operations::maintenance::run(&server.app).await.unwrap();
    assert!(is_ready(&probe("/readyz").await));
}

fn is_ready((status, text, _): &(u16, String, String)) -> bool {
    *status == 200 && text.starts_with(r#"{"status":"ready","workers":["#)
}

/// rules: API-7, API-9, ERR-8
#[tokio::test]
async fn a_server_without_its_database_says_so() {
    let server = Server::start(Engine::Postgres).await;
    let tenant = server.tenant(Plan::Free).await;
    assert_eq!(server.anonymous().get("/readyz").await.status, 200);
    let store::DatabaseLocation::Postgres(store::PostgresLocation { url, .. }) = server.location() else {
        panic!("not PostgreSQL")
    };
    let name = url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
    let admin = std::env::var("AGENT_MAILBOX_TEST_POSTGRES_SUPERUSER").unwrap();
    let admin = store::Db::open(&store::DatabaseLocation::Postgres(store::PostgresLocation::new(format!(
        "{admin}?sslmode=disable"
    ))))
    .await
    .unwrap();
    let run = async |sql: String| {
        let done: Result<_, store::Error> = admin.system_write(async move |tx| tx.run(&sql, &[]).await).await;
        done.unwrap();
    };
    run(format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")).await;
    run(format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")).await;
    let refused = r#"{"error":"The storage is not available.","code":"storage_unavailable"}"#;
    let started = std::time::Instant::now();
    for path in ["/api/status", "/readyz", "/api/v1/mailboxes"] {
        let answer = tenant.key.get(path).await;
        assert_eq!((answer.status, answer.text().as_str()), (503, refused), "{path}");
        assert_eq!(answer.header("retry-after"), "2", "{path}");
    }
    assert!(started.elapsed().as_secs() < 6);
    assert_eq!(server.anonymous().get("/healthz").await.status, 200);
    assert_eq!(server.anonymous().get("/api/v1/config").await.status, 200);
    run(format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")).await;
    let back = std::time::Instant::now();
    while server.anonymous().get("/api/status").await.status != 200 {
        assert!(back.elapsed().as_secs() < 5, "still not back");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    for path in ["/api/status", "/readyz", "/api/v1/mailboxes"] {
        assert_eq!(tenant.key.get(path).await.status, 200, "{path}");
    }
}

/// rules: API-10
#[both_engines]
async fn metrics_are_shown_where_they_are_configured(engine: Engine) {
    let mut options = ServerOptions::default();
    let text = "# TYPE http_requests_total counter\nhttp_requests_total 1\n";
    options.web.metrics = Some(Arc::new(move || text.to_owned()));
    let server = Server::with(engine, options).await;
    let shown = server.anonymous().get("/metrics").await;
    assert_eq!((shown.status, shown.text().as_str()), (200, text));
    assert_eq!(shown.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let hidden = server.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await;
    let answer = hidden.anonymous().get("/metrics").await;
    assert_eq!((answer.status, answer.json()["error"].as_str()), (404, Some("Not found")));
    let head = hidden.anonymous().send(Method::HEAD, "/metrics", None).await;
    assert_eq!((head.status, head.bytes.len()), (404, 0));
}
