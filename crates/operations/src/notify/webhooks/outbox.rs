//! Delivers events to webhooks: at least once, each under one id, for up to 24 hours.
//!
//! Workers of any number of nodes share the work. First they create deliveries for the events after each webhook's
//! position in the log; position and deliveries are stored in one transaction, so no event is lost or duplicated.
//! Then they claim webhooks with due deliveries, each for a bounded time: one that hangs occupies a few connections
//! of one worker for ten seconds, and is paused for longer the more often it fails. The claims of a worker that died
//! expire, and its deliveries are sent again under the same id.

mod worker;

use std::time::Instant;

use model::{
    MailboxId, Timestamp, WebhookId, WorkspaceId,
    webhooks::{DeliveryAttempt, DeliveryStatus},
};
use store::{
    Tx, events,
    webhooks::{self, DeliveryRecord, WebhookRecord},
};
use tracing::Instrument;
use url::Url;

pub use self::worker::{run_due, work};
use super::{SECRET, TEST_EVENT, new_delivery, signature, target};
use crate::core::{
    app::App,
    error::{Error, Result},
    ports::{HttpExcerpt, HttpFault, HttpPost},
    supervisor::{ClaimGuard, catch_item_panic},
};

/// The worker that calls webhooks.
const WORKER: &str = "webhooks";

/// Deliveries of one webhook that are sent at the same time.
const MAX_CONCURRENT: i64 = 4;
/// Events per transaction.
const BATCH: i64 = 200;
/// The lease of a webhook: longer than requests may take.
const LEASE_SECONDS: i64 = 30;
/// The delays before further attempts, in seconds: a day in total, minus jitter.
const RETRY_DELAYS_SECONDS: [i64; 10] = [5, 30, 120, 600, 1800, 3600, 7200, 14_400, 21_600, 36_000];
/// After this long there are no more attempts.
const GIVE_UP_SECONDS: i64 = 24 * 3600;
/// Maximum pause of a failing webhook.
const MAX_PAUSE_SECONDS: i64 = 300;
/// Attempts that are kept in the log of one delivery.
const MAX_KEPT_ATTEMPTS: usize = 30;

/// The result of the fan-out for a workspace.
enum FanOut {
    /// It has no webhooks.
    Quiet,
    /// No webhook had new events.
    Nothing,
    /// There may be new deliveries; `more` says whether there are more events.
    Some { more: bool },
}

/// Creates deliveries for the next events of a workspace's webhooks: a batch for each, so that a busy workspace does
/// not block others.
async fn fan_out(app: &App, workspace: &WorkspaceId) -> Result<FanOut> {
    let load = async |tx: &mut Tx| {
        let lagging = webhooks::lagging(tx).await?;
        let quiet = lagging.is_empty() && webhooks::count(tx).await? == 0;
        Ok::<_, store::Error>((lagging, quiet))
    };
    let (lagging, quiet) = app.db().read(workspace, load).await?;
    if lagging.is_empty() {
        return Ok(if quiet { FanOut::Quiet } else { FanOut::Nothing });
    }
    let mut more = false;
    for id in lagging {
        let app_ = app.clone();
        more |= app.db().write(workspace, async move |tx| fan_out_one(tx, &app_, &id).await).await?;
    }
    Ok(FanOut::Some { more })
}

/// Advances one webhook in the event log, and returns whether there is more.
async fn fan_out_one(tx: &mut Tx, app: &App, id: &WebhookId) -> Result<bool> {
    // Another worker may have advanced it a moment ago.
    let Some(webhook) = webhooks::find_for_change(tx, id).await? else { return Ok(false) };
    let heads = events::list_heads_after(tx, webhook.sequence, BATCH).await?;
    let Some(last) = heads.last().map(|head| head.sequence) else { return Ok(false) };
    let now = app.now();
    let mut made = false;
    for head in &heads {
        if webhook.event_types.contains(&head.kind) && gets_events_of(&webhook, head.mailbox_id.as_ref()) {
            let kind = head.kind.as_str().to_owned();
            let delivery =
                new_delivery(app.new_id(), id.clone(), head.id.clone(), kind, Some(head.sequence), now);
            webhooks::insert_delivery(tx, &delivery).await?;
            made = true;
        }
    }
    webhooks::set_sequence(tx, id, last).await?;
    if made {
        webhooks::make_due(tx, id, now).await?;
    }
    Ok(i64::try_from(heads.len()).is_ok_and(|count| count == BATCH))
}

