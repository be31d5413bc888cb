//! Nodes, workspaces and what happens to them.

use std::sync::LazyLock;

use model::{Limit, Plan, Plans, Timestamp, WorkspaceId, sending::OutboundMode};
use operations::{Outbound, admin, outside::HandoverOutcome, scheduled_sends, sending};
use serde_json::{Value, json};
use store::faults::Moment;
use testkit::{Answer, Caller, Engine, ServerOptions, Stage};

use super::{
    books::{Books, Outcome},
    mail::{Fate, Mail, Schedule},
    node::Node,
    rng::Rng,
    tell,
};

/// How long an answer is kept for its key, with a margin.
const KEPT_SECONDS: i64 = 23 * 3600;

/// A store with workspaces in it, copied for every seed: making it takes longer than a seed.
pub(super) struct Base {
    engine: Engine,
    stage: Stage,
    tenants: Vec<(WorkspaceId, String, String)>,
}

impl Base {
    pub(super) async fn new(engine: Engine) -> Self {
        let stage = Stage::new(engine).await;
        let node = stage.node(options(0, &Mail::default())).await;
        let mut tenants = Vec::new();
        for plan in [Plan::Free, Plan::Developer] {
            let tenant = node.tenant(plan).await;
            let mailbox = tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
            let id = mailbox["id"].as_str().unwrap().to_owned();
            tenants.push((tenant.workspace.clone(), tenant.key.secret().to_owned(), id));
        }
        node.app.meter().close().await;
        Self { engine, stage, tenants }
    }
}

/// The limits of the plans: small, so that pools and windows are often full.
static PLANS: LazyLock<Plans> = LazyLock::new(|| {
    let mut plans = ServerOptions::default().plans;
    for (limits, credits, rpm) in [(&mut plans.free, 120, 15), (&mut plans.developer, 300, 40)] {
        limits.credits_per_period = Limit::of(credits);
        limits.rpm = Limit::of(rpm);
        limits.recipients_per_minute = Limit::UNLIMITED;
        limits.recipients_per_hour = Limit::UNLIMITED;
        limits.recipients_per_day = Limit::UNLIMITED;
        limits.mails_per_month = Limit::UNLIMITED;
        limits.mails_per_day_and_mailbox = Limit::UNLIMITED;
    }
    plans
});

fn options(seed: u64, mail: &Mail) -> ServerOptions {
    ServerOptions {
        plans: PLANS.clone(),
        seed,
        background: false,
        embedder: None,
        outbound: Outbound::new(OutboundMode::Relay),
        next_hop: Some(mail.hop.clone()),
        ..ServerOptions::default()
    }
}

struct Tenant {
    workspace: WorkspaceId,
    secret: String,
    mailbox: String,
    books: Books,
    writes: Vec<Write>,
}

/// A write under an idempotency key. The key is the name of the folder that it makes.
struct Write {
    key: String,
    at: Timestamp,
    /// The answer, once there was one.
    answer: Option<bytes::Bytes>,
}

/// One seed's world.
pub(super) struct World {
    engine: Engine,
    seed: u64,
    starts: u64,
    rng: Rng,
    stage: Stage,
    nodes: Vec<Node>,
    tenants: Vec<Tenant>,
    mail: Mail,
}

impl World {
    pub(super) async fn new(base: &Base, seed: u64) -> Self {
        let stage = base.stage.copy().await;
        // A month of its own, so that what was used to make the store does not count.
        stage.clock.set("2026-08-03T09:00:00Z");
        let now = stage.clock.now();
        let tenant = |(workspace, secret, mailbox): &(WorkspaceId, String, String), plan| Tenant {
            workspace: workspace.clone(),
            secret: secret.clone(),
            mailbox: mailbox.clone(),
            books: Books::new(PLANS.clone(), plan, now),
            writes: Vec::new(),
        };
        let tenants = vec![tenant(&base.tenants[0], Plan::Free), tenant(&base.tenants[1], Plan::Developer)];
        let (rng, mail) = (Rng::new(seed), Mail::default());
        let (engine, nodes) = (base.engine, Vec::new());
        let mut world = Self { engine, seed, starts: 0, rng, stage, nodes, tenants, mail };
        world.start_node().await;
        world
    }

    fn now(&self) -> Timestamp {
        self.stage.clock.now()
    }

    async fn start_node(&mut self) {
        self.starts += 1;
        // Names of nodes come from chance, and must differ from start to start.
        let options = options((self.seed + 1) * 100_000 + self.starts, &self.mail);
        let node = Node::start(&self.stage, options).await;
        if self.engine == Engine::Sqlite {
            // As the program does it when it starts.
            let app = node.app();
            node.run(async move {
                scheduled_sends::release_lost(&app).await.unwrap();
                sending::work::release_lost(&app).await.unwrap();
            })
            .await;
        }
        self.nodes.push(node);
    }

