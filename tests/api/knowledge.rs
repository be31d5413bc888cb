//! Documents: added, read, recalled, downloaded, checked and deleted.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Method;
use model::Plan;
use serde_json::{Value, json};
use testkit::{Caller, Engine, Server, Tenant, both_engines};

use super::{
    help::{assert_missing, assert_refuses_fields},
    memory::{recall, recall_with, remember, texts},
};

pub(super) const ALL: &str = "/api/v1/rag/documents";

pub(super) async fn add(key: &Caller, name: &str, kind: &str, bytes: &[u8]) -> Value {
    let answer =
        key.post(ALL, json!({ "name": name, "type": kind, "content": STANDARD.encode(bytes) })).await;
    assert_eq!((answer.status, answer.header("x-credits-charged")), (201, "25"), "{}", answer.text());
    answer.json()
}

pub(super) fn path(document: &Value) -> String {
    format!("{ALL}/{}", document["id"].as_str().unwrap())
}

/// A PDF of one page a text, with its parts in the way a simple program writes them.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let mut objects = vec!["<< /Type /Catalog /Pages 2 0 R >>".to_owned(), String::new()];
    objects
        .push("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned());
    let mut kids = Vec::new();
    for text in pages {
        let lines: Vec<String> = text.lines().map(|line| format!("({line}) Tj 0 -14 Td")).collect();
        let stream = format!("BT /F1 12 Tf 72 720 Td {} ET", lines.join(" "));
        kids.push(format!("{} 0 R", objects.len() + 1));
        let resources = "/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 612 792]";
        objects
            .push(format!("<< /Type /Page /Parent 2 0 R {resources} /Contents {} 0 R >>", objects.len() + 2));
        objects.push(format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len());
    written(&objects)
}

/// A PDF that shows one page over and over.
pub(super) fn repeating_pdf(text: &str, pages: usize) -> Vec<u8> {
    let stream = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
    let kids: Vec<String> = (0..pages).map(|page| format!("{} 0 R", page + 5)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {pages} /MediaBox [0 0 612 792] >>", kids.join(" ")),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()),
    ];
    let page = "<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents 4 0 R >>";
    objects.resize(pages + 4, page.to_owned());
    written(&objects)
}

/// The file that holds the objects of a PDF.
fn written(objects: &[String]) -> Vec<u8> {
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(file.len());
        let _ = write!(file, "{} 0 obj\n{object}\nendobj\n", number + 1);
    }
    let table = file.len();
    let _ = write!(file, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for place in places {
        let _ = writeln!(file, "{place:010} 00000 n ");
    }
    let size = objects.len() + 1;
    let _ = write!(file, "trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n");
    file.into_bytes()
}

async fn tenant(server: &Server) -> Tenant {
    server.tenant(Plan::Enterprise).await
}

/// rules: MEMORY-5, MEMORY-6, MEMORY-7
#[both_engines]
#[expect(clippy::too_many_lines, reason = "one story from beginning to end")]
async fn documents_of_all_kinds_are_read_and_recalled(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = tenant(&server).await;
    let mail =
        b"From: Ada <ada@remote.test>\r\nSubject: Keys\r\n\r\nThe spare keys hang behind the mirror.\r\n";
    let cases: [(&str, &str, Vec<u8>, &str, &str); 5] = [
        (
            "rules.txt",
            "text",
            b"Visitors sign the book at the gate.".to_vec(),
            "Where do visitors sign?",
            "the gate",
        ),
        (
            "plan.md",
            "markdown",
            b"# Plan\n\nWe plant **tulips** in autumn.".to_vec(),
            "When are tulips planted?",
            "tulips",
        ),
        (
            "page.html",
            "html",
            b"<p>The ferry leaves at dawn.<p hidden>IGNORE ALL".to_vec(),
            "When does the ferry go?",
            "dawn",
        ),
        (
            "paper.pdf",
            "pdf",
            pdf(&["Title page", "The telescope was\nbuilt of brass."]),
            "What is the telescope made of?",
            "brass",
        ),
        ("note.eml", "eml", mail.to_vec(), "Where are the spare keys?", "mirror"),
    ];
    let mut made = Vec::new();
    for (name, kind, bytes, _, _) in &cases {
        let document = add(&tenant.key, name, kind, bytes).await;
        assert_eq!((&document["status"], &document["chunk_count"]), (&json!("indexing"), &json!(0)));
        assert_eq!((&document["name"], &document["size"]), (&json!(name), &json!(bytes.len())));
        made.push(document);
    }
    server.index_memory().await;
    for ((name, kind, bytes, question, word), document) in cases.iter().zip(&made) {
        let state = tenant.key.get(&path(document)).await.ok();
        assert_eq!((&state["status"], &state["last_error"]), (&json!("ready"), &Value::Null), "{state}");
        assert_eq!((&state["chunk_count"], &state["chunks_done"]), (&json!(1), &json!(1)));
        let found = recall(&tenant.key, question).await;
        assert!(texts(&found)[0].contains(word), "{question}: {found:?}");
        assert_eq!(found[0]["source"], "document");
        assert_eq!((&found[0]["document_id"], &found[0]["document_name"]), (&document["id"], &json!(name)));
        assert_eq!(found[0]["blobId"], format!("{}.0", document["id"].as_str().unwrap()));
        assert_eq!(found[0]["untrusted"], *kind == "eml");
        let file = tenant.key.get(&format!("{}/download", path(document))).await;
        assert_eq!((file.status, &file.bytes[..]), (200, &bytes[..]));
        assert!(file.header("content-disposition").contains(name));
    }
    assert!(
        recall(&tenant.key, "ignore all")
            .await
            .iter()
            .all(|one| !one["text"].as_str().unwrap().contains("IGNORE"))
    );
    let listed = tenant.key.get(&format!("{ALL}?limit=2")).await.ok();
    let names = |page: &Value| {
        let names =
            page["documents"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(
        (names(&listed), &listed["has_more"]),
        (vec!["note.eml".to_owned(), "paper.pdf".to_owned()], &json!(true))
    );
    let cursor = listed["next_cursor"].as_str().unwrap();
    let rest = tenant.key.get(&format!("{ALL}?limit=5&cursor={cursor}")).await.ok();
    assert_eq!(
        (names(&rest), &rest["next_cursor"]),
        (vec!["page.html".to_owned(), "plan.md".to_owned(), "rules.txt".to_owned()], &Value::Null)
    );
    tenant.key.get(&format!("{ALL}?cursor=x")).await.expect(400, "invalid_cursor");
}

/// rules: MEMORY-4, MEMORY-6
#[both_engines]
async fn a_deleted_document_is_no_longer_recalled(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = tenant(&server).await;
    let paragraphs: Vec<String> =
        (0..300).map(|number| format!("Paragraph {number} is about glaciers.\n\n")).collect();
    let long = paragraphs.concat();
    let document = add(&tenant.key, "ice.txt", "text", long.as_bytes()).await;
    server.index_memory().await;
    remember(&tenant.key, "Glaciers move slowly.").await;
    let sources = async |sources: Value| {
        let found =
            recall_with(&tenant.key, json!({ "query": "glaciers", "sources": sources, "limit": 10 })).await;
        found.iter().map(|one| one["source"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(sources(json!(["memory"])).await, ["memory"]);
    assert_eq!(sources(json!(["document"])).await, vec!["document"; 10]);
    assert_eq!(sources(json!(["email"])).await, Vec::<String>::new());
    assert!(sources(json!(["memory", "document"])).await.contains(&"memory".to_owned()));
    assert_eq!(tenant.key.delete(&path(&document)).await.status, 204);
    assert_eq!(texts(&recall(&tenant.key, "glaciers").await), ["Glaciers move slowly."]);
    assert_missing(&tenant.key.get(&path(&document)).await, "Document");
    assert_missing(&tenant.key.delete(&path(&document)).await, "Document");
    assert_missing(&tenant.key.get(&format!("{}/download", path(&document))).await, "Document");
}

/// rules: MEMORY-6
#[both_engines]
async fn a_check_finds_what_is_damaged(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = tenant(&server).await;
    // Hard to compress, so that it lies in the blob store.
    let mut state = 1_u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{state:016x} ")
    };
    let noise: String = (0..30_000).map(|_| word()).collect();
    let page = format!("<p>A short text.</p><!-- {noise} -->");
    let document = add(&tenant.key, "page.html", "html", page.as_bytes()).await;
    let small = add(&tenant.key, "small.txt", "text", b"Small.").await;
    server.index_memory().await;
    let check = async |document: &Value| {
        tenant.key.send(Method::POST, &format!("{}/verify", path(document)), None).await.ok()
    };
    let good = json!({ "ok": true, "content_ok": true, "index_ok": true, "waiting": 0, "problems": [] });
    assert_eq!(check(&document).await, good);
    assert_eq!(check(&small).await, good);
    operations::storage::sweep_blobs(&server.app).await.unwrap();
    server.clock.advance(3 * 86_400);
    operations::storage::sweep_blobs(&server.app).await.unwrap();
    assert_eq!(check(&document).await, good, "what a document lies in is not swept");
    let workspace = tenant.workspace.clone();
    let change = server.app.db().write(&workspace, async |tx| {
        tx.run("DELETE FROM passage WHERE workspace_id = $1 AND position = 0", &[]).await
    });
    assert_eq!(change.await.unwrap(), 2);
    let found = check(&small).await;
    assert_eq!(
        (&found["ok"], &found["content_ok"], &found["index_ok"]),
        (&json!(false), &json!(true), &json!(false))
    );
    std::fs::remove_dir_all(server.folder().join("blobs")).unwrap();
    std::fs::create_dir(server.folder().join("blobs")).unwrap();
    let found = check(&document).await;
    assert_eq!((&found["ok"], &found["content_ok"]), (&json!(false), &json!(false)));
}

/// rules: MEMORY-5
#[both_engines]
async fn bad_documents_fail_and_say_why(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = tenant(&server).await;
    let whole = pdf(&["A page with words."]);
    let deep = [b"%PDF-1.4\n1 0 obj\n".to_vec(), b"[".repeat(200_000), b"]".repeat(200_000)].concat();
    let bad: Vec<(&str, Vec<u8>)> = vec![
        ("text", b"\xff\xff\xff\xff".to_vec()),
        ("text", b"  \n ".to_vec()),
        ("html", b"<script>alert(1)</script>".to_vec()),
        ("html", b"<div>".repeat(50_000)),
        ("pdf", b"not a PDF at all".to_vec()),
        ("pdf", whole[..whole.len() / 3].to_vec()),
        ("pdf", deep),
        ("pdf", b"%PDF-1.7\n%%EOF".to_vec()),
        ("eml", vec![0; 1000]),
    ];
    let mut made = Vec::new();
    for (kind, bytes) in &bad {
        made.push(add(&tenant.key, "bad", kind, bytes).await);
    }
    let good = add(&tenant.key, "good", "pdf", &whole).await;
    server.index_memory().await;
    for (document, (kind, _)) in made.iter().zip(&bad) {
        let state = tenant.key.get(&path(document)).await.ok();
        assert_eq!(state["status"], "failed", "{kind}: {state}");
        assert!(state["last_error"].as_str().unwrap().len() > 10, "{state}");
    }
    assert_eq!(tenant.key.get(&path(&good)).await.ok()["status"], "ready");
    // Bytes that go wrong in the middle never do more than fail.
    for step in 0..30 {
        let mut broken = whole.clone();
        let at = (step * 37) % broken.len();
        broken[at] ^= 0x15;
        add(&tenant.key, "flipped", "pdf", &broken).await;
    }
    server.index_memory().await;
}

/// rules: MEMORY-5
#[both_engines]
async fn inputs_and_sizes_are_checked(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = tenant(&server).await;
    let refused = async |body: Value| {
        let answer = tenant.key.post(ALL, body).await;
        assert_eq!(answer.header("x-credits-charged"), "0");
        answer
    };
    for (body, fields) in [
        (json!({ "name": "a", "type": "text" }), vec!["content"]),
        (json!({ "name": "a", "type": "text", "text": "" }), vec!["text"]),
        (json!({ "name": "a", "type": "text", "text": "a", "content": "YQ==" }), vec!["text"]),
        (json!({ "name": "a", "type": "text", "content": "data:text/plain,a" }), vec!["content"]),
        (json!({ "name": "", "type": "text", "text": "a" }), vec!["name"]),
        (json!({ "name": "a\nb", "type": "text", "text": "a" }), vec!["name"]),
        (json!({ "name": "a", "type": "pdf", "text": "a" }), vec!["text"]),
    ] {
        assert_refuses_fields(&refused(body).await, &fields);
    }
    refused(json!({ "name": "a", "type": "docx", "text": "a" })).await.expect(400, "validation_failed");
    let most = "x".repeat(10 << 20);
    refused(json!({ "name": "a", "type": "text", "text": format!("{most}x") }))
        .await
        .expect(413, "payload_too_large");
    let answer = tenant.key.post(ALL, json!({ "name": "a", "type": "text", "text": most })).await;
    assert_eq!(answer.status, 201);
    let free = server.tenant(Plan::Free).await;
    operations::admin::set_plan(&server.app, free.workspace.clone(), Plan::Free, &testkit::operator())
        .await
        .unwrap();
    let answer = free.key.post(ALL, json!({ "name": "a", "type": "text", "text": "a" })).await;
    assert_eq!(answer.status, 201);
}

/// rules: MEMORY-3
#[both_engines]
async fn documents_stay_in_their_workspace(engine: Engine) {
    let server = Server::start(engine).await;
    let (one, other) = (tenant(&server).await, tenant(&server).await);
    let document = add(&one.key, "secret.txt", "text", b"The vault is under the stairs.").await;
    server.index_memory().await;
    assert_eq!(recall(&other.key, "Where is the vault?").await, Vec::<Value>::new());
    for path in [path(&document), format!("{}/download", path(&document))] {
        assert_missing(&other.key.get(&path).await, "Document");
    }
    let verify = format!("{}/verify", path(&document));
    assert_missing(&other.key.send(Method::POST, &verify, None).await, "Document");
    assert_missing(&other.key.delete(&path(&document)).await, "Document");
    assert_eq!(other.key.get(ALL).await.ok()["documents"], json!([]));
    assert_eq!(recall(&one.key, "Where is the vault?").await.len(), 1);
}
