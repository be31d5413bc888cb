//! Everything an operation needs: the store, time, chance, settings, the meter.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::{Arc, Mutex},
};

use mail::{authentication::Authenticator, dns::Dns};
use model::{Id, Kind, MailboxId, Plan, Timestamp, WorkspaceId};
use serde::Serialize;
use store::{
    Body, Db, SystemTx, Topic, Tx, audit,
    blobs::Blobs,
    idempotency, metering,
    vault::{DataKey, MasterKey},
};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::{
    Answer, Call, Credentials, Error, ErrorKind, Meter, Reservation, Result,
    assistant::Asking,
    emails::Arrivals,
    events::News,
    inbound::Routes,
    lock,
    memory::Indexes,
    outside::{Assistant, BotApi, Clock, Embedder, Entropy, Facilitator, HttpClient, NextHop},
    passwords::{self, HashingCost},
    payments::{FreeProofs, Ledger, PaymentKey, Wallets},
    readiness::Readiness,
    scanning::Scanning,
    sending::Outbox,
    settings::Settings,
    supervisor::{Exit, RestartPolicy, Supervisor},
    turns::Turns,
};

/// The service, shared by all doors.
#[derive(Clone)]
pub struct App(Arc<Parts>);

struct Parts {
    db: Db,
    blobs: Blobs,
    master_key: MasterKey,
    clock: Arc<dyn Clock>,
    entropy: Box<dyn Entropy>,
    settings: Settings,
    meter: Meter,
    credentials: Credentials,
    hashing: passwords::Queue,
    hashing_cost: HashingCost,
    data_keys: Mutex<HashMap<WorkspaceId, Arc<DataKey>>>,
    routes: Routes,
    running: Mutex<HashSet<(WorkspaceId, String)>>,
    readiness: Readiness,
    news: Arc<News>,
    scanning: Arc<Scanning>,
    authenticator: Option<Authenticator>,
    dns: Option<Dns>,
    http: Box<dyn HttpClient>,
    key_making: Semaphore,
    last_uuid: Mutex<uuid::Uuid>,
    next_hop: Option<Box<dyn NextHop>>,
    outbox: Outbox,
    facilitator: Box<dyn Facilitator>,
    wallets: Wallets,
    free_proofs: FreeProofs,
    challenge_key: Zeroizing<[u8; 32]>,
    assistant: Option<Arc<dyn Assistant>>,
    asking: Asking,
    indexing: tokio::sync::Mutex<Turns>,
    embedder: Option<Arc<dyn Embedder>>,
    indexes: Indexes,
    bot: Option<Box<dyn BotApi>>,
    bot_name: tokio::sync::OnceCell<String>,
    node: String,
    supervisor: Arc<Supervisor>,
}

/// What an [`App`] is made of.
pub struct AppParts {
    /// The relational store, migrated.
    pub db: Db,
    /// The blob store.
    pub blobs: Blobs,
    /// The key that wraps the workspaces' data keys.
    pub master_key: MasterKey,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Box<dyn Entropy>,
    /// Configuration.
    pub settings: Settings,
    /// Scanners beside the built-in one.
    pub scanning: Scanning,
    /// What checks senders, if they are to be checked.
    pub authenticator: Option<Authenticator>,
    /// What custom domains are looked up with; nothing when there are no name servers.
    pub dns: Option<Dns>,
    /// What webhooks are called with.
    pub http: Box<dyn HttpClient>,
    /// Who takes mail for other servers, if somebody does.
    pub next_hop: Option<Box<dyn NextHop>>,
    /// Who settles payments; nothing for the ledger of test networks.
    pub facilitator: Option<Box<dyn Facilitator>>,
    /// The language model, if there is one.
    pub assistant: Option<Arc<dyn Assistant>>,
    /// What makes vectors of texts, if something does.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// The chat bot, if there is one.
    pub bot: Option<Box<dyn BotApi>>,
    /// What hashing a password costs.
    pub hashing_cost: HashingCost,
    /// When workers are restarted.
    pub restarts: RestartPolicy,
}

impl AppParts {
    /// A name for this process among those that share the store.
    fn new_node(&self) -> String {
        let mut node = [0; 16];
        self.entropy.fill(&mut node);
        uuid::Uuid::from_bytes(node).simple().to_string()
    }
}