/// Whether a webhook gets the events of a mailbox, or those of none.
fn gets_events_of(webhook: &WebhookRecord, mailbox: Option<&MailboxId>) -> bool {
    let is_wanted = |wanted: &Vec<MailboxId>| mailbox.is_some_and(|id| wanted.contains(id));
    webhook.mailbox_ids.as_ref().is_none_or(is_wanted)
}

/// A webhook that this worker has claimed, with its due deliveries.
struct ClaimedWebhook {
    webhook: WebhookRecord,
    /// Until when.
    until: Timestamp,
    deliveries: Vec<(DeliveryRecord, Option<events::EventRecord>)>,
}

/// Sends the due deliveries of one webhook, a few at a time, and returns how many were tried. A panic pauses it for a
/// while, like a webhook that does not answer; if the worker is lost meanwhile, the next one continues at once.
async fn deliver(app: &App, workspace: &WorkspaceId, id: &WebhookId) -> Result<usize> {
    let Some(claimed) = claim(app, workspace, id).await? else { return Ok(0) };
    let abandoned = (app.clone(), workspace.clone(), id.clone(), claimed.until);
    let claim = ClaimGuard::new(move || async move {
        let (app, workspace, id, until) = abandoned;
        let released: Result<(), store::Error> =
            app.db().write(&workspace, async move |tx| webhooks::release(tx, &id, until).await).await;
        if let Err(error) = released {
            tracing::warn!(%error, "webhook claim not released; it will expire");
        }
    });
    let failures = claimed.webhook.failures + 1;
    let outcome = catch_item_panic(WORKER, send(app, workspace, id, claimed)).await;
    claim.done();
    if let Ok(outcome) = outcome {
        return outcome;
    }
    let (id, until) = (id.clone(), app.now().plus_seconds(pause_seconds(failures)));
    app.db().write(workspace, async move |tx| webhooks::reschedule(tx, &id, failures, until).await).await?;
    Ok(0)
}

async fn send(app: &App, workspace: &WorkspaceId, id: &WebhookId, claimed: ClaimedWebhook) -> Result<usize> {
    let sender = Sender::new(app, workspace, &claimed.webhook).await?;
    let attempts = claimed.deliveries.into_iter().map(|(delivery, event)| {
        let span = tracing::error_span!("delivery", delivery = %delivery.id, event = %delivery.event_id);
        sender.attempt(delivery, event).instrument(span)
    });
    let outcomes = futures_util::future::join_all(attempts).await;
    let tried = outcomes.len();
    let (app, id) = (app.clone(), id.clone());
    app.clone()
        .db()
        .write(workspace, async move |tx| {
            let Some(webhook) = webhooks::find_for_change(tx, &id).await? else { return Ok(()) };
            for (delivery, _) in &outcomes {
                webhooks::update_delivery(tx, delivery).await?;
            }
            let failures = if outcomes.iter().any(|(_, answered)| *answered) {
                0
            } else {
                webhook.failures + i64::from(!outcomes.is_empty())
            };
            webhooks::reschedule(tx, &id, failures, app.now().plus_seconds(pause_seconds(failures))).await?;
            Ok::<_, Error>(())
        })
        .await?;
    Ok(tried)
}

async fn claim(app: &App, workspace: &WorkspaceId, id: &WebhookId) -> Result<Option<ClaimedWebhook>> {
    let (now, id) = (app.now(), id.clone());
    let until = now.plus_seconds(LEASE_SECONDS);
    app.db()
        .write(workspace, async move |tx| {
            if !webhooks::claim(tx, &id, now, until).await? {
                return Ok(None);
            }
            let Some(webhook) = webhooks::find(tx, &id).await? else { return Ok(None) };
            let mut deliveries = Vec::new();
            for delivery in webhooks::due_deliveries(tx, &id, now, MAX_CONCURRENT).await? {
                let event = match delivery.sequence {
                    Some(sequence) => events::find(tx, sequence).await?,
                    None => None,
                };
                // Its mailboxes may have been changed since, and its URL after that.
                let event = event.filter(|event| gets_events_of(&webhook, event.mailbox_id.as_ref()));
                deliveries.push((delivery, event));
            }
            Ok(Some(ClaimedWebhook { webhook, until, deliveries }))
        })
        .await
}

