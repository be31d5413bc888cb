//! Writing mail in the console: sending, drafts, mails for later, the sandbox.

use std::fmt::Write as _;

use axum::body::Body;
use http::Method;
use model::sending::OutboundMode;
use operations::Outbound;
use testkit::{Answer, Engine, Server, ServerOptions, both_engines};

use super::person::{Mailbox, Person};

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC";

pub(super) async fn sandbox(engine: Engine) -> Server {
    let outbound = Outbound::new(OutboundMode::Sandbox);
    Server::with(engine, ServerOptions { outbound, ..ServerOptions::default() }).await
}

/// Sends the form of the composer with its fields and files, as a browser does.
pub(super) async fn compose(
    person: &Person,
    mailbox: &Mailbox,
    fields: &[(&str, &str)],
    files: &[(&str, &str)],
) -> Answer {
    let mut body = String::new();
    for (name, value) in fields {
        let _ = write!(body, "--cut\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    for (name, content) in files {
        let _ = write!(
            body,
            "--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: text/plain\r\n\r\n{content}\r\n"
        );
    }
    body.push_str("--cut--\r\n");
    let caller = &person.caller;
    let kind = Some("multipart/form-data; boundary=cut");
    caller.send_raw(Method::POST, &mailbox.at("compose"), kind, Body::from(body)).await
}

/// rules: CONSOLE-10
#[both_engines]
async fn what_is_written_leaves_and_the_sandbox_shows_it(engine: Engine) {
    let server = sandbox(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let html =
        format!("<div>Look: <b>here</b></div><img src=\"data:image/png;base64,{PIXEL}\"><script>x</script>");
    let fields = [
        ("mode", "new"),
        ("to", "Bob <bob@remote.test>"),
        ("cc", "carol@remote.test"),
        ("subject", "Plans & <b>more</b>"),
        ("html", html.as_str()),
        ("action", "send"),
    ];
    let sent = compose(&ada, &mailbox, &fields, &[("notes.txt", "some notes")]).await;
    assert_eq!(sent.status, 303, "{}", sent.text());
    let page = ada.page("/console/sandbox").await;
    assert!(
        page.contains("Plans &#38; &#60;b&#62;more") || page.contains("Plans &amp; &lt;b&gt;more"),
        "{page}"
    );
    assert!(page.contains("Bob") && page.contains("Sandbox is on"));
    let path = format!("/api/v1/mailboxes/{}/emails?folder=sent", mailbox.id);
    let mail = ada.tenant.key.get(&path).await.ok()["emails"][0].clone();
    assert_eq!((&mail["delivery_status"], &mail["attachment_count"]), (&"sandboxed".into(), &2.into()));
    let path = format!("/api/v1/mailboxes/{}/emails/{}", mailbox.id, mail["id"].as_str().unwrap());
    let body = ada.tenant.key.get(&path).await.ok()["body"].as_str().unwrap().to_owned();
    assert!(body.contains("cid:image1.console") && !body.contains("script"), "{body}");
    // The picture is shown where it stands.
    let frame =
        ada.page(&format!("/console/m/{}/e/{}/frame", mailbox.id, mail["id"].as_str().unwrap())).await;
    assert!(frame.contains("src=\"data:image/png;base64,"), "{frame}");
}

/// rules: CONSOLE-1
#[both_engines]
async fn answers_belong_to_their_conversation(engine: Engine) {
    let server = sandbox(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let raw = "From: Ann <ann@remote.test>\r\nTo: me@agents.test\r\nSubject: Question\r\nMessage-ID: <q@remote.test>\r\n\r\nWhy?\r\n";
    let id = server.receive(&mailbox.address, raw).await;
    let form = ada.page(&mailbox.at(&format!("compose?reply={id}"))).await;
    assert!(form.contains("value=\"Re: Question\"") && form.contains("ann@remote.test"), "{form}");
    let fields = [
        ("mode", "reply"),
        ("source", id.as_str()),
        ("to", "ann@remote.test"),
        ("subject", "Re: Question"),
        ("text", "Because."),
        ("action", "send"),
    ];
    assert_eq!(compose(&ada, &mailbox, &fields, &[]).await.status, 303);
    let path = format!("/api/v1/mailboxes/{}/threads", mailbox.id);
    let threads = ada.tenant.key.get(&path).await.ok();
    assert_eq!(threads["threads"][0]["mail_count"], 2, "{threads}");
    let fields = [
        ("mode", "forward"),
        ("source", id.as_str()),
        ("to", "carl@remote.test"),
        ("subject", "Fwd: Question"),
        ("text", "See below."),
        ("action", "send"),
    ];
    assert_eq!(compose(&ada, &mailbox, &fields, &[]).await.status, 303);
    // What is missing is told, and nothing that was written is lost.
    let fields =
        [("mode", "new"), ("to", ""), ("subject", "Lost?"), ("text", "A long letter"), ("action", "send")];
    let refused = compose(&ada, &mailbox, &fields, &[]).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("To: add at least one recipient.")
            && refused.text().contains("A long letter")
    );
}

/// A mail of HTML with a picture of its own, one of another server, and a file.
fn report() -> String {
    format!(
        "From: Ann <ann@remote.test>\r\nTo: me@agents.test\r\nSubject: Report\r\nMessage-ID: <r@remote.test>\r\n\
         MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=cut\r\n\r\n\
         --cut\r\nContent-Type: text/html\r\n\r\n<p style=\"color:red\">Numbers</p>\
         <img src=\"cid:logo@remote.test\"><img src=\"https://pictures.test/a.png\">\r\n\
         --cut\r\nContent-Type: image/png; name=logo.png\r\nContent-ID: <logo@remote.test>\r\n\
         Content-Disposition: inline; filename=logo.png\r\nContent-Transfer-Encoding: base64\r\n\r\n{PIXEL}\r\n\
         --cut\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=numbers.txt\r\n\r\n1,2,3\r\n--cut--\r\n"
    )
}

/// rules: CONSOLE-1
#[both_engines]
#[expect(clippy::too_many_lines, reason = "one mail from its first draft until it leaves")]
async fn a_mail_that_is_passed_on_can_wait_as_a_draft(engine: Engine) {
    let server = sandbox(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let id = server.receive(&mailbox.address, report()).await;
    let form = ada.page(&mailbox.at(&format!("compose?forward={id}"))).await;
    assert!(form.contains("Save draft") && form.contains("Send later"), "{form}");
    let fields = [
        ("mode", "forward"),
        ("source", id.as_str()),
        ("to", "carl@remote.test"),
        ("subject", "Fwd: Report"),
        ("text", "Look at this.\nAda"),
        ("action", "autosave"),
    ];
    let saved = compose(&ada, &mailbox, &fields, &[("own.txt", "mine")]).await.ok();
    assert_eq!(saved["below"], true);
    let names: Vec<&str> =
        saved["files"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["numbers.txt", "own.txt"], "the picture belongs to the text");
    let draft = saved["draft_id"].as_str().unwrap().to_owned();
    let page = ada.page(&mailbox.at(&format!("compose?draft={draft}"))).await;
    assert!(page.contains("Look at this.<br>Ada") && page.contains("name=\"below\" value=\"1\""), "{page}");
    assert!(!page.contains("Numbers"), "the original does not come by way of the editor");

    // One file is left out, and something else is said; the original stays as it came.
    let kept = saved["files"][0]["id"].as_str().unwrap().to_owned();
    let html = format!("<div>Or <b>that</b>. <img src=\"data:image/png;base64,{PIXEL}\"></div>");
    let fields = [
        ("mode", "new"),
        ("draft_id", draft.as_str()),
        ("below", "1"),
        ("keep", kept.as_str()),
        ("to", "carl@remote.test"),
        ("subject", "Fwd: Report"),
        ("html", html.as_str()),
        ("action", "autosave"),
    ];
    let saved = compose(&ada, &mailbox, &fields, &[]).await.ok();
    assert_eq!((&saved["draft_id"], &saved["files"].as_array().unwrap().len()), (&draft.as_str().into(), &1));
    let fields = fields.map(|(name, value)| if name == "action" { (name, "send") } else { (name, value) });
    let kept = saved["files"][0]["id"].as_str().unwrap().to_owned();
    let fields =
        fields.map(|(name, value)| if name == "keep" { (name, kept.as_str()) } else { (name, value) });
    let sent = compose(&ada, &mailbox, &fields, &[]).await;
    assert_eq!(sent.status, 303, "{}", sent.text());
    let path = format!("/api/v1/mailboxes/{}/emails?folder=sent", mailbox.id);
    let mail = ada.tenant.key.get(&path).await.ok()["emails"][0].clone();
    assert_eq!(mail["attachment_count"], 3, "{mail}");
    // It stays beside what it passes on, and answers nobody.
    let original = format!("/api/v1/mailboxes/{}/emails/{id}", mailbox.id);
    let original = ada.tenant.key.get(&original).await.ok();
    assert_eq!(mail["thread_id"], original["thread_id"]);
    assert_eq!(mail["email_references"], "r@remote.test", "{mail}");
    assert!(mail["in_reply_to"].is_null(), "{mail}");
    let path = format!("/api/v1/mailboxes/{}/emails/{}", mailbox.id, mail["id"].as_str().unwrap());
    let body = ada.tenant.key.get(&path).await.ok()["body"].as_str().unwrap().to_owned();
    for part in
        ["<b>that</b>", ".console", "color:red", "cid:logo@remote.test", "https://pictures.test/a.png"]
    {
        assert!(body.contains(part), "{part} in {body}");
    }
    assert!(!body.contains("Look at this"), "{body}");
    let drafts = ada.tenant.key.get(&format!("/api/v1/mailboxes/{}/drafts", mailbox.id)).await.ok();
    assert_eq!(drafts["drafts"].as_array().unwrap().len(), 0, "{drafts}");

    let fields = [
        ("mode", "forward"),
        ("source", id.as_str()),
        ("to", "carl@remote.test"),
        ("subject", "Fwd: Report"),
        ("text", "Later."),
        ("at", "2026-07-15T08:30"),
        ("action", "schedule"),
    ];
    let scheduled = compose(&ada, &mailbox, &fields, &[]).await;
    assert_eq!(scheduled.status, 303, "{}", scheduled.text());
    assert!(ada.page(&mailbox.at("scheduled")).await.contains("Fwd: Report"));
    let thread =
        format!("/api/v1/mailboxes/{}/threads/{}", mailbox.id, original["thread_id"].as_str().unwrap());
    let thread = ada.tenant.key.get(&thread).await.ok();
    let folders: Vec<&str> =
        thread.as_array().unwrap().iter().map(|one| one["folder_id"].as_str().unwrap()).collect();
    assert_eq!(folders, ["inbox", "sent", "scheduled"]);
}

/// rules: CONSOLE-1
#[both_engines]
async fn drafts_save_themselves_and_leave_later(engine: Engine) {
    let server = sandbox(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    ada.form("/console/settings", &[("name", "Engines"), ("timezone", "Europe/Berlin")]).await;
    let fields = [
        ("mode", "new"),
        ("to", "bob@remote.test"),
        ("subject", "Later"),
        ("text", "Hi"),
        ("action", "autosave"),
    ];
    let saved = compose(&ada, &mailbox, &fields, &[("a.txt", "aaa")]).await.ok();
    let draft = saved["draft_id"].as_str().unwrap().to_owned();
    assert_eq!(saved["files"][0]["name"], "a.txt");
    let file = saved["files"][0]["id"].as_str().unwrap().to_owned();
    let page = ada.page(&mailbox.at(&format!("compose?draft={draft}"))).await;
    assert!(page.contains("a.txt") && page.contains("value=\"Later\""), "{page}");
    let fields = [
        ("mode", "new"),
        ("draft_id", draft.as_str()),
        ("keep", file.as_str()),
        ("to", "bob@remote.test"),
        ("subject", "Later"),
        ("text", "Hi"),
        ("at", "2026-07-15T08:30"),
        ("action", "schedule"),
    ];
    let scheduled = compose(&ada, &mailbox, &fields, &[]).await;
    assert_eq!(scheduled.status, 303, "{}", scheduled.text());
    let list = ada.page(&mailbox.at("scheduled")).await;
    assert!(list.contains("15 Jul 2026, 08:30 CEST"), "{list}");
    let api = format!("/api/v1/mailboxes/{}/scheduled-sends", mailbox.id);
    let found = ada.tenant.key.get(&api).await.ok();
    assert_eq!(found["scheduled_sends"][0]["scheduled_send_at"], "2026-07-15T06:30:00.000Z");
    let path = list
        .split("action=\"")
        .find(|piece| piece.contains("/move\""))
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    ada.form(&path, &[("at", "2026-07-16T09:00")]).await;
    assert!(ada.page(&mailbox.at("scheduled")).await.contains("16 Jul 2026, 09:00 CEST"));
    let asked = ada.form(&path.replace("/move", "/cancel"), &[]).await;
    assert!(asked.text().contains("Cancel this send?"), "{}", asked.text());
    assert!(ada.page(&mailbox.at("scheduled")).await.contains("16 Jul 2026"), "nothing happens unconfirmed");
    ada.form(&path.replace("/move", "/cancel"), &[("confirmed", "1")]).await;
    assert!(ada.page(&mailbox.at("scheduled")).await.contains("Nothing is scheduled"));
    assert!(ada.page(&mailbox.at("f/draft")).await.contains("Later"));
    let drop = mailbox.at(&format!("drafts/{draft}/delete"));
    assert!(ada.form(&drop, &[]).await.text().contains("Delete this draft?"));
    assert_eq!(ada.form(&drop, &[("confirmed", "1")]).await.status, 303);
    assert!(!ada.page(&mailbox.at("f/draft")).await.contains("Later"));
}
