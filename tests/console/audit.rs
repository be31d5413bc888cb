//! The audit log of what is done in the console, and the page that shows it.

use std::{collections::BTreeSet, fs, path::Path};

use model::Plan;
use serde_json::{Value, json};
use testkit::{Engine, PASSWORD, Server, ServerOptions, both_engines};

use super::person::{Mailbox, Person, form};

fn path(person: &Person, rest: &str) -> String {
    format!("/api/v1/workspaces/{}/{rest}", person.tenant.workspace)
}

async fn entries(person: &Person) -> Vec<Value> {
    let page = person.tenant.key.get(&path(person, "audit?limit=100")).await.ok();
    page["entries"].as_array().unwrap().clone()
}

/// Sends forms, each of which must leave one entry, and notes which routes they are.
struct Forms<'a> {
    person: &'a Person,
    tried: BTreeSet<String>,
}

impl Forms<'_> {
    /// `route` is the route with its parameters in braces; each is filled with the value that stands there.
    async fn send(&mut self, route: &str, values: &[&str], fields: &[(&str, &str)], operation: &str) {
        let mut place = route.to_owned();
        for value in values {
            let (begin, rest) = place.split_once('{').unwrap();
            place = format!("{begin}{value}{}", rest.split_once('}').unwrap().1);
        }
        let before = entries(self.person).await;
        let answer = self.person.form(&place, fields).await;
        assert!(answer.status < 400, "{place}: {} {}", answer.status, answer.text());
        let after = entries(self.person).await;
        let new: Vec<&Value> = after.iter().take(after.len() - before.len()).collect();
        let names: Vec<&Value> = new.iter().map(|entry| &entry["operation"]).collect();
        assert_eq!(names, [operation], "{place}");
        assert_eq!(new[0]["subject"], place, "{place}");
        let tenant = &self.person.tenant;
        assert_eq!(new[0]["actor"], json!({ "kind": "person", "id": tenant.account, "name": tenant.email }));
        assert_eq!(new[0]["address"], "127.0.0.1", "{place}");
        self.tried.insert(route.to_owned());
    }

    /// The ids of a list of the API.
    async fn ids(&self, list: &str) -> Vec<String> {
        let list = self.person.caller.get(list).await.ok();
        let list = list.as_array().unwrap().iter();
        list.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    }

    async fn last(&self, list: &str) -> String {
        self.ids(list).await.pop().unwrap()
    }
}

const YES: (&str, &str) = ("confirmed", "1");

