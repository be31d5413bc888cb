//! Calls that workspaces make, and what their answers have to be.

use serde_json::{Value, json};
use testkit::{Answer, Caller};

use super::{Outcome, World, Write, tell};

/// How long an answer is kept for its key, with a margin.
const KEPT_SECONDS: i64 = 23 * 3600;

impl World {
    /// Makes calls at once, answers recalls meanwhile, and compares the answers with the books.
    pub(super) async fn call<F>(
        &mut self,
        tenant: usize,
        node: usize,
        calls: Vec<(i64, F)>,
    ) -> (Vec<Outcome>, Vec<Answer>)
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let (prices, calls): (Vec<i64>, Vec<F>) = calls.into_iter().unzip();
        let workspace = self.tenants[tenant].workspace.clone();
        let calls = self.nodes[node].run(futures_util::future::join_all(calls));
        tokio::pin!(calls);
        let answers = loop {
            tokio::select! {
                answers = &mut calls => break answers,
                () = tokio::time::sleep(std::time::Duration::from_millis(10)), if self.nodes.len() > 1 => {
                    for other in self.nodes.iter().filter(|node| !node.frozen) {
                        let (app, workspace) = (other.app(), workspace.clone());
                        other.run(async move { app.meter().return_unspent(&workspace).await }).await;
                    }
                }
            }
        };
        let now = self.now();
        let died = self.is_dead(node);
        let told: Vec<String> = answers.iter().map(|answer| answer.status.to_string()).collect();
        tell(format!("  {now} tenant {tenant}, node {node}: {}", told.join(" ")));
        let pairs: Vec<(i64, &Answer)> = prices.into_iter().zip(&answers).collect();
        let outcomes = self.tenants[tenant].books.judge(now, &pairs, died);
        (outcomes, answers)
    }

    pub(super) fn is_dead(&self, node: usize) -> bool {
        self.nodes[node].server().app.db().is_dead()
    }

    pub(super) async fn read(&mut self) {
        let (tenant, node) = (self.rng.below(self.tenants.len()), self.any_node());
        tell("read".to_owned());
        let caller = self.caller(node, tenant);
        self.call(tenant, node, vec![(1, async move { caller.get("/api/v1/mailboxes").await })]).await;
    }

    pub(super) async fn read_at_once(&mut self) {
        let (tenant, node) = (self.rng.below(self.tenants.len()), self.any_node());
        let count = 2 + self.rng.below(30);
        tell(format!("{count} reads at once"));
        let caller = self.caller(node, tenant);
        let call = |caller: Caller| async move { caller.get("/api/v1/mailboxes").await };
        let calls = (0..count).map(|_| (1, call(caller.clone()))).collect();
        drop(caller);
        self.call(tenant, node, calls).await;
    }

    /// Makes one call with an idempotency key.
    pub(super) async fn post(
        &mut self,
        tenant: usize,
        price: i64,
        key: &str,
        path: &str,
        body: Value,
    ) -> (Outcome, Answer) {
        let node = self.any_node();
        let caller = self.caller(node, tenant).with("idempotency-key", key).with("prefer", "respond-async");
        let path = format!("/api/v1/mailboxes/{}/{path}", self.tenants[tenant].mailbox);
        let (outcomes, mut answers) =
            self.call(tenant, node, vec![(price, async move { caller.post(&path, body).await })]).await;
        (outcomes[0], answers.remove(0))
    }

    pub(super) async fn write(&mut self) {
        let tenant = self.rng.below(self.tenants.len());
        let key = format!("w{}", self.tenants[tenant].writes.len());
        tell(format!("write {key}"));
        let (outcome, answer) = self.post(tenant, 2, &key, "folders", json!({ "name": key })).await;
        if outcome != Outcome::Refused {
            let answer = (outcome == Outcome::Answered).then_some(answer.bytes);
            let at = self.now();
            self.tenants[tenant].writes.push(Write { key, at, answer });
        }
    }

    /// An earlier write whose answer is still kept.
    pub(super) fn earlier_write(&mut self, tenant: usize) -> Option<usize> {
        let now = self.now();
        let writes = &self.tenants[tenant].writes;
        let recent = |write: &Write| {
            let age = now.as_micros() - write.at.as_micros();
            (0..KEPT_SECONDS * 1_000_000).contains(&age)
        };
        let recent: Vec<usize> = (0..writes.len()).filter(|write| recent(&writes[*write])).collect();
        (!recent.is_empty()).then(|| self.rng.pick(&recent))
    }

    /// The same request again: the same answer, for nothing.
    pub(super) async fn write_again(&mut self) {
        let tenant = self.rng.below(self.tenants.len());
        let Some(write) = self.earlier_write(tenant) else { return };
        let key = self.tenants[tenant].writes[write].key.clone();
        let known = self.tenants[tenant].writes[write].answer.clone();
        tell(format!("write {key} again"));
        // One that was answered costs nothing; one that was not costs its price if it is done now.
        let price = if known.is_some() { 0 } else { 2 };
        let (outcome, answer) = self.post(tenant, price, &key, "folders", json!({ "name": key })).await;
        if outcome != Outcome::Answered {
            return;
        }
        let replayed = answer.header("idempotent-replayed") == "true";
        if let Some(bytes) = known {
            assert!(replayed && bytes == answer.bytes, "another answer: {}", answer.text());
        }
        let now = self.now();
        let write = &mut self.tenants[tenant].writes[write];
        write.answer = Some(answer.bytes);
        if !replayed {
            write.at = now;
        }
    }

    /// Another request under a key that was used.
    pub(super) async fn reuse_a_key(&mut self) {
        let tenant = self.rng.below(self.tenants.len());
        let Some(write) = self.earlier_write(tenant) else { return };
        if self.tenants[tenant].writes[write].answer.is_none() {
            return;
        }
        let key = self.tenants[tenant].writes[write].key.clone();
        tell(format!("reuse {key}"));
        let node = self.any_node();
        let caller = self.caller(node, tenant).with("idempotency-key", &key);
        let path = format!("/api/v1/mailboxes/{}/folders", self.tenants[tenant].mailbox);
        let post = async move { caller.post(&path, json!({ "name": "Another" })).await };
        let answer = self.nodes[node].run(post).await;
        let now = self.now();
        if answer.status == 422 {
            self.tenants[tenant].books.count_request(now);
        } else {
            assert!(answer.status != 201, "the key was used before");
            let died = self.is_dead(node);
            self.tenants[tenant].books.judge(now, &[(0, &answer)], died);
        }
    }
}