    async fn kill_node(&mut self, node: usize) {
        self.nodes.remove(node).kill().await;
    }

    /// A node that answers.
    fn any_node(&mut self) -> usize {
        let live: Vec<usize> = (0..self.nodes.len()).filter(|node| !self.nodes[*node].frozen).collect();
        self.rng.pick(&live)
    }

    fn caller(&self, node: usize, tenant: usize) -> Caller {
        self.nodes[node].server().key(&self.tenants[tenant].secret).meets_faults()
    }

    /// One thing happens, perhaps with the death of a node in the middle of it.
    pub(super) async fn step(&mut self) {
        if self.rng.once_in(5) {
            let (node, commits) = (self.any_node(), u32::try_from(1 + self.rng.below(4)).unwrap());
            let moment = self.rng.pick(&[Moment::BeforeCommit, Moment::AfterCommit]);
            tell(format!("node {node} dies at commit {commits}, {moment:?}"));
            self.nodes[node].server().app.db().crash_at(commits, moment);
        }
        let handed = self.mail.handed();
        match self.rng.below(20) {
            0..=3 => self.read().await,
            4..=5 => self.read_at_once().await,
            6..=8 => self.write().await,
            9 => self.write_again().await,
            10 => self.reuse_a_key().await,
            11 => self.send().await,
            12 => self.schedule().await,
            13 => self.cancel().await,
            14 => self.work().await,
            15..=16 => self.rest().await,
            17 => self.set_clock_back(),
            18 => self.change_plan().await,
            _ => self.change_nodes().await,
        }
        self.bury(handed).await;
        if self.rng.once_in(4) {
            self.reconcile().await;
        }
        self.mail.check(false);
    }

    /// Replaces nodes that died in this step.
    async fn bury(&mut self, handed: usize) {
        let mut died = false;
        for node in (0..self.nodes.len()).rev() {
            if self.nodes[node].server().app.db().has_crashed() {
                tell(format!("node {node} is dead"));
                self.kill_node(node).await;
                died = true;
            }
        }
        if died {
            self.mail.died_after(handed);
            self.start_node().await;
            self.reconcile().await;
            self.check_effects().await;
        }
    }

    /// What the service says was used is what was answered.
    async fn reconcile(&mut self) {
        for node in self.nodes.iter().filter(|node| !node.frozen) {
            let app = node.app();
            assert!(node.run(async move { app.meter().settle().await }).await);
        }
        let (node, now) = (self.any_node(), self.now());
        for tenant in &mut self.tenants {
            let limit = PLANS.of(tenant.books.plan()).credits_per_period;
            let (app, workspace) = (self.nodes[node].app(), tenant.workspace.clone());
            let ask = async move { app.meter().credits(&workspace, limit, now, true).await.unwrap() };
            let told = self.nodes[node].run(ask).await;
            // What a frozen node has spent and not told is not known to the others.
            if tenant.books.out_of_reach == 0 {
                tenant.books.reconcile(now, told.used);
            }
        }
    }

    /// One effect for one key.
    async fn check_effects(&mut self) {
        let node = self.any_node();
        for tenant in &self.tenants {
            let sql = "SELECT name FROM folder WHERE workspace_id = $1";
            let (app, workspace) = (self.nodes[node].app(), tenant.workspace.clone());
            let read = async move {
                let names = app.db().read(&workspace, async move |tx| {
                    tx.all::<(String,)>(sql, &[]).await.map_err(operations::Error::from)
                });
                names.await.unwrap()
            };
            let names: Vec<String> =
                self.nodes[node].run(read).await.into_iter().map(|(name,)| name).collect();
            for write in &tenant.writes {
                let effects = names.iter().filter(|name| **name == write.key).count();
                let fits = if write.answer.is_some() { effects == 1 } else { effects <= 1 };
                assert!(fits, "{effects} effects of {}, answered: {}", write.key, write.answer.is_some());
            }
        }
    }

