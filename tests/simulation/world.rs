//! Nodes, workspaces and what happens to them.

mod calls;
mod changes;

use std::sync::LazyLock;

use model::{Limit, Plan, Plans, Timestamp, WorkspaceId, sending::OutboundMode};
use operations::{Outbound, ports::HandoverOutcome, scheduled_sends, sending};
use serde_json::json;
use store::faults::Moment;
use testkit::{Caller, Engine, ServerOptions, Stage};

use super::{
    books::{Books, Outcome},
    mail::{Fate, Mail, Schedule},
    node::Node,
    rng::Rng,
    tell,
};

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
    for (limits, credits, rpm) in [(&mut plans.free, 40, 15), (&mut plans.developer, 300, 40)] {
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
        world.spend_before().await;
        world
    }

    /// Most of a month's credits were used before: forty steps alone would seldom empty a pool.
    async fn spend_before(&mut self) {
        let now = self.now();
        for tenant in &mut self.tenants {
            let left = i64::try_from(self.rng.below(60)).unwrap();
            let spent = tenant.books.spend_all_but(left);
            let sql = "INSERT INTO allowance (workspace_id, kind, period_start, spent) VALUES ($1, 'credits', $2, $3)
                 ON CONFLICT (workspace_id, kind) DO UPDATE
                 SET period_start = excluded.period_start, spent = excluded.spent";
            let (app, workspace) = (self.nodes[0].app(), tenant.workspace.clone());
            let write = async move {
                let month = now.month_start();
                let stored = app.db().write(&workspace, async move |tx| {
                    tx.run(sql, &[month.into(), spent.into()]).await.map_err(operations::Error::from)
                });
                stored.await.unwrap();
            };
            self.nodes[0].run(write).await;
        }
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
                scheduled_sends::worker::release_lost(&app).await.unwrap();
                sending::worker::release_lost(&app).await.unwrap();
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
            assert!(node.run(async move { app.meter().commit().await }).await);
        }
        let (node, now) = (self.any_node(), self.now());
        for tenant in &mut self.tenants {
            let limit = PLANS.of(tenant.books.plan()).credits_per_period;
            let (app, workspace) = (self.nodes[node].app(), tenant.workspace.clone());
            let ask = async move { app.meter().credits(&workspace, limit, now, true).await.unwrap() };
            let told = self.nodes[node].run(ask).await;
            // What a frozen node has spent and not told is not known to the others.
            if tenant.books.frozen_nodes == 0 {
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

    fn defer_some(&mut self, recipient: &str) -> usize {
        let deferrals = usize::from(self.rng.once_in(3));
        for _ in 0..deferrals {
            self.mail.hop.answer(recipient, HandoverOutcome::Deferred("450 4.2.0 Later".to_owned()));
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
            let scheduled = scheduled_sends::worker::run_due(&app).await.map(drop);
            scheduled.and(sending::worker::run_due(&app).await)
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

    /// Lets everything come to its end.
    pub(super) async fn finish(&mut self) {
        tell("the end".to_owned());
        for node in &mut self.nodes {
            node.frozen = false;
            node.server().app.db().has_crashed();
        }
        for tenant in &mut self.tenants {
            tenant.books.frozen_nodes = 0;
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
