//! Everything an operation needs: the store, clock, entropy, settings, the meter.

mod blob_names;
mod data_keys;
mod idempotency;
mod ids;
mod write;

use std::{
    path::Path,
    pin::Pin,
    sync::{Arc, OnceLock},
};

use mail::{authentication::Authenticator, dns::Dns, reports::Report};
use model::{EmailId, MailboxId, Plan, Timestamp, WorkspaceId};
use store::{Db, Topic, Tx, blobs::Blobs, emails::EmailRecord, mailboxes::MailboxRecord, vault::MasterKey};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::core::{
    arriving::Arriving,
    clock::MAX_CLOCK_SKEW,
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

/// What becomes known while the process runs, and does not change then.
#[derive(Default)]
struct Known {
    /// Since when all new objects of a bucket have names of their own.
    fresh_names_since: OnceLock<Timestamp>,
    bot_name: tokio::sync::OnceCell<String>,
    /// Where this process answers HTTP.
    address: OnceLock<String>,
}

struct Parts {
    db: Db,
    blobs: Blobs,
    known: Known,
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
    node: String,
    supervisor: Arc<Supervisor>,
    hooks: Hooks,
}

/// One step of a hook, inside the transaction it belongs to.
pub(crate) type HookFuture<'a, T = ()> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Steps that run when a message arrives, in the transaction that stores it.
///
/// The wings that act on mail are above the one that receives it, so it calls them through this list.
pub(crate) trait ArrivalHook: Send + Sync {
    /// Locks the rows that a report refers to, before any event log is locked.
    fn lock_reported<'a>(
        &'a self,
        _tx: &'a mut Tx,
        _mailbox: &'a MailboxId,
        _report: &'a Report,
    ) -> HookFuture<'a> {
        Box::pin(async { Ok(()) })
    }

    /// Records what a report says, before the event log is locked.
    fn record_report<'a>(
        &'a self,
        _tx: &'a mut Tx,
        _app: &'a App,
        _arriving: &'a Arriving<'a>,
        _report: &'a Report,
    ) -> HookFuture<'a> {
        Box::pin(async { Ok(()) })
    }

    /// Until when the message is held; it is not stored yet.
    fn hold<'a>(
        &'a self,
        _tx: &'a mut Tx,
        _app: &'a App,
        _arriving: &'a Arriving<'a>,
        _email: &'a EmailRecord,
    ) -> HookFuture<'a, Option<Timestamp>> {
        Box::pin(async { Ok(None) })
    }

    /// Runs after the message is stored.
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