/// Seconds that a webhook is paused after a number of rounds in a row without any response.
fn pause_seconds(failures: i64) -> i64 {
    match u32::try_from(failures) {
        Ok(0) | Err(_) => 0,
        Ok(failures) => (1_i64 << (failures - 1).min(16)).min(MAX_PAUSE_SECONDS),
    }
}

/// Sends events to one webhook.
struct Sender<'a> {
    app: &'a App,
    workspace: &'a WorkspaceId,
    key: std::sync::Arc<store::vault::DataKey>,
    url: Option<Url>,
    secrets: Vec<String>,
}

impl<'a> Sender<'a> {
    async fn new(app: &'a App, workspace: &'a WorkspaceId, webhook: &WebhookRecord) -> Result<Self> {
        let key = app.data_key(workspace).await?;
        let now = app.now();
        let old =
            webhook.old_secret.as_ref().filter(|_| webhook.old_secret_until.is_some_and(|end| end > now));
        let open = |sealed: &Vec<u8>| {
            let plain = key.open(SECRET, sealed).map_err(store::Error::from)?;
            String::from_utf8(plain).map_err(Error::internal)
        };
        let secrets = std::iter::once(&webhook.secret).chain(old).map(open).collect::<Result<Vec<_>>>()?;
        let allow_private = app.settings().webhooks_allow_private;
        // The operator may have changed what is allowed.
        let url =
            Url::parse(&webhook.url).ok().filter(|url| target::check_target(url, allow_private).is_ok());
        Ok(Self { app, workspace, key, url, secrets })
    }

    /// Tries one delivery; returns it with the attempt, and whether there was a response.
    async fn attempt(
        &self,
        mut delivery: DeliveryRecord,
        event: Option<events::EventRecord>,
    ) -> (DeliveryRecord, bool) {
        let (at, began) = (self.app.now(), Instant::now());
        let outcome = match self.body(&delivery, event) {
            Ok(Some(body)) => self.post(delivery.event_id.as_str(), at, body).await,
            Ok(None) => Err(HttpFault::Refused(
                "The event is not kept any more, or its mailbox is no longer one of the webhook's."
                    .to_owned(),
            )),
            Err(error) => {
                tracing::error!(%error, "webhook event unreadable; retrying");
                Err(HttpFault::Network("The event could not be read.".to_owned()))
            }
        };
        let answered = outcome.is_ok();
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        record(&mut delivery, outcome, at, duration_ms, self.jitter(), self.app.now());
        let status = delivery.status.as_str();
        tracing::debug!(status, attempt = delivery.tries, duration_ms, "webhook delivery attempted");
        metrics::counter!("webhook_attempts_total", "status" => status).increment(1);
        (delivery, answered)
    }

    /// The body of the event, byte for byte the same at every attempt.
    fn body(&self, delivery: &DeliveryRecord, event: Option<events::EventRecord>) -> Result<Option<Vec<u8>>> {
        if let Some(sealed) = &delivery.event {
            return Ok(Some(self.key.open(TEST_EVENT, sealed).map_err(store::Error::from)?));
        }
        let Some(event) = event else { return Ok(None) };
        let shown = crate::core::events::show(self.workspace, &self.key, event)?;
        serde_json::to_vec(&shown).map(Some).map_err(Error::internal)
    }

    async fn post(&self, id: &str, at: Timestamp, body: Vec<u8>) -> Result<HttpExcerpt, HttpFault> {
        let Some(url) = self.url.clone() else {
            return Err(HttpFault::Refused("The URL leads to no address that may be called.".to_owned()));
        };
        let headers = signature::headers(id, at, &body, &self.secrets);
        self.app.http().post(HttpPost { url, headers, body }).await
    }

    /// A number from 0 to 1.
    fn jitter(&self) -> f64 {
        let mut random = [0];
        self.app.entropy().fill(&mut random);
        f64::from(random[0]) / 255.0
    }
}

