//! A whole service in this process, on a real port, with limits that are finite but out of reach, so that all of
//! the metering runs and none of it refuses.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use adapters::webhook_http::OutgoingHttp;
use axum::Router;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use model::{Limit, Plan, Plans, Role, WorkspaceId, accounts::Login, api_keys::NewApiKey};
use operations::{
    App, AppParts, HashingCost, MemorySettings, Scanning, Settings, accounts, admin,
    memory::LocalEmbedder,
    payments::PaymentSettings,
    ports::{Clock, Embedder, SystemClock, SystemEntropy},
    supervisor::RestartPolicy,
};
use store::{
    Db,
    blobs::{BlobLocation, Blobs},
};
use tokio::task::AbortHandle;

use crate::measured_store::MeasuredStore;

/// The histogram buckets of latencies.
const BUCKET_SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// The owner of the workspace.
fn owner() -> Login {
    Login { email: "owner@people.test".to_owned(), password: "correct horse battery".to_owned() }
}

/// A running service with one workspace.
pub(crate) struct Service {
    pub(crate) app: App,
    pub(crate) workspace: WorkspaceId,
    /// The secret of a key of the workspace.
    pub(crate) key: String,
}

impl Service {
    /// Opens a store, creating it if needed, and adds a workspace to it.
    pub(crate) async fn open(store: &MeasuredStore) -> Self {
        Self::open_with(store, Arc::new(LocalEmbedder::default())).await
    }

    /// The same, with another embedder.
    pub(crate) async fn open_with(store: &MeasuredStore, embedder: Arc<dyn Embedder>) -> Self {
        // Before the store opens, as in the real program: handles of frequent metrics are kept.
        recorder();
        let db = Db::open(&store.location).await.expect("the store opens");
        db.migrate(SystemClock.now()).await.expect("the schema is brought up to date");
        let parts = parts(store, db, embedder).await;
        let app = App::start(parts, &store.folder().join("spending")).await.expect("the service starts");
        let Login { email, password } = owner();
        let account = admin::create_account(
            &app,
            email,
            password,
            None,
            Some(Plan::Developer),
            &operations::Author::operator(None, "bench"),
        )
        .await
        .expect("an account is made");
        let workspace = account.workspace_id;
        let author = operations::Author::operator(None, "bench");
        let key = admin::create_key(&app, workspace.clone(), NewApiKey::new("bench", Role::Admin), &author)
            .await
            .expect("a key is made");
        Self { app, workspace, key: key.key }
    }

    /// Another node on the same store and over the same connections, which has read nothing yet.
    pub(crate) async fn another_node(&self, store: &MeasuredStore, embedder: Arc<dyn Embedder>) -> Self {
        let app = App::attach(parts(store, self.app.db().clone(), embedder).await);
        Self { app, workspace: self.workspace.clone(), key: self.key.clone() }
    }

    /// The cookie of the workspace's owner after logging in.
    pub(crate) async fn cookie(&self) -> String {
        let network = std::net::Ipv4Addr::LOCALHOST.into();
        let request = operations::RequestInfo::default();
        let client = operations::Client { network, device: None, user_agent: "bench".to_owned(), request };
        let opened = accounts::log_in(&self.app, owner(), &client).await.expect("the owner logs in");
        format!("agent_mailbox={}", opened.secret)
    }

    /// Serves the API and returns its address.
    pub(crate) async fn listen(&self) -> SocketAddr {
        self.serve().await.0
    }

    /// The same, and what ends it.
    pub(crate) async fn serve(&self) -> (SocketAddr, AbortHandle) {
        let recorder = recorder();
        let metrics: web::RenderMetrics = Arc::new(move || recorder.render());
        let options = web::Options { metrics: Some(metrics), ..web::Options::default() };
        serve(web::router(self.app.clone(), options)).await
    }
}

/// Serves a router on a free port, the same way for all sides of a comparison.
pub(crate) async fn listen(router: Router) -> SocketAddr {
    serve(router).await.0
}

async fn serve(router: Router) -> (SocketAddr, AbortHandle) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let serving = tokio::spawn(async move { axum::serve(listener, service).await });
    (address, serving.abort_handle())
}

/// What a service consists of, without background work.
async fn parts(store: &MeasuredStore, db: Db, embedder: Arc<dyn Embedder>) -> AppParts {
    let blobs = BlobLocation::Directory(store.folder().join("blobs"));
    AppParts {
        db,
        blobs: Blobs::open(&blobs).await.expect("the blob store opens"),
        master_key: store.master_key(),
        clock: Arc::new(SystemClock),
        entropy: Box::new(SystemEntropy),
        settings: settings(),
        scanning: Scanning::new(Vec::new(), None),
        authenticator: None,
        dns: None,
        http: Box::new(OutgoingHttp::new(None, false)),
        next_hop: None,
        facilitator: None,
        assistant: None,
        embedder: Some(embedder),
        bot: None,
        hashing_cost: HashingCost::default(),
        restarts: RestartPolicy::default(),
    }
}

/// Metrics are recorded as in the real program, so that their cost is in the figures.
fn recorder() -> PrometheusHandle {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    let start = || {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKET_SECONDS)
            .and_then(PrometheusBuilder::install_recorder)
            .expect("no other recorder is there");
        let handle = recorder.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(5)).await;
                handle.run_upkeep();
            }
        });
        recorder
    };
    RECORDER.get_or_init(start).clone()
}

fn settings() -> Settings {
    let config: toml::Table =
        include_str!("../../../config.default.toml").parse().expect("the default configuration is TOML");
    let mut plans: Plans = config["plans"].clone().try_into().expect("the default plans are complete");
    plans.developer.credits_per_period = Limit::of(1_000_000_000_000);
    plans.developer.rpm = Limit::of(1_000_000_000);
    plans.developer.mailboxes = Limit::of(1_000_000);
    plans.developer.mails_per_month = Limit::of(1_000_000_000);
    Settings {
        plans,
        hosted_domains: vec!["agents.test".to_owned()],
        public_url: "http://localhost".to_owned(),
        sign_up: operations::SignUpPolicy::default(),
        operator_plan: model::Plan::Free,
        outbound: operations::Outbound::new(model::sending::OutboundMode::Local),
        send_policy: operations::SendPolicySettings::default(),
        receives_mail: false,
        mailbox_grace_seconds: 7 * 86_400,
        affiliate_percent: 20,
        currency: "USD".to_owned(),
        blob_provider: "local".to_owned(),
        blob_bucket: "blobs".to_owned(),
        anonymous_rpm: 1_000_000,
        hostname: "mx.agents.test".to_owned(),
        max_message_bytes: 40 << 20,
        inbound_secret: None,
        spf_mechanisms: "a:mx.agents.test".to_owned(),
        webhooks_allow_private: false,
        payments: PaymentSettings { wallet_rpm: 1_000_000_000, ..PaymentSettings::default() },
        memory: MemorySettings::default(),
        telegram: operations::BotUpdates::Polling,
    }
}