/// Steps that run when a message is sent, in the transaction that queues it.
pub(crate) trait SendHook: Send + Sync {
    /// Runs after the message is stored.
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

/// The parts of an [`App`].
pub struct AppParts {
    /// The relational store, migrated.
    pub db: Db,
    /// The blob store.
    pub blobs: Blobs,
    /// The key that wraps the workspaces' data keys.
    pub master_key: MasterKey,
    /// The clock, the same for all nodes.
    pub clock: Arc<dyn Clock>,
    /// The source of random bytes.
    pub entropy: Box<dyn Entropy>,
    /// Configuration.
    pub settings: Settings,
    /// External scanners.
    pub scanning: Scanning,
    /// Authenticates senders, if configured.
    pub authenticator: Option<Authenticator>,
    /// Resolves custom domains; `None` without name servers.
    pub dns: Option<Dns>,
    /// Calls webhooks.
    pub http: Box<dyn HttpClient>,
    /// Delivers to other servers, if outbound mail is configured.
    pub next_hop: Option<Box<dyn NextHop>>,
    /// Settles payments; `None` for the ledger of test networks.
    pub facilitator: Option<Box<dyn Facilitator>>,
    /// The language model, if configured.
    pub assistant: Option<Arc<dyn Assistant>>,
    /// The embedding model, if configured.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// The chat bot, if configured.
    pub bot: Option<Box<dyn BotApi>>,
    /// The cost of hashing a password.
    pub hashing_cost: HashingCost,
    /// The restart policy of workers.
    pub restarts: RestartPolicy,
}

impl AppParts {
    /// A new name for this process among those that share the store.
    fn new_node(&self) -> String {
        let mut node = [0; 16];
        self.entropy.fill(&mut node);
        uuid::Uuid::from_bytes(node).simple().to_string()
    }
}

/// Maximum concurrent key generations for domains: each occupies a core for a while.
const MAX_CONCURRENT_KEY_GENERATIONS: usize = 2;

impl App {
    /// Assembles the service for a process that serves calls, and starts its meter. The meter logs its spending in
    /// the folder.
    pub(crate) async fn start_with(parts: AppParts, spend_log: &Path, hooks: Hooks) -> Result<Self> {
        let app = Self::open_with(parts, spend_log, hooks).await?;
        app.meter().run(app.supervisor());
        if !app.db().is_sole_node() {
            let parts = Arc::downgrade(&app.0);
            app.supervisor().start("event-poll", move || {
                let parts = parts.clone();
                Notifications::poll(move || {
                    parts.upgrade().map(|parts| (parts.notifications.clone(), parts.db.clone()))
                })
            });
        }
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

    /// The same without background work, for callers that drive each step themselves.
    pub(crate) async fn open_with(parts: AppParts, spend_log: &Path, hooks: Hooks) -> Result<Self> {
        let node = parts.new_node();
        let meter = Meter::start(parts.db.clone(), node.clone(), parts.clock.clone(), spend_log).await?;
        Ok(Self::assemble(parts, meter, node, hooks))
    }

    /// Assembles the service for a command that runs beside a server without disturbing it.
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
            known: Known::default(),
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
    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }
    /// The clock, the same for all nodes.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }
    /// Seconds by which the clock of this machine is ahead of the database's, if that is enough to be named.
    pub fn clock_fault(&self) -> Option<i64> {
        let ahead = self.0.clock.machine_ahead();
        let is_off = std::time::Duration::from_micros(ahead.unsigned_abs()) > MAX_CLOCK_SKEW;
        is_off.then_some(ahead / 1_000_000)
    }
    /// The source of random bytes.
    pub fn entropy(&self) -> &dyn Entropy {
        &*self.0.entropy
    }
    /// External scanners.
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
    /// Changes after every event in a workspace, on any node.
    pub fn subscribe(&self, workspace: &WorkspaceId) -> tokio::sync::watch::Receiver<u64> {
        self.0.notifications.subscribe(workspace)
    }
    pub(crate) fn arrivals(&self, workspace: &WorkspaceId, mailbox: &MailboxId) -> Arc<Arrivals> {
        self.0.notifications.arrivals(workspace, mailbox)
    }
    /// Delivers to other servers.
    pub(crate) fn next_hop(&self) -> Option<&dyn NextHop> {
        self.0.next_hop.as_deref()
    }
    /// What this node is sending now.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.0.outbox
    }
    /// Settles payments.
    pub fn facilitator(&self) -> &dyn Facilitator {
        &*self.0.facilitator
    }
    /// Free proofs that were used on this node.
    pub(crate) fn free_proofs(&self) -> &FreeProofs {
        &self.0.free_proofs
    }
    /// Recently authenticated wallets.
    pub(crate) fn wallets(&self) -> &Wallets {
        &self.0.wallets
    }
    /// The key that seals challenges, the same on all nodes.
    pub fn challenge_key(&self) -> &[u8; 32] {
        &self.0.challenge_key
    }
    /// The language model, if configured.
    pub(crate) fn assistant(&self) -> Option<&Arc<dyn Assistant>> {
        self.0.assistant.as_ref()
    }
    /// The workspaces whose documents are being indexed.
    pub(crate) fn indexing(&self) -> &tokio::sync::Mutex<Turns> {
        &self.0.indexing
    }

    /// Running model requests per workspace.
    pub(crate) fn model_slots(&self) -> &ModelSlots {
        &self.0.model_slots
    }
    /// The embedding model, if configured.
    pub(crate) fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.0.embedder.as_ref()
    }
    /// The memory indexes of workspaces.
    pub(crate) fn indexes(&self) -> &Indexes {
        &self.0.indexes
    }
    /// The chat bot, if configured.
    pub(crate) fn bot(&self) -> Option<&dyn BotApi> {
        self.0.bot.as_deref()
    }
    /// The chat bot's name, once it is known.
    pub(crate) fn bot_name(&self) -> &tokio::sync::OnceCell<String> {
        &self.0.known.bot_name
    }
    /// The name of this process among those that share the store.
    pub(crate) fn node(&self) -> &str {
        &self.0.node
    }
    /// Records where this process answers HTTP. The first call counts.
    pub fn record_address(&self, address: String) {
        let _ = self.0.known.address.set(address);
    }
    /// Where this process answers HTTP; empty when it does not.
    pub(crate) fn address(&self) -> &str {
        self.0.known.address.get().map_or("", String::as_str)
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
    /// The steps that run when a message arrives or is sent.
    pub(crate) fn hooks(&self) -> Hooks {
        self.0.hooks
    }
    /// The cost of hashing a password.
    pub(crate) fn hashing_cost(&self) -> HashingCost {
        self.0.hashing_cost
    }
    /// The queue of passwords to hash.
    pub(crate) fn hashing(&self) -> &Queue {
        &self.0.hashing
    }

    pub(crate) fn readiness(&self) -> &Readiness {
        &self.0.readiness
    }
}