/// Key pairs of domains that are made at the same time: each takes a processor for a while.
const KEYS_AT_ONCE: usize = 2;
/// Data keys kept in memory.
const DATA_KEYS: usize = 10_000;

impl App {
    /// Puts the parts together for a process that serves calls, and starts its meter.
    ///
    /// What its meter spends is logged in the folder.
    #[crate::boxed]
    pub async fn start(parts: AppParts, spend_log: &Path) -> Result<Self> {
        let app = Self::open(parts, spend_log).await?;
        app.meter().run(app.supervisor());
        let parts = Arc::downgrade(&app.0);
        app.supervisor().start("events", move || {
            let open =
                parts.upgrade().map(|parts| (Arc::downgrade(&parts.news), parts.db.listen(Topic::Event)));
            async move {
                match open {
                    Some((news, wakes)) => News::pass_on(news, wakes).await,
                    None => Exit::Finished,
                }
            }
        });
        Ok(app)
    }

    /// The same without anything that goes on by itself, for those who say what happens when.
    #[crate::boxed]
    pub async fn open(parts: AppParts, spend_log: &Path) -> Result<Self> {
        let node = parts.new_node();
        let meter = Meter::start(parts.db.clone(), node.clone(), parts.clock.clone(), spend_log).await?;
        Ok(Self::assemble(parts, meter, node))
    }

    /// Puts the parts together for a command that works beside a server, which it does not disturb.
    pub fn attach(parts: AppParts) -> Self {
        let node = parts.new_node();
        let meter = Meter::attach(parts.db.clone(), node.clone(), parts.clock.clone());
        let app = Self::assemble(parts, meter, node);
        app.meter().run(app.supervisor());
        app
    }

    fn assemble(parts: AppParts, meter: Meter, node: String) -> Self {
        let AppParts {
            db,
            blobs,
            master_key,
            clock,
            entropy,
            settings,
            scanning,
            authenticator,
            dns,
            http,
            next_hop,
            facilitator,
            assistant,
            bot,
            embedder,
            hashing_cost,
            restarts,
        } = parts;
        let ledger = || Ledger::new(db.clone(), clock.clone(), settings.payments.ledger_gift);
        let facilitator = facilitator.unwrap_or_else(|| Box::new(ledger()));
        let challenge_key = master_key.derive("payment challenges");
        Self(Arc::new(Parts {
            db,
            blobs,
            master_key,
            clock,
            entropy,
            settings,
            meter,
            credentials: Credentials::default(),
            hashing: passwords::Queue::default(),
            hashing_cost,
            data_keys: Mutex::new(HashMap::new()),
            routes: Routes::default(),
            running: Mutex::new(HashSet::new()),
            readiness: Readiness::default(),
            news: Arc::new(News::default()),
            scanning: Arc::new(scanning),
            authenticator,
            dns,
            http,
            key_making: Semaphore::new(KEYS_AT_ONCE),
            last_uuid: Mutex::new(uuid::Uuid::nil()),
            next_hop,
            outbox: Outbox::new(node.clone()),
            facilitator,
            wallets: Wallets::default(),
            free_proofs: FreeProofs::default(),
            challenge_key,
            assistant,
            asking: Asking::default(),
            indexing: tokio::sync::Mutex::default(),
            embedder,
            indexes: Indexes::default(),
            bot,
            bot_name: tokio::sync::OnceCell::new(),
            node,
            supervisor: Arc::new(Supervisor::new(restarts)),
        }))
    }

