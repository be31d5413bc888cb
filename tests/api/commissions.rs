//! What affiliates earn and are paid.

use model::{Plan, Timestamp, affiliate::PayoutStatus};
use operations::admin::{self, NewPayout};
use serde_json::{Value, json};
use store::workspaces::WorkspaceRecord;
use testkit::{Engine, ServerOptions, Tenant, both_engines};

use super::affiliate::{ANALYTICS, COMMISSIONS, PAYOUTS, click, referred, start};

/// rules: AFF-5, AFF-6, AFF-7
#[both_engines]
async fn a_paid_month_earns_one_commission(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let customer = referred(&server, "a@people.test", "friends").await;
    let free = referred(&server, "b@people.test", "friends").await;
    let unbidden = server.tenant(Plan::Developer).await;
    operations::maintenance::run(&server.app).await.unwrap();
    assert_eq!(tenant.key.get(COMMISSIONS).await.ok(), json!([]));

    admin::set_plan(&server.app, customer.clone(), Plan::Developer, &testkit::operator()).await.unwrap();
    let earned = tenant.key.get(COMMISSIONS).await.ok();
    let expected = json!([{
        "id": earned[0]["id"], "plan": "developer", "amount_cents": 580, "currency": "USD", "status": "pending",
        "created_at": "2026-07-14T09:00:00.000Z",
    }]);
    assert_eq!(earned, expected);
    assert!(earned[0]["id"].as_str().unwrap().starts_with("com_"));
    // However often the month is looked at and the plan goes up and down.
    admin::set_plan(&server.app, customer.clone(), Plan::Free, &testkit::operator()).await.unwrap();
    admin::set_plan(&server.app, customer.clone(), Plan::Developer, &testkit::operator()).await.unwrap();
    server.clock.set("2026-07-31T23:59:59Z");
    let second = server.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await;
    let (near, far) =
        tokio::join!(operations::maintenance::run(&server.app), operations::maintenance::run(&second.app));
    near.and(far).unwrap();
    assert_eq!(tenant.key.get(COMMISSIONS).await.ok(), expected);

    server.clock.set("2026-08-01T00:00:00Z");
    let (near, far) =
        tokio::join!(operations::maintenance::run(&server.app), operations::maintenance::run(&second.app));
    near.and(far).unwrap();
    let earned = tenant.key.get(COMMISSIONS).await.ok();
    assert_eq!((earned.as_array().unwrap().len(), &earned[1]), (2, &expected[0]));
    assert_eq!(earned[0]["created_at"], "2026-08-01T00:00:00.000Z");
    // A month without a paid plan earns nothing; one that begins as Free earns when it is no longer.
    admin::set_plan(&server.app, customer, Plan::Free, &testkit::operator()).await.unwrap();
    server.clock.set("2026-09-15T00:00:00Z");
    operations::maintenance::run(&server.app).await.unwrap();
    admin::set_plan(&server.app, free, Plan::Developer, &testkit::operator()).await.unwrap();
    let found = tenant.key.get(ANALYTICS).await.ok();
    let money = ["conversions", "earned_cents", "paid_cents", "pending_cents"]
        .map(|name| found[name].as_i64().unwrap());
    assert_eq!(money, [2, 3 * 580, 0, 3 * 580]);
    assert_eq!(found["currency"], "USD");
    assert_eq!(unbidden.key.get(COMMISSIONS).await.ok(), json!([]));
}

/// Workspaces that pay nothing do not stand in the way of those that do, however many there are.
/// rules: AFF-5
#[both_engines]
async fn every_referred_workspace_earns(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let referrer = tenant.workspace.clone();
    let write = server.app.db().system_write(async move |tx| {
        for number in 0..2100 {
            let plan = if number % 2 == 0 { Plan::Enterprise } else { Plan::Developer };
            let record = WorkspaceRecord {
                id: format!("ws_{number:04}").as_str().into(),
                name: "W".to_owned(),
                owner_address: "0x00".to_owned(),
                timezone: "UTC".to_owned(),
                plan,
                data_key: Vec::new(),
                referred_by: Some(referrer.clone()),
                mailbox_count: 0,
                api_key_count: 0,
                created_at: Timestamp::from_micros(0),
                updated_at: Timestamp::from_micros(0),
            };
            store::workspaces::insert(tx.enter(&record.id), &record).await?;
        }
        Ok::<_, store::Error>(())
    });
    write.await.unwrap();
    operations::maintenance::run(&server.app).await.unwrap();
    let found = tenant.key.get(ANALYTICS).await.ok();
    assert_eq!((&found["conversions"], &found["earned_cents"]), (&json!(1050), &json!(1050 * 580)));
    // The list shows the newest 500.
    assert_eq!(tenant.key.get(COMMISSIONS).await.ok().as_array().unwrap().len(), 500);
}

