//! The pages of the mailbox agent and of integrations, as a browser without scripts uses them.

use model::Plan;
use operations::ports::AssistantFault;
use testkit::{Engine, ScriptedModel, Server, ServerOptions, both_engines};

use super::person::Person;

fn with(model: &ScriptedModel) -> ServerOptions {
    ServerOptions { assistant: Some(model.clone()), webhooks_allow_private: true, ..ServerOptions::default() }
}

/// rules: AGENT-1, AGENT-2, METER-13
#[both_engines]
async fn a_conversation_by_forms(engine: Engine) {
    let model = ScriptedModel::saying("It is <b>bold</b> & quiet.");
    let server = Server::with(engine, with(&model)).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let credits = format!("/api/v1/workspaces/{}/usage/credits", ada.tenant.workspace);
    let before = ada.tenant.key.get(&credits).await.ok()["used"].as_i64().unwrap();
    let begun = ada.form(&mailbox.at("agent"), &[("content", "What is new?\nTell me.")]).await;
    assert_eq!(begun.status, 303, "{}", begun.text());
    let place = begun.header("location").trim_end_matches("#end").to_owned();
    let page = ada.page(&place).await;
    assert!(page.contains("<h1 class=\"break\">What is new?</h1>"), "{page}");
    assert!(
        page.contains("It is &#60; b&#62;bold&#60; /b&#62;") || page.contains("It is &lt; b&gt;bold"),
        "{page}"
    );
    assert!(!page.contains("<b>bold"));
    let after = ada.tenant.key.get(&credits).await.ok()["used"].as_i64().unwrap();
    assert_eq!(after - before, 26, "a message costs what it costs over the API");
    assert!(ada.page(&mailbox.at("agent")).await.contains("What is new?"));

    let said = ada.form(&place, &[("content", "Go on"), ("approve", "1")]).await;
    assert_eq!(said.status, 303, "{}", said.text());
    assert!(ada.page(&place).await.contains("Sending allowed"));
    let empty = ada.form(&place, &[("content", " ")]).await;
    assert!(empty.status == 200 && empty.text().contains("must not be empty"), "{}", empty.text());

    ada.form(&format!("{place}/rename"), &[("title", "Renamed <i>")]).await;
    assert!(ada.page(&place).await.contains("Renamed &"));
    let asked = ada.form(&format!("{place}/delete"), &[]).await;
    assert!(asked.status == 200 && asked.text().contains("Delete this conversation?"), "{}", asked.text());
    let gone = ada.form(&format!("{place}/delete"), &[("confirmed", "1")]).await;
    assert_eq!(gone.status, 303);
    assert_eq!(ada.get(&place).await.status, 404);
}

/// What was written is not lost when the model fails, and there is a hint when there is none.
/// rules: AGENT-8, AGENT-10
#[both_engines]
async fn failures_keep_what_was_written(engine: Engine) {
    let model = ScriptedModel::new(|_| Err(AssistantFault::Unavailable("asleep".to_owned())));
    let server = Server::with(engine, with(&model)).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let failed = ada.form(&mailbox.at("agent"), &[("content", "A long question")]).await;
    let page = failed.text();
    assert!(failed.status == 200 && page.contains("A long question</textarea>"), "{page}");
    assert!(page.contains("No language model is available."), "{page}");

    let without = Server::start(engine).await;
    let bob = Person::admin(&without).await;
    let mailbox = bob.mailbox("Support").await;
    assert!(bob.page(&mailbox.at("agent")).await.contains("ai.base_url"));
    let refused = bob.form(&mailbox.at("agent"), &[("content", "Hello")]).await;
    assert!(refused.text().contains("Set ai.base_url"), "{}", refused.text());
}

/// rules: INTEG-1, INTEG-2
#[both_engines]
async fn connections_by_forms(engine: Engine) {
    let server = Server::with(engine, with(&ScriptedModel::saying("x"))).await;
    let ada = Person::admin(&server).await;
    let bad = ada.form("/console/integrations", &[("name", "Tools"), ("url", "ftp://x")]).await;
    assert!(bad.text().contains("must begin with"), "{}", bad.text());
    let fields = [
        ("name", "Tools"),
        ("url", "http://127.0.0.1:9/"),
        ("headers", "Authorization: Bearer hush\nX-A: b"),
    ];
    let made = ada.form("/console/integrations", &fields).await;
    assert!(made.text().contains("does not work yet"), "{}", made.text());
    let page = ada.page("/console/integrations").await;
    assert!(page.contains("headers: Authorization, X-A") && !page.contains("hush"), "{page}");
    let id =
        page.split("action=\"/console/integrations/").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let synced = ada.form(&format!("/console/integrations/{id}/sync"), &[]).await;
    assert_eq!(synced.status, 303);
    let removed = ada.form(&format!("/console/integrations/{id}/delete"), &[("confirmed", "1")]).await;
    assert_eq!(removed.status, 303);
    assert!(ada.page("/console/integrations").await.contains("No connections yet"));
    assert_eq!(
        server.tenant(Plan::Free).await.key.get("/api/v1/integrations/connections").await.text(),
        "[]"
    );
}
