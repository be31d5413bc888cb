//! Forms of the console: mistakes stand at their fields, nothing typed is lost, every dialog has a page, and nothing is
//! destroyed without a question.

use serde_json::json;
use testkit::{Engine, Server, both_engines};

use super::person::Person;

/// The tag of the field with an id.
#[track_caller]
fn tag<'a>(page: &'a str, id: &str) -> &'a str {
    let at = page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no {id} in {page}"));
    let start = page[..at].rfind('<').unwrap();
    &page[start..start + page[start..].find('>').unwrap()]
}

/// A field that is marked as wrong, with its message and what was typed.
#[track_caller]
fn assert_wrong(page: &str, name: &str, message: &str, typed: &str) {
    let tag = tag(page, &format!("f-{name}"));
    assert!(tag.contains("aria-invalid=\"true\"") && tag.contains(&format!("e-{name}")), "{tag}");
    assert!(page.contains(&format!("id=\"e-{name}\">{message}")), "{message} at {name} in {page}");
    assert!(tag.contains(&format!("value=\"{typed}\"")), "{tag}");
}

/// rules: CONSOLE-1
#[both_engines]
async fn mistakes_stand_at_their_fields_and_nothing_typed_is_lost(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Billing").await;

    let fields = [("name", "Support"), ("local", "support"), ("domain", "agents.test")];
    let page = ada.form("/console/mailboxes/new", &fields).await.text();
    assert_wrong(&page, "local", "The mailbox name &#34;support&#34; is reserved.", "support");
    assert!(page.contains("Address: The mailbox name") && page.contains("value=\"Support\""), "{page}");
    // The name alone is enough: its address is made up.
    let fields = [("name", "Support"), ("local", ""), ("domain", "agents.test")];
    assert_eq!(ada.form("/console/mailboxes/new", &fields).await.status, 303);
    let all = ada.tenant.key.get("/api/v1/mailboxes").await.ok();
    let made = all.as_array().unwrap().iter().find(|one| one["name"] == "Support").unwrap();
    assert!(made["email"].as_str().unwrap().starts_with("support-"), "{made}");

    let rule = [("name", "Bank"), ("rules", "from contains \"@bank.test\""), ("color", "#112233")];
    let page = ada.form(&mailbox.at("labels"), &rule).await.text();
    assert!(page.contains("id=\"e-rules\">Column 1: write from:&#34;@bank.test&#34; here"), "{page}");
    assert!(page.contains("value=\"Bank\"") && page.contains("value=\"#112233\""), "{page}");
    let settings =
        [("name", "Billing"), ("forward_on", "on"), ("forward_to", "nobody"), ("signature", "Ada B.")];
    let page = ada.form(&mailbox.at("settings"), &settings).await.text();
    let wrong = tag(&page, "f-forward_to");
    assert!(wrong.contains("aria-invalid") && wrong.contains("value=\"nobody\""), "{wrong}");
    assert!(page.contains(">Ada B.</textarea>"), "{page}");

    for (path, fields, name) in [
        ("/console/keys", vec![("name", " "), ("role", "member"), ("expires", "30")], "name"),
        ("/console/members/invite", vec![("email", "nobody"), ("role", "admin")], "email"),
        ("/console/domains", vec![("domain", "not a domain")], "domain"),
        ("/console/webhooks", vec![("url", "ftp://x.test"), ("type", "message.sent")], "url"),
        ("/console/integrations", vec![("name", "Tools"), ("url", "ftp://x")], "url"),
        ("/console/settings", vec![("name", ""), ("timezone", "UTC")], "name"),
        ("/console/affiliate", vec![("code", "A B"), ("payout_email", "ada@people.test")], "code"),
    ] {
        let page = ada.form(path, &fields).await.text();
        let typed = fields.iter().find(|(field, _)| *field == name).unwrap().1;
        assert_wrong(&page, name, "", typed);
    }
    let page =
        ada.form("/console/webhooks", &[("url", "ftp://x.test"), ("type", "message.sent")]).await.text();
    assert!(page.contains("value=\"message.sent\" checked"), "{page}");
    let page = ada.form("/console/keys", &[("name", " "), ("role", "admin"), ("expires", "30")]).await.text();
    assert!(page.contains("value=\"admin\" selected") && page.contains("value=\"30\" selected"), "{page}");
    // A key of the console is a member's and expires, unless somebody wants it otherwise.
    let page = ada.page("/console/keys/new").await;
    let first = |name: &str| {
        let select = page.split(&format!("id=\"f-{name}\"")).nth(1).unwrap();
        select.split("<option value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    assert_eq!((first("role"), first("expires")), ("member".to_owned(), "90".to_owned()));
}

/// rules: CONSOLE-18
#[both_engines]
async fn without_a_script_every_dialog_is_a_page_and_asks_first(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    for (list, form) in [
        ("keys", "keys/new"),
        ("members", "members/invite"),
        ("domains", "domains/new"),
        ("webhooks", "webhooks/new"),
        ("integrations", "integrations/new"),
        ("knowledge", "knowledge/new"),
        ("knowledge", "knowledge/remember"),
    ] {
        let page = ada.page(&format!("/console/{list}")).await;
        assert!(page.contains(&format!("href=\"/console/{form}\" data-dialog=")), "{form}: {page}");
        assert!(!page.contains("<button type=\"button\" class=\"btn primary\" data-dialog"), "{list}");
        ada.page(&format!("/console/{form}")).await;
    }

    // Nothing is destroyed by a form that was not confirmed.
    let mailbox = ada.mailbox("Billing").await;
    let label = json!({ "name": "VIP" });
    let labels = format!("/api/v1/mailboxes/{}/custom-labels", mailbox.id);
    let label = ada.tenant.key.post(&labels, label).await.ok();
    let one = format!("labels/{}/delete", label["id"].as_str().unwrap());
    let asked = ada.form(&mailbox.at(&one), &[]).await;
    assert!(asked.status == 200 && asked.text().contains("<h1>Delete this label?</h1>"), "{}", asked.text());
    assert_eq!(ada.tenant.key.get(&labels).await.ok().as_array().unwrap().len(), 1);
    assert_eq!(ada.form(&mailbox.at(&one), &[("confirmed", "1")]).await.status, 303);
    assert_eq!(ada.tenant.key.get(&labels).await.ok(), json!([]));

    // A mailbox needs its address typed.
    let path = mailbox.at("delete");
    let page = ada.page(&mailbox.at("settings")).await;
    assert!(page.contains(&format!("data-confirm-typed=\"{}\"", mailbox.address)), "{page}");
    for fields in [vec![], vec![("confirmed", "1")], vec![("confirmed", "1"), ("typed", "Billing")]] {
        let asked = ada.form(&path, &fields).await;
        let title = format!("Delete mailbox {}?", mailbox.address);
        assert!(asked.status == 200 && asked.text().contains(&title), "{}", asked.text());
    }
    ada.page(&mailbox.at("settings")).await;
    let typed = [("confirmed", "1"), ("typed", mailbox.address.as_str())];
    assert_eq!(ada.form(&path, &typed).await.header("location"), "/console");
    assert_eq!(ada.get(&mailbox.at("settings")).await.status, 404);
}
