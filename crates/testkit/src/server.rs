//! A whole service in the test's process.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use adapters::{
    facilitator::HttpFacilitator,
    language_model::{AssistantSettings, HttpAssistant},
    telegram::HttpBot,
    webhook_http::OutgoingHttp,
};
use mail::dns::Dns;
use model::{EmailId, Plan, Role, Scope, WorkspaceId, api_keys::NewApiKey, emails::InboundProvider};
use operations::{
    App, AppParts, Author, DatabaseClock, RequestInfo, Scanning, Settings, admin,
    inbound::{self, Arrival, Refusal},
    knowledge, memory, ports,
    supervisor::RestartPolicy,
};
use store::{
    Db,
    blobs::{BlobLocation, Blobs},
    vault::MasterKey,
};

use crate::{
    caller::Caller, clock::Clock, engine::Engine, entropy::SeededEntropy, model::ScriptedModel,
    options::ServerOptions, template, test_store::TestStore, wallet::Payer,
};

/// The password of every account that the kit creates.
pub const PASSWORD: &str = "correct horse battery";

/// The scripted model, or else the one at an endpoint.
fn language_model(
    scripted: Option<ScriptedModel>,
    endpoint: Option<Box<AssistantSettings>>,
) -> Option<Arc<dyn ports::Assistant>> {
    match (scripted, endpoint) {
        (Some(model), _) => Some(Arc::new(model)),
        (None, Some(endpoint)) => Some(Arc::new(HttpAssistant::new(*endpoint))),
        (None, None) => None,
    }
}

/// The client of a facilitator that settles payments.
fn facilitator((url, time_limit): (url::Url, Duration)) -> Box<dyn ports::Facilitator> {
    Box::new(HttpFacilitator::new(url, http::HeaderMap::new(), time_limit))
}

/// Telegram's Bot API at another place.
fn bot_at(base: &url::Url) -> Box<dyn ports::BotApi> {
    Box::new(HttpBot::new(base, "7:secret"))
}

/// The bucket, or a folder beside the database.
async fn open_blobs(store: &TestStore, bucket: Option<&str>) -> Blobs {
    let place = match bucket {
        Some(bucket) => BlobLocation::parse(bucket, &BTreeMap::new()).unwrap(),
        None => BlobLocation::Directory(store.folder.path().join("blobs")),
    };
    Blobs::open(&place).await.unwrap()
}

/// The clock that a node goes by.
async fn clock_of_node(db: &Db, clock: &Clock) -> Arc<dyn ports::Clock> {
    let own = Arc::new(clock.clone());
    if clock.is_of_machine() { DatabaseClock::start(db, own).await.unwrap() } else { own }
}

/// The service, with or without background work.
async fn start(parts: AppParts, store: &TestStore, background: bool) -> App {
    let spend_log = store.folder.path().join("spending");
    let app =
        if background { App::start(parts, &spend_log).await } else { App::open(parts, &spend_log).await };
    app.unwrap()
}

/// A running service.
pub struct Server {
    /// The service behind the doors.
    pub app: App,
    /// Its clock.
    pub clock: Clock,
    /// Built for the first caller: a node without callers needs none.
    router: OnceLock<axum::Router>,
    web: web::Options,
    store: Arc<TestStore>,
    broken: Arc<AtomicBool>,
}

/// A workspace with an account and a key.
pub struct Tenant {
    /// The account.
    pub account: model::AccountId,
    /// The account's address.
    pub email: String,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The workspace's owner address.
    pub owner_address: String,
    /// A caller with an admin key.
    pub key: Caller,
    /// The key's id.
    pub key_id: model::ApiKeyId,
}

/// The operator on the command line.
pub fn operator() -> Author {
    Author::operator(Some("root".to_owned()), "test")
}

impl Server {
    /// A service on an engine, with the default options.
    pub async fn start(engine: Engine) -> Self {
        Self::with(engine, ServerOptions::default()).await
    }

    /// A service on an engine.
    pub async fn with(engine: Engine, options: ServerOptions) -> Self {
        let store = Arc::new(template::new_store(engine).await);
        Self::open(store, Clock::start(), options).await
    }

    /// A second node on the same store, with the same clock.
    pub async fn another_node(&self, options: ServerOptions) -> Self {
        Self::open(self.store.clone(), self.clock.clone(), options).await
    }

    /// A service on PostgreSQL, on a machine whose clock runs and is so many seconds ahead of the right time.
    pub async fn on_machine(ahead: i64, options: ServerOptions) -> Self {
        let store = Arc::new(template::new_store(Engine::Postgres).await);
        Self::open(store, Clock::of_machine(ahead), options).await
    }

