//! The console's page of suppressed addresses, and the page that links for unsubscribing lead to.

use axum::body::Body;
use http::Method;
use testkit::{Engine, Server, both_engines};

use super::person::Person;

const HERE: &str = "/console/suppressions";

/// rules: CONSOLE-25, SUPPRESS-12
#[both_engines]
async fn addresses_are_added_searched_and_removed(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    assert!(ada.page(HERE).await.contains("No suppressed addresses"));
    let added = ada.form(HERE, &[("address", "Bob@Remote.test"), ("note", "<b>asked</b>")]).await;
    assert_eq!(added.header("location"), HERE);
    let fields = [("address", "carol@remote.test"), ("mailbox_id", mailbox.id.as_str())];
    assert_eq!(ada.form(HERE, &fields).await.status, 303);
    let page = ada.page(HERE).await;
    assert!(page.contains("bob@remote.test") && page.contains("Support only"), "{page}");
    assert!(page.contains("asked") && !page.contains("<b>asked</b>"), "{page}");
    let wrong = ada.form(HERE, &[("address", "nobody")]).await;
    assert!(wrong.status == 400 && wrong.text().contains("id=\"e-address\""), "{}", wrong.text());
    let page = ada.page(&format!("{HERE}?q=BOB")).await;
    assert!(page.contains("bob@remote.test") && !page.contains("carol@remote.test"), "{page}");
    let id = page.split("/console/suppressions/sup_").nth(1).unwrap().split('/').next().unwrap();
    let path = format!("{HERE}/sup_{id}/remove");
    assert_eq!(ada.form(&path, &[("reason", "It was a typo")]).await.status, 303);
    assert!(!ada.page(HERE).await.contains("bob@remote.test"));
    assert!(ada.page("/console/audit").await.contains("It was a typo"));
}

/// rules: CONSOLE-25, SUPPRESS-12
#[both_engines]
async fn lists_are_carried_in_and_out_as_csv(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let import = async |text: &str| {
        let body = format!(
            "--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\nContent-Type: text/csv\r\n\r\n{text}\r\n--cut--\r\n"
        );
        let kind = Some("multipart/form-data; boundary=cut");
        ada.caller.send_raw(Method::POST, &format!("{HERE}/import"), kind, Body::from(body)).await
    };
    let wrong = import("a@remote.test\nnobody").await;
    assert!(wrong.status == 400 && wrong.text().contains("line 2"), "{}", wrong.text());
    assert!(ada.page(HERE).await.contains("No suppressed addresses"), "all or none");
    let imported =
        import("Email,Note\r\na@remote.test,=1+1\r\nB@remote.test,\"x, y\"\r\na@remote.test,again").await;
    assert_eq!(imported.status, 303, "{}", imported.text());
    let file = ada.caller.get(&format!("{HERE}.csv")).await;
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
    let text = file.text();
    assert!(text.starts_with("address,reason,scope,mailbox_id,note,created_at\r\n"), "{text}");
    assert!(text.contains("a@remote.test,manual,workspace,,'=1+1,") && text.contains(",\"x, y\","), "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
    // What was carried out can be carried in again.
    assert_eq!(import(&text).await.status, 303);
    assert_eq!(ada.caller.get(&format!("{HERE}.csv")).await.text().lines().count(), 3);
}