    /// The relational store.
    pub fn db(&self) -> &Db {
        &self.0.db
    }
    /// The blob store.
    pub fn blobs(&self) -> &Blobs {
        &self.0.blobs
    }
    /// The master key.
    pub fn master_key(&self) -> &MasterKey {
        &self.0.master_key
    }
    /// The configuration.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }
    /// The meter.
    pub fn meter(&self) -> &Meter {
        &self.0.meter
    }
    /// The limits of a plan.
    pub fn limits(&self, plan: Plan) -> &model::plans::PlanLimits {
        self.0.settings.plans.of(plan)
    }
    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }
    /// Random bytes.
    pub fn entropy(&self) -> &dyn Entropy {
        &*self.0.entropy
    }
    /// Scanners beside the built-in one.
    pub fn scanning(&self) -> &Arc<Scanning> {
        &self.0.scanning
    }
    pub(crate) fn authenticator(&self) -> Option<&Authenticator> {
        self.0.authenticator.as_ref()
    }
    pub(crate) fn dns(&self) -> Option<&Dns> {
        self.0.dns.as_ref()
    }
    pub(crate) fn http(&self) -> &dyn HttpClient {
        &*self.0.http
    }
    pub(crate) fn key_making(&self) -> &Semaphore {
        &self.0.key_making
    }
    /// Changes whenever something happened in a workspace, on any node.
    pub fn news(&self, workspace: &WorkspaceId) -> tokio::sync::watch::Receiver<u64> {
        self.0.news.watch(workspace)
    }
    pub(crate) fn arrivals(&self, mailbox: &MailboxId) -> Arc<Arrivals> {
        self.0.news.arrivals(mailbox)
    }
    /// Who takes mail for other servers.
    pub(crate) fn next_hop(&self) -> Option<&dyn NextHop> {
        self.0.next_hop.as_deref()
    }
    /// What this node is sending at the moment.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.0.outbox
    }
    /// Who settles payments.
    pub fn facilitator(&self) -> &dyn Facilitator {
        &*self.0.facilitator
    }
    /// The proofs that cost nothing and were used here.
    pub(crate) fn free_proofs(&self) -> &FreeProofs {
        &self.0.free_proofs
    }
    /// The wallets that showed themselves lately.
    pub(crate) fn wallets(&self) -> &Wallets {
        &self.0.wallets
    }
    /// What challenges are sealed with, the same on all nodes.
    pub fn challenge_key(&self) -> &[u8; 32] {
        &self.0.challenge_key
    }
    /// The language model, if there is one.
    pub(crate) fn assistant(&self) -> Option<&Arc<dyn Assistant>> {
        self.0.assistant.as_ref()
    }
    /// Whose documents are being indexed.
    pub(crate) fn indexing(&self) -> &tokio::sync::Mutex<Turns> {
        &self.0.indexing
    }

    /// Who is asking the model at the moment.
    pub(crate) fn asking(&self) -> &Asking {
        &self.0.asking
    }
    /// What makes vectors of texts, if something does.
    pub(crate) fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.0.embedder.as_ref()
    }
    /// What workspaces remember, at hand.
    pub(crate) fn indexes(&self) -> &Indexes {
        &self.0.indexes
    }
    /// The chat bot, if there is one.
    pub(crate) fn bot(&self) -> Option<&dyn BotApi> {
        self.0.bot.as_deref()
    }
    /// The chat bot's name, once it is known.
    pub(crate) fn bot_name(&self) -> &tokio::sync::OnceCell<String> {
        &self.0.bot_name
    }
    /// The name of this process among those that share the store.
    pub(crate) fn node(&self) -> &str {
        &self.0.node
    }
    /// Runs the workers of this process.
    pub fn supervisor(&self) -> &Arc<Supervisor> {
        &self.0.supervisor
    }
    pub(crate) fn credentials(&self) -> &Credentials {
        &self.0.credentials
    }
    pub(crate) fn routes(&self) -> &Routes {
        &self.0.routes
    }
    /// What hashing a password costs.
    pub(crate) fn hashing_cost(&self) -> HashingCost {
        self.0.hashing_cost
    }
    /// Where passwords wait for being hashed.
    pub(crate) fn hashing(&self) -> &passwords::Queue {
        &self.0.hashing
    }

    /// A new id, ordered by time.
    pub fn new_id<K: Kind>(&self) -> Id<K> {
        Id::from_uuid(self.new_uuid())
    }

    /// A new UUID, ordered by time: of two that this process makes the later one is the greater, also within a
    /// millisecond and when the clock is set back.
    pub fn new_uuid(&self) -> uuid::Uuid {
        let mut random = [0; 10];
        self.entropy().fill(&mut random);
        let millis = u64::try_from(self.now().as_micros() / 1000).unwrap_or_default();
        let fresh = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
        let mut last = lock(&self.0.last_uuid);
        *last = if fresh > *last {
            fresh
        } else {
            after(*last, u32::from_be_bytes([random[0], random[1], random[2], random[3]]))
        };
        *last
    }

    pub(crate) fn readiness(&self) -> &Readiness {
        &self.0.readiness
    }

    /// The data key of a workspace.
    #[crate::boxed]
    pub async fn data_key(&self, workspace: &WorkspaceId) -> Result<Arc<DataKey>> {
        if let Some(key) = lock(&self.0.data_keys).get(workspace) {
            return Ok(key.clone());
        }
        let found = self.db().read(workspace, async |tx| store::workspaces::find(tx).await).await?;
        let record = found.ok_or_else(|| Error::not_found("Workspace not found"))?;
        let key =
            self.master_key().unwrap_key(workspace.as_str(), &record.data_key).map_err(store::Error::from)?;
        let key = Arc::new(key);
        let mut keys = lock(&self.0.data_keys);
        if keys.len() >= DATA_KEYS {
            keys.clear();
        }
        keys.insert(workspace.clone(), key.clone());
        Ok(key)
    }

    /// Runs the reading part of a call.
    pub async fn read<T, F>(&self, call: &Call, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(&mut Tx) -> Result<T> + for<'tx> Body<'tx, Tx, T, Error>,
    {
        self.db().read(&call.workspace, body).await
    }

    /// The same across workspaces, for effects that end in those of others too.
    pub async fn write_across<T, F>(&self, call: &Call, body: F) -> Result<T>
    where
        T: Serialize + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T> + for<'tx> Body<'tx, SystemTx, T, Error>,
    {
        let (reservation, record) = self.begin_write(call);
        let workspace = call.workspace.clone();
        let outcome = self
            .db()
            .system_write(async move |tx| {
                record.begin(tx.enter(&workspace)).await?;
                let value = body.begin(tx).await?;
                record.finish(tx.enter(&workspace), record.answer(&value)?).await?;
                Ok(value)
            })
            .await;
        end_write(call, reservation, outcome)
    }

    /// Replaces the answer that is kept for the call's Idempotency-Key, once more is known.
    pub(crate) async fn keep_answer<T: Serialize>(&self, call: &Call, value: &T) -> Result<()> {
        let Some(claim) = call.idempotency.clone() else { return Ok(()) };
        let sealed = claim.data_key.seal(IDEMPOTENCY, &to_json(value)?).map_err(store::Error::from)?;
        let status = i64::from(status_of(call.operation.answer));
        self.db()
            .write(&call.workspace, async move |tx| {
                idempotency::keep(tx, &claim.key, status, &sealed).await.map_err(Error::from)
            })
            .await
    }

    /// Runs the writing part of a call: the effect, its charge, its audit entry and its kept answer are one
    /// transaction, so a crash leaves all of them or none.
    pub async fn write<T, F>(&self, call: &Call, body: F) -> Result<T>
    where
        T: Serialize + Send + 'static,
        F: AsyncFnOnce(&mut Tx) -> Result<T> + for<'tx> Body<'tx, Tx, T, Error>,
    {
        let (reservation, record) = self.begin_write(call);
        let outcome = self
            .db()
            .write(&call.workspace, async move |tx| {
                record.begin(tx).await?;
                let value = body.begin(tx).await?;
                record.finish(tx, record.answer(&value)?).await?;
                Ok(value)
            })
            .await;
        end_write(call, reservation, outcome)
    }

    /// What is charged and noted with a write.
    fn begin_write(&self, call: &Call) -> (Option<Reservation>, Record) {
        // A call that writes twice is charged and answered with its first transaction.
        let reservation = if call.is_stored() { None } else { call.take_reservation() };
        let record = Record {
            charge: reservation
                .as_ref()
                .and_then(|reservation| reservation.ledger_entry(self.new_uuid().simple().to_string())),
            audit: audit::AuditEntry {
                id: self.new_uuid().simple().to_string(),
                at: call.now,
                actor: call.caller.actor.id().to_owned(),
                operation: call.operation.id,
                subject: call.subject.clone(),
                request_id: call.request_id.clone(),
            },
            claim: call.idempotency.clone(),
            payment: call.payment.clone(),
            rehearsal: call.rehearsal,
            status: status_of(call.operation.answer),
            now: call.now,
        };
        (reservation, record)
    }

    /// Marks an idempotency key as running on this node until the guard is dropped. `None` when it runs already.
    pub(crate) fn run_alone(&self, workspace: &WorkspaceId, key: &str) -> Option<RunningKey> {
        let entry = (workspace.clone(), key.to_owned());
        lock(&self.0.running).insert(entry.clone()).then(|| RunningKey { app: self.clone(), entry })
    }
}

