//! The door for agents: the API as tools of the Model Context Protocol.

mod access;
mod answers;
mod confirmations;
mod policies;
mod profiles;
mod reviews;
mod tools;

use model::Plan;
use serde_json::{Value, json};
use testkit::{Engine, Mcp, Server, ServerOptions, Tenant};

/// A workspace with a mailbox and an agent that has its key.
struct Desk {
    server: Server,
    tenant: Tenant,
    agent: Mcp,
    address: String,
}

impl Desk {
    async fn new(engine: Engine) -> Self {
        Self::with(engine, Plan::Developer, ServerOptions::default()).await
    }

    async fn with(engine: Engine, plan: Plan, options: ServerOptions) -> Self {
        let server = Server::with(engine, options).await;
        let tenant = server.tenant(plan).await;
        let mailbox = tenant.key.post("/api/v1/mailboxes", json!({ "name": "Box" })).await.ok();
        let agent = tenant.key.mcp();
        Self { server, tenant, agent, address: mailbox["email"].as_str().unwrap().to_owned() }
    }

    /// Brings a plain mail and gives its id.
    async fn receive(&self, subject: &str, text: &str) -> String {
        let raw = format!("From: Ann <ann@remote.test>\r\nSubject: {subject}\r\n\r\n{text}\r\n");
        self.server.receive(&self.address, raw).await.to_string()
    }

    /// Brings a mail that every scanner flags.
    async fn receive_flagged(&self, subject: &str) -> String {
        let virus = [r"X5O!P%@AP[4\PZX54(P^)7CC)7}$", "EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"].concat();
        let raw = format!(
            "From: Bad <bad@remote.test>\r\nSubject: {subject}\r\nContent-Type: text/plain\r\n\
             Content-Disposition: attachment; filename=a.txt\r\n\r\n{virus}\r\n"
        );
        self.server.receive(&self.address, raw).await.to_string()
    }

    /// The credits that the workspace has used. Reading them costs one, which is taken off.
    async fn used(&self) -> i64 {
        let path = format!("/api/v1/workspaces/{}/usage/credits", self.tenant.workspace);
        self.tenant.key.get(&path).await.ok()["used"].as_i64().unwrap()
    }
}

/// The paths of the faulty fields that an error names.
fn faults(error: &Value) -> Vec<&str> {
    assert_eq!(error["code"], "validation_failed", "{error}");
    error["details"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect()
}