async fn change_workspace(forms: &mut Forms<'_>) {
    let person = forms.person;
    let at = |rest: &str| path(person, rest);
    let key = [("name", "K"), ("role", "member"), ("expires", "")];
    forms.send("/console/keys", &[], &key, "createApiKey").await;
    let key = forms.last(&at("api-keys")).await;
    forms.send("/console/keys/{key}", &[&key], &[("name", "Reader")], "updateApiKey").await;
    forms.send("/console/keys/{key}/revoke", &[&key], &[YES], "revokeApiKey").await;
    let invite = [("email", "bob@people.test"), ("role", "member")];
    forms.send("/console/members/invite", &[], &invite, "createInvite").await;
    let invite = forms.last(&at("invites")).await;
    forms.send("/console/invites/{invite}/resend", &[&invite], &[], "resendInvite").await;
    forms.send("/console/invites/{invite}/withdraw", &[&invite], &[YES], "deleteInvite").await;
    forms.send("/console/domains", &[], &[("domain", "example.org")], "createEmailDomain").await;
    let domain = forms.last(&at("email-domains")).await;
    forms.send("/console/domains/{domain}/delete", &[&domain], &[YES], "deleteEmailDomain").await;
    let hook = [("url", "http://127.0.0.1:9/"), ("type", "message.sent")];
    forms.send("/console/webhooks", &[], &hook, "createWebhook").await;
    let hook = forms.last(&at("webhooks")).await;
    forms.send("/console/webhooks/{hook}/test", &[&hook], &[], "testWebhook").await;
    forms.send("/console/webhooks/{hook}/rotate", &[&hook], &[YES], "rotateWebhookSecret").await;
    let paused = [("status", "paused")];
    forms.send("/console/webhooks/{hook}/status", &[&hook], &paused, "updateWebhook").await;
    forms.send("/console/webhooks/{hook}/delete", &[&hook], &[YES], "deleteWebhook").await;
    let tools = [("name", "Tools"), ("url", "http://127.0.0.1:9/"), ("headers", "")];
    forms.send("/console/integrations", &[], &tools, "createIntegrationConnection").await;
    let tools = forms.last("/api/v1/integrations/connections").await;
    let one = "/console/integrations/{connection}";
    forms.send(&format!("{one}/sync"), &[&tools], &[], "syncIntegrationConnection").await;
    forms.send(&format!("{one}/delete"), &[&tools], &[YES], "deleteIntegrationConnection").await;
    let settings = [("name", "Engines"), ("timezone", "UTC")];
    forms.send("/console/settings", &[], &settings, "updateWorkspace").await;
    let policy = [("mode", "open"), ("review", "none"), ("hours", "72")];
    forms.send("/console/send-policy", &[], &policy, "setSendPolicy").await;
    let address = [("address", "no@remote.test")];
    forms.send("/console/suppressions", &[], &address, "createSuppression").await;
    let list = forms.person.tenant.key.get(&path(forms.person, "suppressions")).await.ok();
    let id = list["suppressions"][0]["id"].as_str().unwrap();
    let reason = [("reason", "It was a typo")];
    forms.send("/console/suppressions/{id}/remove", &[id], &reason, "deleteSuppression").await;
    forms.send("/console/reviews/watch", &[], &[("on", "1")], "watchReviews").await;
    let code = [("code", "abc"), ("payout_email", "ada@people.test")];
    forms.send("/console/affiliate", &[], &code, "signUpAffiliate").await;
    forms.send("/console/knowledge/remember", &[], &[("text", "T")], "remember").await;
    forms.send("/console/knowledge/verify", &[], &[], "verifyMemoryCredentials").await;
}

async fn change_mailbox(forms: &mut Forms<'_>, mailbox: &Mailbox) {
    let id = mailbox.id.as_str();
    let made = [("name", "Support"), ("local", ""), ("domain", "agents.test")];
    forms.send("/console/mailboxes/new", &[], &made, "createMailbox").await;
    let settings = [("name", "Billing"), ("signature", "Ada B.")];
    forms.send("/console/m/{mailbox}/settings", &[id], &settings, "updateMailbox").await;
    let policy = [("mode", "known"), ("review", "none"), ("hours", "72")];
    let own = "/console/m/{mailbox}/send-policy";
    forms.send(own, &[id], &policy, "setMailboxSendPolicy").await;
    forms.send(&format!("{own}/delete"), &[id], &[YES], "deleteMailboxSendPolicy").await;
    forms.send("/console/m/{mailbox}/folders", &[id], &[("name", "Bills")], "createFolder").await;
    let gone = [YES];
    let folders = "/console/m/{mailbox}/folders/{folder}/delete";
    forms.send(folders, &[id, "bills"], &gone, "deleteFolder").await;
    let label = [("name", "Bank"), ("rules", ""), ("color", "#112233")];
    forms.send("/console/m/{mailbox}/labels", &[id], &label, "createCustomLabel").await;
    let label = forms.last(&format!("/api/v1/mailboxes/{id}/custom-labels")).await;
    let labels = "/console/m/{mailbox}/labels/{label}/delete";
    forms.send(labels, &[id, &label], &gone, "deleteCustomLabel").await;
    forms.send("/console/m/{mailbox}/test-message", &[id], &[], "importEmails").await;
    let page = forms.person.tenant.key.get(&format!("/api/v1/mailboxes/{id}/emails")).await.ok();
    let thread = page["emails"][0]["thread_id"].as_str().unwrap().to_owned();
    let act = [("thread", thread.as_str()), ("action", "trash"), ("folder", "inbox")];
    forms.send("/console/m/{mailbox}/act", &[id], &act, "bulkDeleteEmails").await;
    forms.send("/console/m/{mailbox}/empty-trash", &[id], &gone, "emptyTrash").await;
}