/// A write that succeeded is durable with its charge.
fn end_write<T>(call: &Call, reservation: Option<Reservation>, outcome: Result<T>) -> Result<T> {
    match (outcome, reservation) {
        (Ok(value), Some(reservation)) => {
            call.put_reservation(reservation);
            call.mark_stored();
            Ok(value)
        }
        (outcome, _) => outcome,
    }
}

/// The HTTP status that a kept answer is replayed with.
pub const fn status_of(answer: Answer) -> u16 {
    match answer {
        Answer::Ok => 200,
        Answer::Created => 201,
        Answer::Accepted => 202,
        Answer::Empty => 204,
    }
}

/// What is stored beside the effect of a write.
struct Record {
    charge: Option<metering::LedgerEntry>,
    audit: audit::AuditEntry,
    claim: Option<crate::IdempotencyClaim>,
    payment: Option<PaymentKey>,
    rehearsal: bool,
    status: u16,
    now: Timestamp,
}

impl Record {
    /// Before the effect: nobody else may have answered this key.
    async fn begin(&self, tx: &mut Tx) -> Result<()> {
        if let Some(claim) = &self.claim
            && !idempotency::claim(tx, &claim.key, &claim.fingerprint, self.now).await?
        {
            return Err(Error::new(ErrorKind::AlreadyAnswered));
        }
        Ok(())
    }