/// Records an attempt, and whether and when there is another.
fn record(
    delivery: &mut DeliveryRecord,
    outcome: Result<HttpExcerpt, HttpFault>,
    at: Timestamp,
    duration_ms: u64,
    jitter: f64,
    now: Timestamp,
) {
    let (status, again, attempt) = match outcome {
        Ok(answer) => {
            let delivered = (200..300).contains(&answer.status);
            let again = matches!(answer.status, 408 | 429 | 500..=599);
            let error = match answer.status {
                _ if delivered => None,
                300..=399 => Some("Redirects are not followed.".to_owned()),
                _ => Some("The response was not a 2xx.".to_owned()),
            };
            let status = if delivered { DeliveryStatus::Delivered } else { DeliveryStatus::Failed };
            (status, again, (Some(answer.status), Some(answer.excerpt), error))
        }
        Err(HttpFault::Network(error)) => (DeliveryStatus::Failed, true, (None, None, Some(error))),
        Err(HttpFault::Refused(error)) => (DeliveryStatus::Failed, false, (None, None, Some(error))),
    };
    let (response_status, response_excerpt, error) = attempt;
    delivery.attempts.push(DeliveryAttempt { at, response_status, response_excerpt, error, duration_ms });
    let surplus = delivery.attempts.len().saturating_sub(MAX_KEPT_ATTEMPTS);
    delivery.attempts.drain(..surplus);
    let next = if again { next_attempt(delivery, jitter, now) } else { None };
    delivery.status = if next.is_some() { DeliveryStatus::Pending } else { status };
    delivery.next_attempt_at = next;
    delivery.tries += 1;
    delivery.updated_at = now;
}

/// When a delivery is tried again; `None` once its time is over.
fn next_attempt(delivery: &DeliveryRecord, jitter: f64, now: Timestamp) -> Option<Timestamp> {
    let pause = *RETRY_DELAYS_SECONDS.get(usize::try_from(delivery.tries).ok()?)?;
    // Jitter only shortens: the last attempt is within the day.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "hours in microseconds fit"
    )]
    let micros = (pause as f64 * 1e6 * (1.0 - 0.2 * jitter)) as i64;
    let next = Timestamp::from_micros(now.as_micros() + micros);
    (next < delivery.begun_at.plus_seconds(GIVE_UP_SECONDS)).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    // rules: HOOK-3
    #[test]
    fn attempts_spread_over_a_day() {
        let hour = 3_600_000_000;
        for jitter in [0.0, 0.5, 1.0] {
            let mut now = Timestamp::from_micros(0);
            let mut delivery =
                new_delivery("dlv_1".into(), "whk_1".into(), "evt_1".into(), "x".to_owned(), Some(1), now);
            let mut last_pause = 0;
            while delivery.status == DeliveryStatus::Pending {
                let fault = Err(HttpFault::Network("away".to_owned()));
                record(&mut delivery, fault, now, 1, jitter, now);
                let Some(next) = delivery.next_attempt_at else { break };
                let pause = next.as_micros() - now.as_micros();
                assert!(pause > last_pause);
                (last_pause, now) = (pause, next);
            }
            assert_eq!((delivery.status, delivery.attempts.len()), (DeliveryStatus::Failed, 11));
            assert!((18 * hour..24 * hour).contains(&now.as_micros()), "{now:?}");
        }
    }

    // rules: HOOK-3
    #[test]
    fn answers_decide_whether_there_is_another_attempt() {
        let now = Timestamp::from_micros(0);
        for (status, wanted) in [
            (200, DeliveryStatus::Delivered),
            (204, DeliveryStatus::Delivered),
            (299, DeliveryStatus::Delivered),
            (301, DeliveryStatus::Failed),
            (307, DeliveryStatus::Failed),
            (400, DeliveryStatus::Failed),
            (401, DeliveryStatus::Failed),
            (404, DeliveryStatus::Failed),
            (410, DeliveryStatus::Failed),
            (408, DeliveryStatus::Pending),
            (429, DeliveryStatus::Pending),
            (500, DeliveryStatus::Pending),
            (503, DeliveryStatus::Pending),
            (599, DeliveryStatus::Pending),
        ] {
            let mut delivery =
                new_delivery("dlv_1".into(), "whk_1".into(), "evt_1".into(), "x".to_owned(), Some(1), now);
            let answer = HttpExcerpt { status, excerpt: "so".to_owned() };
            record(&mut delivery, Ok(answer), now, 7, 0.0, now);
            assert_eq!(delivery.status, wanted, "{status}");
            assert_eq!(delivery.next_attempt_at.is_some(), wanted == DeliveryStatus::Pending);
        }
    }

    // rules: HOOK-8
    #[test]
    fn a_webhook_that_never_answers_is_left_alone_for_longer() {
        assert_eq!([0, 1, 2, 3, 9, 10, 60].map(pause_seconds), [0, 1, 2, 4, 256, 300, 300]);
    }
}
