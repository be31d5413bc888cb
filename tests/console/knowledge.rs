//! The page Knowledge: documents, memories, and recalling them.

use axum::body::Body;
use http::Method;
use testkit::{Answer, Engine, Server, both_engines};

use super::person::Person;

async fn upload(person: &Person, name: &str, content: &str) -> Answer {
    let body = format!(
        "--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: text/plain\r\n\r\n\
         {content}\r\n--cut--\r\n"
    );
    let caller = &person.caller;
    let kind = Some("multipart/form-data; boundary=cut");
    caller.send_raw(Method::POST, "/console/knowledge", kind, Body::from(body)).await
}

/// The target of the first form or link with this end.
fn target(page: &str, ending: &str) -> String {
    let end = page.find(&format!("{ending}\"")).unwrap_or_else(|| panic!("no {ending} in {page}"));
    let start = page[..end].rfind('"').unwrap() + 1;
    page[start..end + ending.len()].to_owned()
}

/// rules: CONSOLE-1, MEMORY-1, MEMORY-2, MEMORY-5, MEMORY-6
#[both_engines]
async fn documents_and_memories_are_kept_in_the_console(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    assert!(ada.page("/console/knowledge").await.contains("No documents yet"));
    assert_eq!(
        upload(&ada, "rules.md", "# Rules\n\nThe pool opens at seven <b>sharp</b>.").await.status,
        303
    );
    let waiting = ada.page("/console/knowledge").await;
    assert!(waiting.contains(">queued<") && waiting.contains("every 2s"), "{waiting}");
    server.index_memory().await;
    let page = ada.page("/console/knowledge").await;
    assert!(page.contains("ready, 1 passage<") && !page.contains("every 2s"), "{page}");
    assert!(ada.get("/console/knowledge/list").await.text().contains("rules.md"));

    let told = ada.form("/console/knowledge/remember", &[("text", "Towels are in the blue cupboard.")]).await;
    assert_eq!(told.status, 303);
    let found = ada.page("/console/knowledge?q=Where+are+the+towels").await;
    assert!(found.contains("blue cupboard") && found.contains("rules.md"), "{found}");
    assert!(!found.contains("<b>sharp"), "texts are shown as texts");
    let only = ada.page("/console/knowledge?q=Where+are+the+towels&source=memory").await;
    assert!(only.contains("blue cupboard") && !only.contains("seven"));
    assert_eq!(ada.form(&target(&found, "/forget"), &[("confirmed", "1")]).await.status, 303);
    assert!(!ada.page("/console/knowledge?q=Where+are+the+towels").await.contains("blue cupboard"));

    let file = ada.get(&target(&page, "/download")).await;
    assert_eq!(file.text(), "# Rules\n\nThe pool opens at seven <b>sharp</b>.");
    assert!(file.header("content-disposition").starts_with("attachment"));
    for end in ["/verify", "/delete"] {
        assert_eq!(ada.form(&target(&page, end), &[("confirmed", "1")]).await.status, 303, "{end}");
    }
    assert!(ada.page("/console/knowledge").await.contains("No documents yet"));
    assert_eq!(ada.form("/console/knowledge/verify", &[]).await.status, 303);

    // What is wrong is said at the field.
    let refused = upload(&ada, "movie.mp4", "x").await.text();
    assert!(refused.contains("id=\"e-file\">Choose a text, Markdown"), "{refused}");
    let refused = ada.form("/console/knowledge/remember", &[("text", " ")]).await.text();
    assert!(refused.contains("id=\"e-text\""), "{refused}");
    assert!(ada.page("/console/knowledge").await.contains("No documents yet"));
}
