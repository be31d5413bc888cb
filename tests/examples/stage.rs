//! A server that listens, and workspaces with one of everything, for examples to be run against.

use model::{Plan, Timestamp, sending::OutboundMode};
use operations::{BotUpdates, Outbound, SignUpPolicy, ports::ChatMessage, ports::ChatReply, sending::worker};
use serde_json::{Value, json};
use testkit::{BotServer, Engine, Receiver, ScriptedModel, Server, ServerOptions};
use web::example_variable;

use crate::catalog::{self, World};

const SECRET: &str = "a secret of at least 32 characters";

/// A server that listens.
pub(super) struct Stage {
    pub(super) server: Server,
    url: String,
    hook: Receiver,
    _bot: BotServer,
}

/// The operations after which something that other examples need is gone.
pub(super) fn consumes(id: &str) -> bool {
    let deletes = ["delete", "revoke", "remove", "cancel", "forget", "unlink", "logOut", "bulk", "empty"];
    deletes.iter().any(|verb| id.starts_with(verb)) || ["sendDraft", "switchWorkspace"].contains(&id)
}

/// Reads a question for JSON as the triage worker asks it, and everything else as said to the agent.
fn model() -> ScriptedModel {
    ScriptedModel::new(|request| {
        let question = request.messages.iter().find_map(|message| match message {
            ChatMessage::User(text) => serde_json::from_str::<Value>(text).ok(),
            _ => None,
        });
        let triagers = question.as_ref().and_then(|question| question["triagers"].as_array().cloned());
        let text = match triagers {
            Some(triagers) => {
                let triagers: Vec<Value> = triagers
                    .iter()
                    .map(|one| json!({ "id": one["id"], "summary": "Nothing to do." }))
                    .collect();
                json!({ "category": "other", "is_urgent": false, "labels": [], "triagers": triagers })
                    .to_string()
            }
            None => "Thank you.".to_owned(),
        };
        Ok(ChatReply { text, calls: Vec::new() })
    })
}

#[expect(clippy::disallowed_methods, reason = "the examples go by the real clock")]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap())
}