    /// A second node on the same store, on such a machine.
    pub async fn another_machine(&self, ahead: i64, options: ServerOptions) -> Self {
        Self::open(self.store.clone(), Clock::of_machine(ahead), options).await
    }

    /// The service after its process was killed and restarted. Callers of the former one must be dropped, since
    /// they keep it alive.
    pub async fn kill_and_start(self, options: ServerOptions) -> Self {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        drop(self);
        Self::open(store, clock, options).await
    }

    /// The location of the store behind the pooler of `scripts/pgbouncer`.
    pub fn location_behind_pooler(&self) -> store::DatabaseLocation {
        store::DatabaseLocation::Postgres(self.store.behind_pooler())
    }

    /// The location of the store.
    pub fn location(&self) -> &store::DatabaseLocation {
        &self.store.location
    }

    /// The folder with the blobs in `blobs`, the master key, and the SQLite file.
    pub fn folder(&self) -> &std::path::Path {
        self.store.folder.path()
    }

    /// Makes every request for random numbers panic, or stops that.
    pub fn break_random_numbers(&self, broken: bool) {
        self.broken.store(broken, Ordering::SeqCst);
    }

    /// Boxed, so that the futures of tests stay small.
    pub(crate) fn open(
        store: Arc<TestStore>,
        clock: Clock,
        options: ServerOptions,
    ) -> Pin<Box<dyn Future<Output = Self> + Send>> {
        Box::pin(Self::assemble(store, clock, options))
    }

    async fn assemble(store: Arc<TestStore>, clock: Clock, options: ServerOptions) -> Self {
        // Shown only when the test fails.
        let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_test_writer().try_init();
        let db = Db::open(&store.location).await.unwrap();
        db.migrate(clock.now()).await.unwrap();
        let blobs = open_blobs(&store, options.bucket.as_deref()).await;
        let master_key = MasterKey::load_or_create(&store.folder.path().join("master.key")).unwrap();
        let settings = Settings {
            plans: options.plans,
            hosted_domains: vec!["agents.test".to_owned(), "second.test".to_owned()],
            public_url: options.public_url,
            sign_up: options.sign_up,
            operator_plan: options.operator_plan,
            outbound: options.outbound,
            send_policy: options.send_policy,
            receives_mail: options.receives_mail,
            mailbox_grace_seconds: options.mailbox_grace_seconds,
            affiliate_percent: 20,
            currency: "USD".to_owned(),
            blob_provider: if options.bucket.is_some() { "s3" } else { "local" }.to_owned(),
            blob_bucket: "blobs".to_owned(),
            anonymous_rpm: options.anonymous_rpm,
            hostname: "mx.agents.test".to_owned(),
            max_message_bytes: 40 << 20,
            inbound_secret: options.inbound_secret,
            spf_mechanisms: "a:mx.agents.test".to_owned(),
            webhooks_allow_private: options.webhooks_allow_private,
            payments: options.payments,
            memory: options.memory,
            telegram: options.telegram.as_ref().map(|(_, hearing)| hearing.clone()).unwrap_or_default(),
        };
        let servers = &options.dns_servers;
        let dns = (!servers.is_empty()).then(|| Dns::without_cache(servers).unwrap());
        let http = OutgoingHttp::new(dns.clone(), options.webhooks_allow_private)
            .on_loopback_only()
            .with_time_limit(options.webhook_time_limit);
        let broken = Arc::new(AtomicBool::new(false));
        let entropy = Box::new(SeededEntropy::new(store.seed(options.seed), broken.clone()));
        let parts = AppParts {
            clock: clock_of_node(&db, &clock).await,
            db,
            blobs,
            master_key,
            entropy,
            settings,
            scanning: Scanning::new(options.blocklists, options.clamd),
            authenticator: None,
            dns,
            http: Box::new(http),
            next_hop: options.next_hop.map(|hop| Box::new(hop) as Box<dyn ports::NextHop>),
            facilitator: options.facilitator.map(facilitator),
            assistant: language_model(options.assistant, options.model_endpoint),
            embedder: options.embedder,
            hashing_cost: options.hashing_cost,
            restarts: RestartPolicy::default(),
            bot: options.telegram.map(|(base, _)| bot_at(&base)),
        };
        let app = start(parts, &store, options.background).await;
        Self { app, clock, router: OnceLock::new(), web: options.web, store, broken }
    }

    /// The router.
    pub(crate) fn router(&self) -> axum::Router {
        self.router.get_or_init(|| web::router(self.app.clone(), self.web.clone())).clone()
    }

    /// Serves on a listener, for clients that are programs of their own.
    pub fn listen(&self, listener: tokio::net::TcpListener) {
        let service = self.router().into_make_service_with_connect_info::<std::net::SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
    }

    /// A caller without a credential.
    pub fn anonymous(&self) -> Caller {
        Caller::new(self.router(), Vec::new())
    }

