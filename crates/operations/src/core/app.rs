//! Everything an operation needs: the store, time, chance, settings, the meter.

mod data_keys;
mod idempotency;
mod ids;
mod write;

use std::{path::Path, pin::Pin, sync::Arc};

use mail::{authentication::Authenticator, dns::Dns, reports::Report};
use model::{EmailId, MailboxId, Plan, Timestamp, WorkspaceId};
use store::{Db, Topic, Tx, blobs::Blobs, emails::EmailRecord, mailboxes::MailboxRecord, vault::MasterKey};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::core::{
    arriving::Arriving,
    error::Result,
    ledger::Ledger,
    metering::Meter,
    passwords::{hashing::HashingCost, queue::Queue},
    ports::{Assistant, BotApi, Clock, Embedder, Entropy, Facilitator, HttpClient, NextHop},
    settings::Settings,
    state::{
        arrivals::Arrivals, credentials::Credentials, data_keys::DataKeys, free_proofs::FreeProofs,
        indexes::Indexes, model_slots::ModelSlots, notifications::Notifications, outbox::Outbox,
        readiness::Readiness, routes::Routes, running_keys::RunningKeys, scanning::Scanning, uuids::Uuids,
        wallets::Wallets,
    },
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
    hashing: Queue,
    hashing_cost: HashingCost,
    data_keys: DataKeys,
    routes: Routes,
    running: Arc<RunningKeys>,
    readiness: Readiness,
    notifications: Arc<Notifications>,
    scanning: Arc<Scanning>,
    authenticator: Option<Authenticator>,
    dns: Option<Dns>,
    http: Box<dyn HttpClient>,
    key_making: Semaphore,
    uuids: Uuids,
    next_hop: Option<Box<dyn NextHop>>,
    outbox: Outbox,
    facilitator: Box<dyn Facilitator>,
    wallets: Wallets,
    free_proofs: FreeProofs,
    challenge_key: Zeroizing<[u8; 32]>,
    assistant: Option<Arc<dyn Assistant>>,
    model_slots: ModelSlots,
    indexing: tokio::sync::Mutex<Turns>,
    embedder: Option<Arc<dyn Embedder>>,
    indexes: Indexes,
    bot: Option<Box<dyn BotApi>>,
    bot_name: tokio::sync::OnceCell<String>,
    node: String,
    supervisor: Arc<Supervisor>,
    hooks: Hooks,
}

/// A step of a hook, in the transaction that it belongs to.
pub(crate) type HookFuture<'a, T = ()> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// What follows from a message that arrives, in the transaction that stores it.
///
/// The wings that act on mail stand above the one that takes it in, which therefore calls them by this list.
pub(crate) trait ArrivalHook: Send + Sync {
    /// Locks what a report is about, before any event log is locked.
    fn lock_reported<'a>(
        &'a self,
        _tx: &'a mut Tx,
        _mailbox: &'a MailboxId,
        _report: &'a Report,
    ) -> HookFuture<'a> {
        Box::pin(async { Ok(()) })
    }

    /// Notes what a report says, before the event log is locked.
    fn note_report<'a>(
        &'a self,
        _tx: &'a mut Tx,
        _app: &'a App,
        _arriving: &'a Arriving<'a>,
        _report: &'a Report,
    ) -> HookFuture<'a> {
        Box::pin(async { Ok(()) })
    }

    /// Until when the message is held out of sight; it is not stored yet.
    fn hold<'a>(
        &'a self,
        _tx: &'a mut Tx,
        _app: &'a App,
        _arriving: &'a Arriving<'a>,
        _email: &'a EmailRecord,
    ) -> HookFuture<'a, Option<Timestamp>> {
        Box::pin(async { Ok(None) })
    }

    /// After the message is stored.
    fn after_arrival<'a>(
        &'a self,
        _tx: &'a mut Tx,
        _app: &'a App,
        _arriving: &'a Arriving<'a>,
        _email: &'a EmailRecord,
    ) -> HookFuture<'a> {
        Box::pin(async { Ok(()) })
    }
}