async fn operate(forms: &mut Forms<'_>) {
    let workspace = forms.person.tenant.workspace.to_string();
    let plan = [("plan", "enterprise")];
    forms.send("/console/operator/workspaces/{workspace}/plan", &[&workspace], &plan, "setPlan").await;
    let payout = [
        ("workspace", workspace.as_str()),
        ("amount", "12.5"),
        ("currency", "usd"),
        ("status", "paid"),
        ("period_start", "2026-06-01"),
        ("period_end", "2026-07-01"),
        ("reference", "wire 7"),
    ];
    forms.send("/console/operator/payouts", &[], &payout, "addPayout").await;
}

/// Routes whose entries are tested elsewhere, or that leave none.
const OTHERS: &[&str] = &[
    // People who are not logged in, in `tests/api/audit.rs` over the same functions.
    "/console/login",
    "/console/sign-up",
    "/console/verify",
    "/console/reset",
    "/console/invite",
    "/console/invite/login",
    "/console/account/sessions/{session}/end",
    "/console/account/password",
    "/console/logout",
    // These change nothing that stays: a link that is only asked for, and what a session shows.
    "/console/forgot",
    "/console/workspace",
    // Operations of the API with a call of their own, in `tests/store/upkeep.rs`.
    "/console/domains/{domain}/check",
    "/console/integrations/{connection}/tools",
    "/console/knowledge",
    "/console/knowledge/d/{document}/delete",
    "/console/knowledge/d/{document}/verify",
    "/console/knowledge/m/{blob}/forget",
    "/console/m/{mailbox}/agent",
    "/console/m/{mailbox}/agent/{conversation}",
    "/console/m/{mailbox}/agent/{conversation}/delete",
    "/console/m/{mailbox}/agent/{conversation}/rename",
    "/console/m/{mailbox}/compose",
    "/console/m/{mailbox}/delete",
    "/console/m/{mailbox}/drafts/{draft}/delete",
    "/console/m/{mailbox}/scheduled/{send}/cancel",
    "/console/m/{mailbox}/scheduled/{send}/move",
    "/console/m/{mailbox}/scheduled/{send}/undo",
    "/console/m/{mailbox}/telegram/link",
    "/console/m/{mailbox}/telegram/unlink",
    "/console/m/{mailbox}/triage-tasks/{task}",
    "/console/m/{mailbox}/triage/auto-draft",
    "/console/m/{mailbox}/triage/new",
    "/console/m/{mailbox}/triage/{triager}",
    "/console/m/{mailbox}/triage/{triager}/default",
    "/console/m/{mailbox}/triage/{triager}/delete",
    "/console/m/{mailbox}/triage/{triager}/enabled",
    "/console/m/{mailbox}/triage/{triager}/talk",
    "/console/m/{mailbox}/undo",
    "/console/members/{account}/remove",
    "/console/members/{account}/role",
    // In `tests/console/suppressions.rs`.
    "/console/suppressions/import",
    // In `tests/console/reviews.rs`, over the operations of the API.
    "/console/reviews/decide",
    "/console/reviews/undo",
    "/console/reviews/{review}",
    "/console/reviews/{review}/approve",
    "/console/reviews/{review}/reject",
    "/console/webhooks/{hook}/deliveries/{delivery}/retry",
];

/// The routes of the console that take a form, as its sources declare them.
fn declared() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let console = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/web/src/console");
    let mut folders = vec![console];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let place = entry.unwrap().path();
            if place.is_dir() {
                folders.push(place);
                continue;
            }
            let source = fs::read_to_string(&place).unwrap();
            let named = |name: &str| {
                let (_, rest) = source.split_once(&format!("const {name}: &str = \"")).unwrap();
                rest.split('"').next().unwrap().to_owned()
            };
            for route in source.split(".route(").skip(1) {
                let route = route.split_once("\n        .").map_or(route, |(route, _)| route);
                let route = route.split_once("\n}").map_or(route, |(route, _)| route);
                let Some((name, handlers)) = route.split_once(',') else { continue };
                if handlers.contains("post(") {
                    let name = name.trim();
                    found.insert(
                        name.strip_prefix('"')
                            .map_or_else(|| named(name), |text| text.trim_end_matches('"').to_owned()),
                    );
                }
            }
        }
    }
    found.retain(|route| route.starts_with("/console/"));
    found
}