    /// The answer as it is kept for the call's Idempotency-Key, if it has one.
    fn answer<T: Serialize>(&self, value: &T) -> Result<Option<Vec<u8>>> {
        match self.claim {
            Some(_) if self.status == 204 => Ok(Some(Vec::new())),
            Some(_) => to_json(value).map(Some),
            None => Ok(None),
        }
    }

    /// After the effect: who did it, what it cost, what was answered.
    async fn finish(&self, tx: &mut Tx, answer: Option<Vec<u8>>) -> Result<()> {
        if self.rehearsal {
            // Everything was tried that can fail for the caller; the transaction is undone by this.
            return Err(Error::new(ErrorKind::Rehearsed));
        }
        if let Some(payment) = &self.payment {
            store::payments::fulfil(tx, payment, self.now).await?;
        }
        audit::insert(tx, &self.audit).await?;
        if let Some(charge) = &self.charge {
            metering::insert_ledger(tx, charge).await?;
        }
        if let Some((claim, body)) = self.claim.as_ref().zip(answer) {
            let sealed = claim.data_key.seal(IDEMPOTENCY, &body).map_err(store::Error::from)?;
            idempotency::keep(tx, &claim.key, i64::from(self.status), &sealed).await?;
        }
        Ok(())
    }
}

/// A UUID of version 7 a random step after another one. The step goes into the 62 bits behind the variant, and on
/// into the 12 behind the version; those above are left to the clock.
fn after(last: uuid::Uuid, step: u32) -> uuid::Uuid {
    let (high, low) = last.as_u64_pair();
    let counter = (u128::from(high & 0xfff) << 62 | u128::from(low & (u64::MAX >> 2))) + u128::from(step) + 1;
    let tail = u64::try_from(counter & u128::from(u64::MAX >> 2)).unwrap_or_default();
    let head = u64::try_from(counter >> 62 & 0xfff).unwrap_or_default();
    uuid::Uuid::from_u64_pair(high & !0xfff | head, low & !(u64::MAX >> 2) | tail)
}

/// The purpose that kept answers are sealed for.
pub(crate) const IDEMPOTENCY: &str = "idempotency";

fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(Error::internal)
}

/// An idempotency key that runs on this node.
pub struct RunningKey {
    app: App,
    entry: (WorkspaceId, String),
}

impl Drop for RunningKey {
    fn drop(&mut self) {
        lock(&self.app.0.running).remove(&self.entry);
    }
}