/// What follows from a message that leaves, in the transaction that puts it into the queue.
pub(crate) trait SendHook: Send + Sync {
    /// After the message is stored.
    fn after_send<'a>(
        &'a self,
        tx: &'a mut Tx,
        app: &'a App,
        mailbox: &'a MailboxRecord,
        email: &'a EmailId,
        now: Timestamp,
    ) -> HookFuture<'a>;
}

/// The hooks of the service.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    pub(crate) arrival: &'static [&'static dyn ArrivalHook],
    pub(crate) send: &'static [&'static dyn SendHook],
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
const MAX_CONCURRENT_KEY_GENERATIONS: usize = 2;

impl App {
    /// Puts the parts together for a process that serves calls, and starts its meter.
    ///
    /// What its meter spends is logged in the folder.
    pub(crate) async fn start_with(parts: AppParts, spend_log: &Path, hooks: Hooks) -> Result<Self> {
        let app = Self::open_with(parts, spend_log, hooks).await?;
        app.meter().run(app.supervisor());
        let parts = Arc::downgrade(&app.0);
        app.supervisor().start("events", move || {
            let open = parts
                .upgrade()
                .map(|parts| (Arc::downgrade(&parts.notifications), parts.db.listen(Topic::Event)));
            async move {
                match open {
                    Some((notifications, wakes)) => Notifications::forward(notifications, wakes).await,
                    None => Exit::Finished,
                }
            }
        });
        Ok(app)
    }

    /// The same without anything that goes on by itself, for those who say what happens when.
    pub(crate) async fn open_with(parts: AppParts, spend_log: &Path, hooks: Hooks) -> Result<Self> {
        let node = parts.new_node();
        let meter = Meter::start(parts.db.clone(), node.clone(), parts.clock.clone(), spend_log).await?;
        Ok(Self::assemble(parts, meter, node, hooks))
    }

    /// Puts the parts together for a command that works beside a server, which it does not disturb.
    pub(crate) fn attach_with(parts: AppParts, hooks: Hooks) -> Self {
        let node = parts.new_node();
        let meter = Meter::attach(parts.db.clone(), node.clone(), parts.clock.clone());
        let app = Self::assemble(parts, meter, node, hooks);
        app.meter().run(app.supervisor());
        app
    }

    fn assemble(parts: AppParts, meter: Meter, node: String, hooks: Hooks) -> Self {
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
        Self(Arc::new(Parts {
            db,
            blobs,
            challenge_key: master_key.derive("payment challenges"),
            master_key,
            clock,
            entropy,
            settings,
            meter,
            credentials: Credentials::default(),
            hashing: Queue::default(),
            hashing_cost,
            data_keys: DataKeys::default(),
            routes: Routes::default(),
            running: Arc::default(),
            readiness: Readiness::default(),
            notifications: Arc::default(),
            scanning: Arc::new(scanning),
            authenticator,
            dns,
            http,
            key_making: Semaphore::new(MAX_CONCURRENT_KEY_GENERATIONS),
            uuids: Uuids::default(),
            next_hop,
            outbox: Outbox::new(node.clone()),
            facilitator,
            wallets: Wallets::default(),
            free_proofs: FreeProofs::default(),
            assistant,
            model_slots: ModelSlots::default(),
            indexing: tokio::sync::Mutex::default(),
            embedder,
            indexes: Indexes::default(),
            bot,
            bot_name: tokio::sync::OnceCell::new(),
            node,
            supervisor: Arc::new(Supervisor::new(restarts)),
            hooks,
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
        self.0.notifications.subscribe(workspace)
    }
    pub(crate) fn arrivals(&self, mailbox: &MailboxId) -> Arc<Arrivals> {
        self.0.notifications.arrivals(mailbox)
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

    /// The questions that are with the model at the moment.
    pub(crate) fn model_slots(&self) -> &ModelSlots {
        &self.0.model_slots
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
    /// What follows from mail that arrives or leaves.
    pub(crate) fn hooks(&self) -> Hooks {
        self.0.hooks
    }
    /// What hashing a password costs.
    pub(crate) fn hashing_cost(&self) -> HashingCost {
        self.0.hashing_cost
    }
    /// Where passwords wait for being hashed.
    pub(crate) fn hashing(&self) -> &Queue {
        &self.0.hashing
    }

    pub(crate) fn readiness(&self) -> &Readiness {
        &self.0.readiness
    }
}