/// rules: AUDIT-1, AUDIT-7
#[both_engines]
async fn every_form_leaves_an_entry(engine: Engine) {
    let options = ServerOptions { webhooks_allow_private: true, ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Billing").await;
    let mut forms = Forms { person: &ada, tried: BTreeSet::new() };
    change_workspace(&mut forms).await;
    change_mailbox(&mut forms, &mailbox).await;
    operate(&mut forms).await;
    let all = [YES];
    forms.send("/console/account/logout-everywhere", &[], &all, "logOutEverywhere").await;
    let known: BTreeSet<String> =
        forms.tried.iter().cloned().chain(OTHERS.iter().map(ToString::to_string)).collect();
    let declared = declared();
    assert!(declared.len() > 60, "{declared:?}");
    let unknown: Vec<&String> = declared.difference(&known).collect();
    assert!(unknown.is_empty(), "try these forms here, or say why not: {unknown:?}");
    let gone: Vec<&String> = known.difference(&declared).collect();
    assert!(gone.is_empty(), "these are no routes: {gone:?}");
}

/// rules: AUDIT-8, AUDIT-11
#[both_engines]
async fn the_log_is_shown_and_filtered(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    ada.form("/console/settings", &[("name", "<b>Engines</b>"), ("timezone", "Europe/Berlin")]).await;
    ada.form(&mailbox.at("test-message"), &[]).await;
    let page = ada.page("/console/audit").await;
    assert!(page.contains("<strong>Update workspace</strong>") && page.contains("aria-current"), "{page}");
    assert!(page.contains(&ada.tenant.email) && page.contains("127.0.0.1"), "{page}");
    assert!(page.contains("&#60;b&#62;Engines&#60;/b&#62;") && !page.contains("<b>Engines"), "{page}");
    assert!(!page.contains("<strong>Import emails</strong>"), "everyday work is left out");
    let page = ada.page("/console/audit?routine=1").await;
    assert!(page.contains("<strong>Import emails</strong>"), "{page}");
    let page = ada.page("/console/audit?operation=updateWorkspace").await;
    assert_eq!(page.matches("<strong>Update workspace</strong>").count(), 1, "{page}");
    assert!(!page.contains("<strong>Create mailbox</strong>"), "{page}");
    let page = ada.page(&format!("/console/audit?mailbox={}", mailbox.id)).await;
    assert!(page.contains("<strong>Create mailbox</strong>") && !page.contains("<strong>Log in"), "{page}");
    let page = ada.page("/console/audit?since=2026-07-14&until=2026-07-14").await;
    assert!(page.contains("<strong>Update workspace</strong>"), "{page}");
    let page = ada.page("/console/audit?since=2026-07-15").await;
    assert!(page.contains("No matching entries"), "{page}");
    for wrong in ["operation=nothing", "since=soon", "mailbox=x", "cursor=x"] {
        assert_eq!(ada.get(&format!("/console/audit?{wrong}")).await.status, 400, "{wrong}");
    }
    // More than a page.
    for number in 0..30 {
        let name = format!("Name {number}");
        ada.form("/console/settings", &[("name", &name), ("timezone", "UTC")]).await;
    }
    let page = ada.page("/console/audit?operation=updateWorkspace").await;
    let older = page.split("Older").next().unwrap().rsplit("href=\"").next().unwrap();
    let older = older.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
    let page = ada.page(&older).await;
    assert_eq!(page.matches("<strong>Update workspace</strong>").count(), 6, "{page}");
    assert!(page.contains("Newest"), "{page}");
}

/// rules: AUDIT-8
#[both_engines]
async fn members_do_not_see_the_log(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let invites = path(&ada, "invites");
    let invite = ada.tenant.key.post(&invites, json!({ "email": "bob@people.test" })).await.ok();
    let token = invite["link"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    let browser = server.anonymous().with("sec-fetch-site", "same-origin");
    let fields = [("token", token.as_str()), ("password", PASSWORD), ("name", "Bob")];
    let joined = form(&browser, "/console/invite", &fields).await;
    let bob = server.cookie(&joined.session_secret());
    assert_eq!(bob.get("/console/audit").await.status, 403);
    assert!(!bob.get("/console").await.text().contains("/console/audit"));
    let other = server.tenant(Plan::Free).await;
    let page = server.log_in(&other).await.get("/console/audit").await.text();
    assert!(!page.contains(&ada.tenant.email), "{page}");
}