    /// Makes calls at once, answers recalls meanwhile, and compares the answers with the books.
    async fn call<F>(
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

    fn is_dead(&self, node: usize) -> bool {
        self.nodes[node].server().app.db().is_dead()
    }

    async fn read(&mut self) {
        let (tenant, node) = (self.rng.below(self.tenants.len()), self.any_node());
        tell("read".to_owned());
        let caller = self.caller(node, tenant);
        self.call(tenant, node, vec![(1, async move { caller.get("/api/v1/mailboxes").await })]).await;
    }

    async fn read_at_once(&mut self) {
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
    async fn post(
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

    async fn write(&mut self) {
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
    fn earlier_write(&mut self, tenant: usize) -> Option<usize> {
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
    async fn write_again(&mut self) {
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
        match known {
            Some(bytes) => assert!(replayed && bytes == answer.bytes, "another answer: {}", answer.text()),
            // It was done, and paid for, before.
            None if replayed => self.tenants[tenant].books.take_back(2),
            None => {}
        }
        let now = self.now();
        let write = &mut self.tenants[tenant].writes[write];
        write.answer = Some(answer.bytes);
        if !replayed {
            write.at = now;
        }
    }

    /// Another request under a key that was used.
    async fn reuse_a_key(&mut self) {
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

    fn defer_some(&mut self, recipient: &str) -> usize {
        let deferrals = usize::from(self.rng.once_in(3));
        for _ in 0..deferrals {
            self.mail.hop.answer(recipient, HandoverOutcome::Later("450 4.2.0 Later".to_owned()));
        }
        deferrals
    }

    async fn send(&mut self) {
        let tenant = self.rng.below(self.tenants.len());
        let recipient = self.mail.recipient();
        tell(format!("send to {recipient}"));
        let body = json!({ "to": recipient, "subject": "Now", "text": "Hello" });
        let (outcome, _) = self.post(tenant, 5, &recipient, "emails", body).await;
        self.note_sent(&recipient, outcome);
    }

    fn note_sent(&mut self, recipient: &str, outcome: Outcome) {
        let fate = match outcome {
            Outcome::Answered => Fate::Arrives,
            Outcome::Unknown => Fate::Unknown,
            Outcome::Refused => return,
        };
        let deferrals = self.defer_some(recipient);
        self.mail.add(recipient, fate, deferrals);
    }

    async fn schedule(&mut self) {
        let tenant = self.rng.below(self.tenants.len());
        let recipient = self.mail.recipient();
        let at = self.now().plus_seconds(self.rng.pick(&[5, 90, 4000, 100_000]));
        tell(format!("schedule to {recipient} at {at}"));
        let at_text = at.to_string();
        let body =
            json!({ "to": recipient, "subject": "Later", "body": "Hello", "scheduled_send_at": at_text });
        let (outcome, answer) = self.post(tenant, 5, &recipient, "scheduled-sends", body).await;
        self.note_sent(&recipient, outcome);
        if outcome == Outcome::Answered {
            let id = answer.json()["id"].as_str().unwrap().to_owned();
            self.mail.schedules.push(Schedule { tenant, id, recipient, at });
        }
    }

    async fn cancel(&mut self) {
        if self.mail.schedules.is_empty() {
            return;
        }
        let index = self.rng.below(self.mail.schedules.len());
        let Schedule { tenant, id, recipient, at } = self.mail.schedules.swap_remove(index);
        // One that is due may be on its way.
        if at <= self.now() {
            return;
        }
        tell(format!("cancel {recipient}"));
        let node = self.any_node();
        let caller = self.caller(node, tenant);
        let path = format!("/api/v1/mailboxes/{}/scheduled-sends/{id}", self.tenants[tenant].mailbox);
        let (outcomes, _) =
            self.call(tenant, node, vec![(2, async move { caller.delete(&path).await })]).await;
        match outcomes[0] {
            Outcome::Answered => self.mail.set_fate(&recipient, Fate::Cancelled),
            Outcome::Unknown => self.mail.set_fate(&recipient, Fate::Unknown),
            Outcome::Refused => self.mail.schedules.push(Schedule { tenant, id, recipient, at }),
        }
    }

    /// A node does what is due.
    async fn work(&mut self) {
        let node = self.any_node();
        tell(format!("node {node} works"));
        self.work_on(node).await;
    }

    async fn work_on(&mut self, node: usize) {
        let app = self.nodes[node].app();
        let work = self.nodes[node].run(async move {
            let scheduled = scheduled_sends::run_due(&app).await.map(drop);
            scheduled.and(sending::work::run_due(&app).await)
        });
        // A dead process does not go on trying.
        let death = async {
            while !self.is_dead(node) {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            outcome = work => assert!(outcome.is_ok() || self.is_dead(node), "{outcome:?}"),
            () = death => {}
        }
    }

    async fn rest(&mut self) {
        let seconds = self.rng.pick(&[1, 20, 61, 661, 25 * 3600, 9 * 86_400, 32 * 86_400]);
        // What a server put off is tried for two days only.
        if seconds > 86_400 {
            for _ in 0..3 {
                self.stage.clock.advance(1800);
                let node = self.any_node();
                self.work_on(node).await;
                if self.is_dead(node) {
                    return;
                }
            }
        }
        tell(format!("rest for {seconds} s"));
        self.stage.clock.advance(seconds);
        for node in self.nodes.iter().filter(|node| !node.frozen) {
            let (app, settles, forgets) = (node.app(), self.rng.once_in(2), self.rng.once_in(2));
            node.run(async move {
                if settles {
                    app.meter().settle().await;
                }
                if forgets {
                    app.meter().forget_idle().await;
                }
            })
            .await;
        }
    }

    fn set_clock_back(&mut self) {
        let seconds = self.rng.pick(&[1, 30, 70]);
        // Which month a pool is in that nobody has used yet is open.
        if self.now().plus_seconds(-seconds).month_start() != self.now().month_start() {
            return;
        }
        tell(format!("the clock is set back by {seconds} s"));
        self.stage.clock.advance(-seconds);
        let now = self.now();
        self.tenants.iter_mut().for_each(|tenant| tenant.books.clock_was_set_back(now));
    }

    async fn change_plan(&mut self) {
        let (tenant, node) = (self.rng.below(self.tenants.len()), self.any_node());
        let plan = self.rng.pick(&[Plan::Free, Plan::Developer, Plan::Enterprise]);
        tell(format!("tenant {tenant} moves to {plan:?}"));
        let workspace = self.tenants[tenant].workspace.clone();
        let app = self.nodes[node].app();
        let moved = self.nodes[node].run(async move { admin::set_plan(&app, workspace, plan).await }).await;
        if let Err(error) = moved {
            assert!(self.is_dead(node), "{error}");
            // Moved again by the next process, so that both agree.
            self.bury(self.mail.handed()).await;
            let (node, workspace) = (self.nodes.last().unwrap(), self.tenants[tenant].workspace.clone());
            let app = node.app();
            node.run(async move { admin::set_plan(&app, workspace, plan).await.unwrap() }).await;
        }
        self.tenants[tenant].books.change_plan(plan);
        if self.nodes.len() > 1 {
            // Other nodes remember who calls for half a second.
            tokio::time::sleep(std::time::Duration::from_millis(550)).await;
        }
    }

    /// Nodes come, go, are killed, freeze and wake up.
    async fn change_nodes(&mut self) {
        let node = self.any_node();
        let sole = self.engine == Engine::Sqlite;
        let live = self.nodes.iter().filter(|node| !node.frozen).count();
        match self.rng.below(if sole { 2 } else { 5 }) {
            0 => {
                tell(format!("node {node} is killed"));
                self.kill_node(node).await;
                self.start_node().await;
            }
            1 => {
                tell(format!("node {node} is restarted"));
                let app = self.nodes[node].app();
                self.nodes[node].run(async move { app.meter().close().await }).await;
                self.kill_node(node).await;
                self.start_node().await;
            }
            2 if self.nodes.len() < 3 => {
                tell("a node comes".to_owned());
                self.start_node().await;
            }
            3 if live > 1 => {
                tell(format!("node {node} freezes"));
                self.nodes[node].frozen = true;
            }
            _ => {
                tell("all nodes wake up".to_owned());
                self.nodes.iter_mut().for_each(|node| node.frozen = false);
            }
        }
        let frozen = i64::try_from(self.nodes.iter().filter(|node| node.frozen).count()).unwrap();
        for tenant in &mut self.tenants {
            tenant.books.out_of_reach = frozen * tenant.books.most_ahead();
        }
    }

    /// Lets everything come to its end.
    pub(super) async fn finish(&mut self) {
        tell("the end".to_owned());
        for node in &mut self.nodes {
            node.frozen = false;
            node.server().app.db().has_crashed();
        }
        for tenant in &mut self.tenants {
            tenant.books.out_of_reach = 0;
        }
        let longest = self.mail.schedules.iter().map(|schedule| schedule.at).max();
        let left = longest.map_or(0, |at| (at.as_micros() - self.now().as_micros()) / 1_000_000);
        self.stage.clock.advance(left.max(0) + 1);
        for _ in 0..50 {
            for node in 0..self.nodes.len() {
                self.work_on(node).await;
            }
            if self.mail.is_done() {
                break;
            }
            self.stage.clock.advance(600);
        }
        self.mail.check(true);
        self.reconcile().await;
        self.check_effects().await;
    }
}

impl World {
    /// Ends the last nodes before their store goes.
    pub(super) async fn close(mut self) {
        while let Some(node) = self.nodes.pop() {
            node.kill().await;
        }
    }
}
