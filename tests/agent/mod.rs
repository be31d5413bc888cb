//! The keyless interface: wallets that pay, prove themselves, cheat, and come again.

mod calls;
mod challenges;
mod cheats;
mod facilitators;
mod ownership;
mod policies;
mod repeats;

use serde_json::{Value, json};
use testkit::{Answer, Payer, Server};

/// Where everything is.
pub(crate) const BASE: &str = "/api/agent/v1";

/// The path of something in a mailbox.
fn inside(mailbox: &Value, rest: &str) -> String {
    format!("{BASE}/mailboxes/{}{rest}", mailbox["public_id"].as_str().unwrap())
}

/// A mailbox that a wallet has paid for.
async fn mailbox(payer: &Payer, name: &str) -> Value {
    payer.post(&format!("{BASE}/mailboxes"), json!({ "name": name })).await.ok()
}

/// What the header of x402 says, decoded.
fn header(answer: &Answer, name: &str) -> Value {
    pay::encoding::from_standard(answer.header(name)).unwrap()
}

/// What the operator sees of payments: state, reason and amount, oldest first.
async fn payments(server: &Server) -> Vec<(String, Option<String>, String)> {
    let mut all = operations::payments::list(&server.app, None, None, 100).await.unwrap();
    all.reverse();
    all.into_iter().map(|one| (one.state.to_string(), one.reason, one.amount)).collect()
}

/// How many mailboxes there are on the server.
async fn count_mailboxes(server: &Server) -> i64 {
    let sql = "SELECT count(*) FROM mailbox";
    let found = server.app.db().system_read(async move |tx| tx.one::<(i64,)>(sql, &[]).await).await;
    found.unwrap().unwrap().0
}

/// How many workspaces there are on the server.
async fn count_workspaces(server: &Server) -> i64 {
    let found = server.app.db().system_read(async |tx| store::system::counts(tx).await).await;
    found.unwrap().1
}