    /// A caller with an API key.
    pub fn key(&self, key: &str) -> Caller {
        Caller::new(self.router(), vec![("x-api-key".to_owned(), key.to_owned())])
    }

    /// A caller with a console session.
    pub fn cookie(&self, secret: &str) -> Caller {
        let cookie = ("cookie".to_owned(), format!("agent_mailbox={secret}"));
        // As browsers send it for same-origin requests.
        let site = ("sec-fetch-site".to_owned(), "same-origin".to_owned());
        Caller::new(self.router(), vec![cookie, site])
    }

    /// A caller with a wallet, the same for the same name.
    pub fn wallet(&self, name: &str) -> Payer {
        Payer::new(name, self.anonymous(), self.clock.clone())
    }

    /// A new workspace on a plan, with an account and an admin key.
    pub async fn tenant(&self, plan: Plan) -> Tenant {
        let email = format!("owner-{}@people.test", self.app.new_uuid().simple());
        let created = admin::create_account(
            &self.app,
            email.clone(),
            PASSWORD.to_owned(),
            None,
            Some(plan),
            &operator(),
        )
        .await
        .unwrap();
        let key = self.new_key(&created.workspace_id, Role::Admin).await;
        Tenant {
            account: created.account_id,
            email,
            workspace: created.workspace_id,
            owner_address: created.owner_address,
            key: self.key(&key.key),
            key_id: key.api_key.id,
        }
    }

    /// A new API key of a workspace, whatever its plan allows.
    pub async fn new_key(&self, workspace: &WorkspaceId, role: Role) -> model::api_keys::ApiKeyWithSecret {
        admin::create_key(&self.app, workspace.clone(), NewApiKey::new("test", role), &operator())
            .await
            .unwrap()
    }

    /// A caller with a new admin key of a workspace that has only some scopes and sees only some mailboxes.
    pub async fn narrowed(
        &self,
        workspace: &WorkspaceId,
        scopes: Option<&[Scope]>,
        mailboxes: Option<&[&str]>,
    ) -> Caller {
        let input = NewApiKey {
            scopes: scopes.map(<[Scope]>::to_vec),
            mailbox_ids: mailboxes.map(|named| named.iter().copied().map(Into::into).collect()),
            ..NewApiKey::new("narrowed", Role::Admin)
        };
        self.key(&admin::create_key(&self.app, workspace.clone(), input, &operator()).await.unwrap().key)
    }

    /// An unmetered call of a tenant's owner, for tests of operations themselves.
    pub async fn call(&self, tenant: &Tenant, operation: &'static operations::Operation) -> operations::Call {
        let session = self.log_in(tenant).await;
        let secret = session.secret().split_once('=').unwrap().1.to_owned();
        let caller = self.app.authenticate(&operations::Credential::Session(secret)).await.unwrap();
        self.app.enter_console(operation, caller, None, RequestInfo::default()).unwrap()
    }

    /// Delivers a message to an address as SMTP would, and returns the email's id.
    pub async fn receive(&self, to: &str, raw: impl Into<bytes::Bytes>) -> EmailId {
        self.try_receive(Some("sender@remote.test"), to, raw).await.unwrap()
    }

    /// The same, from a given sender; refusals are returned.
    pub async fn try_receive(
        &self,
        from: Option<&str>,
        to: &str,
        raw: impl Into<bytes::Bytes>,
    ) -> Result<EmailId, Refusal> {
        let recipient = inbound::route(&self.app, from, to).await?;
        let arrival = Arrival {
            provider: Some(InboundProvider::EdgeRouting),
            from: from.map(ToOwned::to_owned),
            recipients: vec![recipient],
            raw: raw.into(),
            client: None,
        };
        inbound::receive(&self.app, arrival).await?.emails.remove(0)
    }

    /// Runs the pending work for memory: documents, messages, vectors of another model.
    pub async fn index_memory(&self) {
        while knowledge::worker::index_next(&self.app).await.unwrap() {}
        let is_on = memory::mail::is_on(&self.app);
        let behind = if is_on { memory::mail::list_pending(&self.app).await.unwrap() } else { Vec::new() };
        for mailbox in behind {
            while memory::mail::index_some(&self.app, &mailbox).await.unwrap() == memory::mail::Progress::More
            {
            }
        }
        while memory::renew::re_embed_some(&self.app).await.unwrap() > 0 {}
    }

    /// Logs in as a tenant's owner.
    pub async fn log_in(&self, tenant: &Tenant) -> Caller {
        let body = serde_json::json!({ "email": tenant.email, "password": PASSWORD });
        let answer = self.anonymous().post("/api/console/login", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        self.cookie(&answer.session_secret())
    }
}