impl Stage {
    pub(super) async fn start(engine: Engine) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bot = BotServer::start().await;
        let options = ServerOptions {
            public_url: url.clone(),
            assistant: Some(model()),
            outbound: Outbound::new(OutboundMode::Sandbox),
            inbound_secret: Some(SECRET.to_owned()),
            telegram: Some((bot.url(), BotUpdates::Polling)),
            ..catalog::generous()
        };
        let server = Server::with(engine, options).await;
        server.listen(listener);
        let stage = Self { server, url, hook: Receiver::start().await, _bot: bot };
        stage.set_clock();
        stage
    }

    /// Examples sign by the real clock, and a busy machine takes minutes for all of them.
    fn set_clock(&self) {
        self.server.clock.set(&now().to_string());
    }

    /// A workspace with one of everything, and the variables that name it.
    pub(super) async fn world(&self) -> Furnished {
        let world = World::new(&self.server, Plan::Developer).await;
        let mailbox = world.path("/api/v1/mailboxes/{mailboxId}");
        let mailbox = world.tenant.key.get(&mailbox).await.ok();
        let address = mailbox["email"].as_str().unwrap().to_owned();
        let raw = "From: Ada <ada@example.com>\r\nSubject: Your order\r\n\r\nIt is on its way.\r\n";
        self.server.receive(&address, raw).await;
        let sessions = world.session.get("/api/console/sessions").await.ok();
        let mut variables = vec![
            ("AGENT_MAILBOX_URL".to_owned(), self.url.clone()),
            ("AGENT_MAILBOX_API_KEY".to_owned(), world.tenant.key.secret().to_owned()),
            ("AGENT_MAILBOX_COOKIE".to_owned(), world.session.secret().to_owned()),
            ("RECIPIENT".to_owned(), "grace@example.com".to_owned()),
            ("MAILBOX_ADDRESS".to_owned(), address),
            ("INBOUND_SECRET".to_owned(), SECRET.to_owned()),
            ("SESSION_ID".to_owned(), sessions[0]["id"].as_str().unwrap().to_owned()),
        ];
        variables.extend(world.ids.iter().map(|(name, id)| (example_variable(name), id.clone())));
        Furnished { world, mailbox, variables }
    }

    /// What an example needs that not every workspace has.
    pub(super) async fn prepare(&self, id: &str, furnished: &mut Furnished) {
        self.set_clock();
        match id {
            "acceptInvite" => {
                let token = self.invite(furnished).await;
                furnished.set("INVITE_TOKEN", token);
            }
            "completeSignUp" => {
                let token = self.sign_up_token(furnished).await;
                furnished.set("SIGN_UP_TOKEN", token);
            }
            "removeMember" => {
                let token = self.invite(furnished).await;
                let body = json!({ "token": token, "password": testkit::PASSWORD });
                let joined = self.server.anonymous().post("/api/console/invites/accept", body).await.ok();
                furnished.set("MEMBER_ID", joined["account"]["id"].as_str().unwrap().to_owned());
            }
            // Somebody else decides than who asked; only who asked withdraws.
            "approveReview" | "rejectReview" | "withdrawReview" => {
                let world = &furnished.world;
                let sender = if id == "withdrawReview" { &world.tenant.key } else { &world.session };
                let mailbox = world.path("/api/v1/mailboxes/{mailboxId}");
                let review = catalog::add_review(&world.tenant, sender, &mailbox).await;
                let path = format!("/api/v1/workspaces/{}/reviews/{review}", world.tenant.workspace);
                let digest = world.session.get(&path).await.ok()["digest"].as_str().unwrap().to_owned();
                furnished.set("REVIEW_ID", review);
                furnished.set("REVIEW_DIGEST", digest);
            }
            // It has exactly the labels that are named.
            "reorderCustomLabels" => *furnished = self.world().await,
            // Not an affiliate yet.
            "signUpAffiliate" => {
                let tenant = self.server.tenant(Plan::Free).await;
                furnished.set("AGENT_MAILBOX_API_KEY", tenant.key.secret().to_owned());
            }
            _ => {}
        }
        if id != "signUpAffiliate" {
            let key = furnished.world.tenant.key.secret().to_owned();
            furnished.set("AGENT_MAILBOX_API_KEY", key);
        }
    }

    /// The token of a new invitation.
    async fn invite(&self, furnished: &Furnished) -> String {
        let email = format!("guest-{}@people.test", self.server.app.new_uuid().simple());
        let path = furnished.world.path("/api/v1/workspaces/{workspaceId}/invites");
        let invite = furnished.world.tenant.key.post(&path, json!({ "email": email })).await.ok();
        invite["link"].as_str().unwrap().split_once('#').unwrap().1.to_owned()
    }

    /// The token of a message to somebody who signs up where addresses are verified.
    async fn sign_up_token(&self, furnished: &Furnished) -> String {
        let sign_up = SignUpPolicy { verify: true, ..SignUpPolicy::default() };
        let options = ServerOptions { sign_up, seed: 2, ..ServerOptions::default() };
        let node = self.server.another_node(options).await;
        let body = json!({ "email": furnished.mailbox["email"], "password": testkit::PASSWORD });
        node.anonymous().post("/api/console/sign-up", body).await.ok();
        worker::run_due(&node.app).await.unwrap();
        let all = furnished.world.path("/api/v1/mailboxes/{mailboxId}/emails");
        for email in furnished.world.tenant.key.get(&all).await.ok()["emails"].as_array().unwrap() {
            let path = format!("{all}/{}", email["id"].as_str().unwrap());
            let shown = furnished.world.tenant.key.get(&path).await.ok();
            if let Some((_, rest)) = shown["body"].as_str().unwrap_or_default().split_once("/console/verify#")
            {
                return rest.split_whitespace().next().unwrap().to_owned();
            }
        }
        panic!("no message with a link came");
    }

    /// A delivery to a webhook, as variables: its secret, its headers and its body.
    pub(super) async fn signed_delivery(&self) -> Vec<(String, String)> {
        self.set_clock();
        let tenant = self.server.tenant(Plan::Developer).await;
        let webhooks = format!("/api/v1/workspaces/{}/webhooks", tenant.workspace);
        let body = json!({ "url": self.hook.url(), "event_types": ["message.received"] });
        let made = tenant.key.post(&webhooks, body).await.ok();
        let trial = format!("{webhooks}/{}/test", made["id"].as_str().unwrap());
        tenant.key.send(http::Method::POST, &trial, None).await.ok();
        let delivered = loop {
            if let Some(one) = self.hook.received().pop() {
                break one;
            }
            operations::webhooks::outbox::run_due(&self.server.app).await.unwrap();
        };
        let header =
            |name: &str| (example_variable(&name.replace('-', "_")), delivered.header(name).to_owned());
        vec![
            header("webhook-id"),
            header("webhook-timestamp"),
            header("webhook-signature"),
            ("BODY".to_owned(), String::from_utf8(delivered.body.to_vec()).unwrap()),
            ("WEBHOOK_SECRET".to_owned(), made["secret"].as_str().unwrap().to_owned()),
        ]
    }
}

/// A workspace with one of everything.
pub(super) struct Furnished {
    world: World,
    mailbox: Value,
    variables: Vec<(String, String)>,
}

impl Furnished {
    /// The variables of the documentation.
    pub(super) fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    fn set(&mut self, name: &str, value: String) {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value));
    }
}
