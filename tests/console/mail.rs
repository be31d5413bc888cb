//! Mail in the console: hostile mail stays text, frames can do nothing, news come by themselves.

use serde_json::json;
use testkit::{Engine, ScriptedModel, Server, ServerOptions, both_engines};

use super::person::{Mailbox, Person, cookies};

const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>";

/// A mail with something hostile in every place that is shown.
fn hostile() -> String {
    format!(
        "From: \"{0}\" <eve@remote.test>\r\nTo: \"{0}\" <me@agents.test>\r\nSubject: {0}\r\n\
         Message-ID: <{1}@remote.test>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=cut\r\n\r\n\
         --cut\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{0} https://x.test/\"onmouseover=alert(3)\r\n\
         --cut\r\nContent-Type: text/plain; name=\"{2}\"\r\nContent-Disposition: attachment; filename=\"{2}\"\r\n\r\nx\r\n--cut--\r\n",
        HOSTILE.replace('"', ""),
        "hostile",
        "<img src=x onerror=alert(4)>.txt",
    )
}

fn html(body: &str) -> String {
    format!(
        "From: Ann <ann@remote.test>\r\nSubject: Page\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/html; charset=utf-8\r\n\r\n{body}\r\n"
    )
}

async fn thread(person: &Person, mailbox: &Mailbox) -> String {
    let page = person.page(&mailbox.at("f/inbox")).await;
    page.split("data-thread=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

#[track_caller]
fn assert_harmless(page: &str) {
    for bad in ["<img src=x", "<script>alert", "\"onmouseover"] {
        assert!(!page.contains(bad), "{bad} in {page}");
    }
}

/// rules: CONSOLE-4
#[both_engines]
async fn nothing_in_a_mail_becomes_markup(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox(HOSTILE).await;
    let color = ("color", "#112233");
    let label = ada.form(&mailbox.at("labels"), &[("name", HOSTILE), ("rules", ""), color]).await;
    assert_eq!(label.status, 303);
    ada.form(&mailbox.at("folders"), &[("name", HOSTILE)]).await;
    ada.form("/console/settings", &[("name", HOSTILE), ("timezone", "UTC")]).await;
    ada.form("/console/keys", &[("name", HOSTILE), ("role", "member")]).await;
    let id = server.receive(&mailbox.address, hostile()).await;
    let thread = thread(&ada, &mailbox).await;
    let paths = [
        mailbox.at("f/inbox"),
        mailbox.at(&format!("f/inbox/{thread}")),
        mailbox.at("search?q=x%22%3E%3Cscript%3Ealert(5)%3C%2Fscript%3E"),
        mailbox.at("settings"),
        mailbox.at(&format!("compose?reply={id}&all=1")),
        mailbox.at(&format!("compose?forward={id}")),
        mailbox.at("compose?to=%22%3E%3Cscript%3Ealert(6)%3C%2Fscript%3E"),
        mailbox.email(&id, "view"),
        mailbox.email(&id, "agent"),
        mailbox.email(&id, "details"),
        mailbox.email(&id, "source"),
        "/console".to_owned(),
        "/console/keys".to_owned(),
        "/console/settings".to_owned(),
        "/console/events".to_owned(),
        "/console/audit".to_owned(),
        "/console/members".to_owned(),
    ];
    for path in paths {
        let page = ada.page(&path).await;
        assert_harmless(&page);
    }
    let list = ada.page(&mailbox.at("f/inbox")).await;
    assert!(list.contains("&#60;img src=x") || list.contains("&lt;img src=x"), "{list}");
}

/// rules: CONSOLE-3, CONSOLE-5
#[both_engines]
async fn html_is_shown_in_a_frame_that_can_do_nothing(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let body = "<p>Hello <b>you</b></p><script>alert(1)</script><img src=\"https://track.test/p.gif\">\
                    <form action=/console/logout method=post><button>x</button></form><a href=\"https://a.test/\">go</a>";
    let id = server.receive(&mailbox.address, html(body)).await;
    let view = ada.page(&mailbox.email(&id, "view")).await;
    let sandbox = view.split("sandbox=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(
        !sandbox.contains("script") && !sandbox.contains("same-origin") && !sandbox.contains("forms"),
        "{sandbox}"
    );
    assert!(view.contains("Show images") && !view.contains("track.test"));
    let frame = ada.get(&mailbox.email(&id, "frame")).await;
    let policy = frame.header("content-security-policy").to_owned();
    for part in
        ["default-src 'none'", "img-src data:;", "form-action 'none'", "frame-ancestors 'self'", "sandbox "]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("allow-scripts") && !policy.contains("allow-same-origin"), "{policy}");
    assert_eq!(frame.header("x-frame-options"), "SAMEORIGIN");
    assert_eq!(frame.header("cache-control"), "no-store");
    let text = frame.text();
    assert!(text.contains("<b>you</b>") && text.contains("rel=\"noopener noreferrer nofollow\""), "{text}");
    for bad in ["<script", "<form", "<button", "track.test"] {
        assert!(!text.contains(bad), "{bad} in {text}");
    }
    // Pictures of others come only when somebody asks.
    let asked = ada.get(&format!("{}?images=1", mailbox.email(&id, "frame"))).await;
    assert!(asked.text().contains("https://track.test/p.gif"));
    assert!(asked.header("content-security-policy").contains("img-src data: https: http:"));
}

/// rules: CONSOLE-3
#[both_engines]
async fn dangerous_mail_is_held_back_and_its_files_withheld(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let id = server.receive(&mailbox.address, html("<a href=\"javascript:alert(1)\">Click</a>")).await;
    let thread = thread(&ada, &mailbox).await;
    let page = ada.page(&mailbox.at(&format!("f/inbox/{thread}"))).await;
    assert!(page.contains("This message is dangerous") && !page.contains("<iframe"), "{page}");
    assert_eq!(ada.get(&mailbox.email(&id, "raw")).await.status, 403);
    assert!(ada.page(&mailbox.email(&id, "agent")).await.contains("only after it has passed the scan"));
}

/// rules: CONSOLE-8
#[both_engines]
async fn new_mail_is_told_at_once(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let mut live = ada.caller.stream("/console/live").await;
    let id = server.receive(&mailbox.address, html("Hello")).await;
    let (_, event) = live.next().await.unwrap();
    assert_eq!(event["type"], "message.received");
    // It has no To header, and nothing is said of one.
    let open = ada.page(&mailbox.at(&format!("f/inbox/{}", thread(&ada, &mailbox).await))).await;
    assert!(open.contains("class=\"when-open\"></span>"), "{open}");
    assert_eq!(event["mailbox_id"], mailbox.id.as_str());
    assert_eq!(event["data"]["email_id"], id.as_str());
    // A part of the list comes without the rest of the page.
    let rows = ada
        .caller
        .with("hx-request", "true")
        .with("hx-target", "rows")
        .get(&mailbox.at("f/inbox"))
        .await
        .text();
    assert!(rows.contains("Page") && !rows.contains("<html"), "{rows}");
    assert_eq!(server.anonymous().get("/console/live").await.status, 303);
}

/// rules: CONSOLE-1
#[both_engines]
async fn conversations_are_moved_marked_and_deleted(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    server.receive(&mailbox.address, html("Hello")).await;
    let thread = thread(&ada, &mailbox).await;
    let act = async |action: &str, folder: &str| {
        let fields = [("thread", thread.as_str()), ("action", action), ("folder", folder)];
        ada.partial(&mailbox.at("act"), &fields).await
    };
    assert!(ada.page(&mailbox.at("f/inbox")).await.contains("class=\"unread\""));
    assert_eq!(act("read", "inbox").await.status, 204);
    assert!(!ada.page(&mailbox.at("f/inbox")).await.contains("class=\"unread\""));
    assert_eq!(act("unread", "inbox").await.status, 204);
    assert!(ada.page(&mailbox.at("f/inbox")).await.contains("class=\"unread\""));
    let moved = act("archive", "inbox").await;
    assert!(moved.header("hx-trigger").contains("Conversation archived."), "{}", moved.header("hx-trigger"));
    assert!(!ada.page(&mailbox.at("f/inbox")).await.contains(&thread));
    assert!(ada.page(&mailbox.at("f/archive")).await.contains(&thread));
    act("trash", "archive").await;
    assert!(ada.page(&mailbox.at("f/trash")).await.contains(&thread));
    assert!(act("delete", "trash").await.header("hx-trigger").contains("confirm"));
    assert!(ada.page(&mailbox.at("f/trash")).await.contains(&thread));
    let fields = [("thread", thread.as_str()), ("action", "delete"), ("folder", "trash"), ("confirmed", "1")];
    assert_eq!(ada.partial(&mailbox.at("act"), &fields).await.status, 204);
    assert!(!ada.page(&mailbox.at("f/trash")).await.contains(&thread));
    // What is refused is told on the page that is open.
    let refused = act("archive", "inbox").await;
    assert_eq!((refused.status, refused.header("hx-reswap")), (200, "none"));
    assert!(refused.header("hx-trigger").contains("failed"), "{}", refused.header("hx-trigger"));
}

/// rules: CONSOLE-1, CONSOLE-18
#[both_engines]
async fn without_a_script_a_page_asks_before_something_is_deleted(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    server.receive(&mailbox.address, html("Hello")).await;
    let thread = thread(&ada, &mailbox).await;
    let back = mailbox.at("f/trash");
    ada.form(&mailbox.at("act"), &[("thread", &thread), ("action", "trash"), ("folder", "inbox")]).await;
    let fields = [("thread", thread.as_str()), ("action", "delete"), ("folder", "trash"), ("back", &back)];
    let asked = ada.form(&mailbox.at("act"), &fields).await;
    let page = asked.text();
    assert_eq!(asked.status, 200, "{page}");
    assert!(
        page.contains("<h1>Delete this conversation?</h1>") && page.contains("Delete conversation</button>"),
        "{page}"
    );
    // The same form again, with everything that was in it.
    for part in [
        format!("action=\"{}\"", mailbox.at("act")),
        format!("name=\"thread\" value=\"{thread}\""),
        "name=\"action\" value=\"delete\"".to_owned(),
        "name=\"confirmed\" value=\"1\"".to_owned(),
        format!("href=\"{back}\""),
    ] {
        assert!(page.contains(&part), "{part} in {page}");
    }
    assert!(ada.page(&back).await.contains(&thread));
    let asked = ada.form(&mailbox.at("empty-trash"), &[]).await.text();
    assert!(asked.contains("<h1>Empty Trash?</h1>"), "{asked}");
    assert!(ada.page(&back).await.contains(&thread));
    let done = ada.form(&mailbox.at("empty-trash"), &[("confirmed", "1")]).await;
    assert_eq!((done.status, done.header("location")), (303, back.as_str()));
    assert!(cookies(&done)[0].contains("1%20message%20deleted"), "{:?}", cookies(&done));
    assert!(!ada.page(&back).await.contains(&thread));
    // A form can say what its question is about; that stays text.
    let words =
        [("confirm_title", "Delete <b>it</b>?"), ("confirm_text", "Gone."), ("confirm_button", "Delete it")];
    let page = ada.form(&mailbox.at("empty-trash"), &words).await.text();
    assert!(
        !page.contains("<b>it</b>") && page.contains("Gone.") && page.contains("Delete it</button>"),
        "{page}"
    );
}

/// rules: CONSOLE-19
#[both_engines]
async fn moving_a_conversation_can_be_undone(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    server.receive(&mailbox.address, html("Hello")).await;
    ada.form(&mailbox.at("folders"), &[("name", "Bills & co")]).await;
    let thread = thread(&ada, &mailbox).await;
    let lies_in = async |folder: &str| ada.page(&mailbox.at(&format!("f/{folder}"))).await.contains(&thread);
    // With a script: the note on the open page says how.
    let fields = [("thread", thread.as_str()), ("action", "trash"), ("folder", "inbox")];
    let trashed = ada.partial(&mailbox.at("act"), &fields).await;
    let told: serde_json::Value = serde_json::from_str(trashed.header("hx-trigger")).unwrap();
    assert_eq!(told["toast"]["text"], "Conversation moved to Trash.");
    assert!(lies_in("trash").await && !lies_in("inbox").await);
    let undo = &told["toast"]["undo"];
    let data = undo["data"].as_str().unwrap();
    let undone = ada.partial(undo["action"].as_str().unwrap(), &[("data", data)]).await;
    assert_eq!(undone.status, 204);
    assert!(undone.header("hx-trigger").contains("Moved back."), "{}", undone.header("hx-trigger"));
    assert!(lies_in("inbox").await && !lies_in("trash").await);
    // Without: the next page has a form with a button, once.
    let back = mailbox.at("f/inbox");
    let moved = [("action", "move"), ("target", "bills-co"), ("back", back.as_str())];
    let fields: Vec<_> =
        [("thread", thread.as_str()), ("folder", "inbox")].into_iter().chain(moved).collect();
    let answer = ada.form(&mailbox.at("act"), &fields).await;
    assert_eq!((answer.status, answer.header("location")), (303, back.as_str()));
    assert!(lies_in("bills-co").await);
    let flash = cookies(&answer)[0].split(';').next().unwrap().to_owned();
    let both = format!("{}; {flash}", ada.caller.secret());
    let page = ada.caller.without("cookie").with("cookie", &both).get(&back).await.text();
    assert!(page.contains("Conversation moved.") && page.contains(">Undo</button>"), "{page}");
    let data = page.split("name=\"data\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let undone = ada.form(&mailbox.at("undo"), &[("data", data), ("back", &back)]).await;
    assert_eq!((undone.status, undone.header("location")), (303, back.as_str()));
    assert!(lies_in("inbox").await && !lies_in("bills-co").await);
    // What was not written by the server moves nothing.
    for bad in ["", "inbox", "nowhere:eml_1", "draft:eml_1"] {
        let refused = ada.partial(&mailbox.at("undo"), &[("data", bad)]).await;
        assert!(refused.header("hx-trigger").contains("failed"), "{bad}: {}", refused.header("hx-trigger"));
    }
}

/// rules: SEARCH-8, CONSOLE-1
#[both_engines]
async fn a_search_forgives_a_colon_and_shows_mistakes_above_the_list(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let raw =
        "From: ann@remote.test\r\nSubject: Re: Invoice 4711\r\n\r\nAt 12:30, see https://x.test/pay\r\n";
    server.receive(&mailbox.address, raw).await;
    for text in ["Re: Invoice 4711", "https://x.test/pay", "12:30", "Re:Invoice"] {
        let query = text.replace(' ', "+").replace(':', "%3A");
        let page = ada.page(&mailbox.at(&format!("search?q={query}"))).await;
        assert!(page.contains("1 result") && page.contains("Re: Invoice 4711</span>"), "{text}: {page}");
        assert!(!page.contains("has an error"), "{text}");
    }
    // The list and the text stay, with the place of the mistake.
    let page = ada.page(&mailbox.at("search?q=Re%3A+before%3Asoon+x")).await;
    assert!(page.contains("This search has an error. Character 12: expected a date"), "{page}");
    assert!(page.contains("Re: before:<mark>soon</mark> x"), "{page}");
    assert!(page.contains("value=\"Re: before:soon x\"") && page.contains("1 conversation"), "{page}");
    assert!(page.contains("data-thread=") && page.contains("aria-invalid=\"true\""), "{page}");
    let page = ada.page(&mailbox.at("search?q=%22open&in=trash")).await;
    assert!(page.contains("is not closed") && !page.contains("data-thread=\""), "{page}");
}

/// rules: CONSOLE-1
#[both_engines]
async fn an_empty_inbox_offers_its_address_and_a_test_message(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let page = ada.page(&mailbox.at("f/inbox")).await;
    let copy = format!("data-copy=\"{}\"", mailbox.address);
    assert_eq!(page.matches(&copy).count(), 2, "at the top and in the middle: {page}");
    assert!(page.contains("Send me a test message") && page.contains("0 conversations"), "{page}");
    let before = ada.tenant.key.get("/api/v1/mailboxes").await;
    let sent = ada.form(&mailbox.at("test-message"), &[]).await;
    assert_eq!((sent.status, sent.header("location")), (303, mailbox.at("f/inbox").as_str()));
    let page = ada.page(&mailbox.at("f/inbox")).await;
    assert!(page.contains("Your mailbox works") && page.contains("1 conversation<"), "{page}");
    assert!(page.contains("Just now") && page.contains(" UTC\""), "{page}");
    let mail = ada.tenant.key.get(&format!("/api/v1/mailboxes/{}/emails", mailbox.id)).await;
    assert_eq!((before.status, mail.ok()["totalCount"].as_i64()), (200, Some(1)));
    // Elsewhere it goes back to the page that asked.
    let sent = ada.form(&mailbox.at("test-message"), &[("back", "/console")]).await;
    assert_eq!(sent.header("location"), "/console");
}

/// rules: CONSOLE-1
#[both_engines]
async fn drafts_that_need_approval_say_so_and_urgent_mail_stands_out(engine: Engine) {
    let model = ScriptedModel::answering(|question| {
        let ids = question["triagers"].as_array().unwrap().iter().map(|one| one["id"].clone());
        json!({ "triagers": ids.map(|id| json!({ "id": id, "summary": "x", "reply": "Thank you." })).collect::<Vec<_>>() })
    });
    let options = ServerOptions { assistant: Some(model), ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let on = [("drafts", "on"), ("approval", "on"), ("automations", "on")];
    assert_eq!(ada.form(&mailbox.at("triage/auto-draft"), &on).await.status, 303);
    let raw = format!(
        "From: Ann <ann@remote.test>\r\nTo: {}\r\nSubject: Help\r\nMessage-ID: <1@remote.test>\r\n\r\nPlease help.\r\n",
        mailbox.address
    );
    let id = server.receive(&mailbox.address, raw).await;
    // The message is held until its answer is drafted.
    operations::triage::worker::run_due(&server.app).await.unwrap();
    let inbox = ada.page(&mailbox.at("f/inbox")).await;
    assert!(inbox.contains("Help") && !inbox.contains(">Urgent<"), "{inbox}");
    let change = json!({ "is_urgent": true });
    ada.tenant.key.put(&format!("/api/v1/mailboxes/{}/emails/{id}", mailbox.id), change).await.ok();
    let list = ada.page(&mailbox.at("search?q=help")).await;
    assert!(list.contains(">Urgent<"), "{list}");
    let drafts = ada.page(&mailbox.at("f/draft")).await;
    assert!(drafts.contains("Needs approval") && drafts.contains("1 draft<"), "{drafts}");
    let open = ada.page(&mailbox.at(&format!("f/inbox/{}", thread(&ada, &mailbox).await))).await;
    assert!(open.contains("Needs approval"), "{open}");
    assert_eq!(open.matches("Sender not verified").count(), 1, "of the message, not of the draft: {open}");
}