/// rules: AFF-6
#[both_engines]
async fn analytics_tells_the_last_thirty_days(engine: Engine) {
    let (server, tenant) = start(engine).await;
    for day in ["2026-06-14", "2026-06-15", "2026-07-14"] {
        server.clock.set(&format!("{day}T23:59:59Z"));
        click(&server, "friends").await;
    }
    referred(&server, "a@people.test", "friends").await;
    let expected = json!({
        "clicks": 3,
        "sign_ups": 1,
        "conversions": 0,
        "earned_cents": 0,
        "paid_cents": 0,
        "pending_cents": 0,
        "currency": "USD",
        "days": [
            { "date": "2026-06-15", "clicks": 1, "sign_ups": 0 },
            { "date": "2026-07-14", "clicks": 1, "sign_ups": 1 },
        ],
    });
    assert_eq!(tenant.key.get(ANALYTICS).await.ok(), expected);
}

fn payout(tenant: &Tenant, month: u32, status: PayoutStatus) -> NewPayout {
    let at = |month: u32| format!("2026-{month:02}-01T00:00:00Z").parse::<Timestamp>().unwrap();
    NewPayout {
        workspace: tenant.workspace.clone(),
        amount_cents: 500,
        currency: "usd".to_owned(),
        status,
        period_start: at(month),
        period_end: at(month + 1),
        reference: Some(format!("transfer {month}")),
    }
}

/// rules: AFF-6, AFF-7, AFF-8
#[both_engines]
async fn payouts_show_to_their_workspace_alone(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let other = server.tenant(Plan::Free).await;
    let customer = referred(&server, "a@people.test", "friends").await;
    admin::set_plan(&server.app, customer, Plan::Developer, &testkit::operator()).await.unwrap();
    server.clock.set("2026-08-01T00:00:00Z");
    operations::maintenance::run(&server.app).await.unwrap();
    admin::add_payout(&server.app, payout(&tenant, 6, PayoutStatus::Failed), &testkit::operator())
        .await
        .unwrap();
    server.clock.advance(60);
    admin::add_payout(&server.app, payout(&tenant, 7, PayoutStatus::Paid), &testkit::operator())
        .await
        .unwrap();
    server.clock.advance(60);
    let pending = NewPayout { reference: None, ..payout(&tenant, 8, PayoutStatus::Pending) };
    admin::add_payout(&server.app, pending, &testkit::operator()).await.unwrap();

    let found = tenant.key.get(PAYOUTS).await.ok();
    let entry = |place: usize, status: &str, month: u32, paid_at: Value, minute: u32| {
        json!({
            "id": found[place]["id"],
            "amount_cents": 500,
            "currency": "USD",
            "status": status,
            "period_start": format!("2026-{month:02}-01T00:00:00.000Z"),
            "period_end": format!("2026-{:02}-01T00:00:00.000Z", month + 1),
            "reference": if status == "pending" { Value::Null } else { json!(format!("transfer {month}")) },
            "paid_at": paid_at,
            "created_at": format!("2026-08-01T00:{minute:02}:00.000Z"),
        })
    };
    let expected = json!([
        entry(0, "pending", 8, Value::Null, 2),
        entry(1, "paid", 7, json!("2026-08-01T00:01:00.000Z"), 1),
        entry(2, "failed", 6, Value::Null, 0),
    ]);
    assert_eq!(found, expected);
    assert_eq!(other.key.get(PAYOUTS).await.ok(), json!([]));
    // Only what was really paid counts as paid, and only the commissions of its period are settled.
    let statuses: Vec<Value> = tenant
        .key
        .get(COMMISSIONS)
        .await
        .ok()
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["status"].clone())
        .collect();
    assert_eq!(statuses, ["pending", "paid"]);
    let found = tenant.key.get(ANALYTICS).await.ok();
    let money = ["earned_cents", "paid_cents", "pending_cents"].map(|name| found[name].as_i64().unwrap());
    assert_eq!(money, [1160, 500, 660]);
}

/// rules: AFF-8
#[both_engines]
async fn faulty_payouts_are_refused(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let good = || payout(&tenant, 7, PayoutStatus::Paid);
    let currencies =
        ["", "US", "USDX", "U$D", "US1", "€"].map(|code| NewPayout { currency: code.to_owned(), ..good() });
    let amounts = [0, -1, i64::MIN].map(|amount_cents| NewPayout { amount_cents, ..good() });
    let backwards = NewPayout { period_end: good().period_start, period_start: good().period_end, ..good() };
    for faulty in currencies.into_iter().chain(amounts).chain([backwards]) {
        let refused = admin::add_payout(&server.app, faulty, &testkit::operator()).await.unwrap_err();
        assert_eq!(refused.kind().code(), "validation_failed");
        assert_eq!(refused.details().len(), 1);
    }
    let lost = NewPayout { workspace: "ws_none".into(), ..good() };
    assert_eq!(
        admin::add_payout(&server.app, lost, &testkit::operator()).await.unwrap_err().message(),
        "Workspace not found"
    );
    assert_eq!(tenant.key.get(PAYOUTS).await.ok(), json!([]));
}
