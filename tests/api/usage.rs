//! What a workspace used: credits, mails, history.

use model::{Limit, Plan};
use serde_json::{Value, json};
use testkit::{Engine, Server, ServerOptions, Tenant, both_engines};

use super::people::at;

/// rules: WS-7, PLAN-1
#[both_engines]
async fn credit_usage_tells_the_period_and_counts_itself(engine: Engine) {
    let server = Server::start(engine).await;
    for (plan, name, lower, limit) in
        [(Plan::Free, "Free", "free", 1000), (Plan::Developer, "Developer", "developer", 50_000)]
    {
        let tenant = server.tenant(plan).await;
        tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
        tenant.key.get("/api/v1/mailboxes/none").await.expect(404, "not_found");
        let usage = tenant.key.get(&at(&tenant, "/usage/credits")).await.ok();
        let expected = json!({
            "plan": lower,
            "plan_name": name,
            "period_start": "2026-07-01T00:00:00.000Z",
            "period_end": "2026-08-01T00:00:00.000Z",
            "limit": limit,
            "used": 11,
            "remaining": limit - 11,
        });
        assert_eq!(usage, expected);
        assert_eq!(tenant.key.get(&at(&tenant, "/usage/credits")).await.ok()["used"], 12);
    }
    let tenant = server.tenant(Plan::Enterprise).await;
    let usage = tenant.key.get(&at(&tenant, "/usage/credits")).await.ok();
    assert_eq!((&usage["plan"], &usage["plan_name"]), (&json!("enterprise"), &json!("Enterprise")));
    assert_eq!(
        (&usage["limit"], &usage["remaining"], &usage["used"]),
        (&Value::Null, &Value::Null, &json!(1))
    );
    assert_eq!(usage.as_object().unwrap().len(), 7);
}

/// rules: WS-7
#[both_engines]
async fn periods_are_utc_calendar_months(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    for (now, start, end) in [
        ("2026-12-31T23:59:59.999Z", "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"),
        ("2027-01-01T00:00:00Z", "2027-01-01T00:00:00.000Z", "2027-02-01T00:00:00.000Z"),
        ("2028-02-29T12:00:00Z", "2028-02-01T00:00:00.000Z", "2028-03-01T00:00:00.000Z"),
    ] {
        server.clock.set(now);
        for kind in ["credits", "email"] {
            let usage = tenant.key.get(&at(&tenant, &format!("/usage/{kind}"))).await.ok();
            assert_eq!((&usage["period_start"], &usage["period_end"]), (&json!(start), &json!(end)), "{now}");
        }
    }
}

/// Nothing counts mails yet; the figures are put where receiving and sending will put them.
async fn count_mails(server: &Server, tenant: &Tenant, mailbox: &Value, name: &str, value: i64) {
    let (mailbox, name) = (mailbox["id"].as_str().unwrap().to_owned(), name.to_owned());
    let write = server.app.db().write(&tenant.workspace, async move |tx| {
        let sql =
            "INSERT INTO mailbox_counter (workspace_id, mailbox_id, name, value) VALUES ($1, $2, $3, $4)";
        tx.run(sql, &[(&mailbox).into(), (&name).into(), value.into()]).await
    });
    write.await.unwrap();
}

/// rules: WS-8, PLAN-1
#[both_engines]
async fn email_usage_tells_each_mailbox(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let other = server.tenant(Plan::Free).await;
    let mut made = Vec::new();
    for (name, email) in [("Sales", "sales.team@agents.test"), ("Support", "support.team@agents.test")] {
        made.push(tenant.key.post("/api/v1/mailboxes", json!({ "name": name, "email": email })).await.ok());
        server.clock.advance(1);
    }
    count_mails(&server, &tenant, &made[0], "sent.2026-07", 7).await;
    count_mails(&server, &tenant, &made[0], "received.2026-07", 11).await;
    count_mails(&server, &tenant, &made[1], "sent.2026-07", 3).await;
    count_mails(&server, &tenant, &made[1], "sent.2026-06", 500).await;
    let usage = tenant.key.get(&at(&tenant, "/usage/email")).await.ok();
    let expected = json!({
        "workspace_id": tenant.workspace.as_str(),
        "plan": "free",
        "plan_name": "Free",
        "period_start": "2026-07-01T00:00:00.000Z",
        "period_end": "2026-08-01T00:00:00.000Z",
        "quota": 1000,
        "used": 10,
        "remaining": 990,
        "mailboxes": [
            { "id": made[0]["id"], "name": "Sales", "email": "sales.team@agents.test", "sent": 7, "received": 11 },
            { "id": made[1]["id"], "name": "Support", "email": "support.team@agents.test", "sent": 3, "received": 0 },
        ],
    });
    assert_eq!(usage, expected);
    let usage = other.key.get(&at(&other, "/usage/email")).await.ok();
    assert_eq!((&usage["used"], &usage["mailboxes"]), (&json!(0), &json!([])));
    server.clock.set("2026-08-01T00:00:00Z");
    assert_eq!(tenant.key.get(&at(&tenant, "/usage/email")).await.ok()["used"], 0);

    let large = server.tenant(Plan::Enterprise).await;
    let usage = large.key.get(&at(&large, "/usage/email")).await.ok();
    assert_eq!(
        (&usage["quota"], &usage["remaining"], &usage["used"]),
        (&Value::Null, &Value::Null, &json!(0))
    );
}

/// rules: WS-8
#[both_engines]
async fn email_usage_never_tells_less_than_nothing_left(engine: Engine) {
    let mut options = ServerOptions::default();
    options.plans.free.mails_per_month = Limit::of(5);
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    let mailbox = tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    count_mails(&server, &tenant, &mailbox, "sent.2026-07", 8).await;
    let usage = tenant.key.get(&at(&tenant, "/usage/email")).await.ok();
    assert_eq!((&usage["quota"], &usage["used"], &usage["remaining"]), (&json!(5), &json!(8), &json!(0)));
}

fn sum(history: &Value) -> i64 {
    let days = history["days"].as_array().unwrap();
    days.iter()
        .flat_map(|day| day["credits"].as_object().unwrap().values())
        .map(|value| value.as_i64().unwrap())
        .sum()
}

/// rules: WS-9
#[both_engines]
async fn the_history_has_every_day_and_adds_up(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let history = at(&tenant, "/usage/history");
    server.clock.set("2026-07-10T23:59:59Z");
    let mailbox = tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    server.clock.set("2026-07-14T00:00:00Z");
    let one = format!("/api/v1/mailboxes/{}", mailbox["id"].as_str().unwrap());
    tenant.key.put(&one, json!({ "name": "B" })).await.ok();
    tenant.key.get(&one).await.ok();
    tenant.key.get("/api/v1/mailboxes/none").await.expect(404, "not_found");
    tenant.key.put(&one, json!({})).await.ok();
    let used = tenant.key.get(&at(&tenant, "/usage/credits")).await.ok()["used"].as_i64().unwrap();
    assert_eq!(used, 10 + 2 + 1 + 2 + 1);
    let week = tenant.key.get(&format!("{history}?days=7")).await.ok();
    let dates: Vec<&str> =
        week["days"].as_array().unwrap().iter().map(|day| day["date"].as_str().unwrap()).collect();
    assert_eq!(
        dates,
        ["2026-07-08", "2026-07-09", "2026-07-10", "2026-07-11", "2026-07-12", "2026-07-13", "2026-07-14"]
    );
    let day = |date: &str, credits: [i64; 3], calls: i64, errors: i64| {
        let [read, write, provision] = credits;
        json!({
            "date": date,
            "credits": {
                "read": read, "write": write, "email_send": 0, "provision": provision, "ai_light": 0, "ai_heavy": 0,
            },
            "calls": calls, "errors": errors, "mails_in": 0, "mails_out": 0,
        })
    };
    assert_eq!(week["days"][0], day("2026-07-08", [0, 0, 0], 0, 0));
    assert_eq!(week["days"][2], day("2026-07-10", [0, 0, 10], 1, 0));
    assert_eq!(week["days"][6], day("2026-07-14", [2, 4, 0], 5, 1));
    assert_eq!(sum(&week), used);
}

/// rules: WS-9, ERR-3
#[both_engines]
async fn the_history_has_one_to_ninety_days(engine: Engine) {
    let server = Server::start(engine).await;
    let (tenant, other) = (server.tenant(Plan::Free).await, server.tenant(Plan::Free).await);
    other.key.get("/api/v1/mailboxes").await.ok();
    let history = at(&tenant, "/usage/history");
    let days = async |query: &str| {
        let answer = tenant.key.get(&format!("{history}{query}")).await.ok();
        let all = answer["days"].as_array().unwrap().clone();
        (
            all.len(),
            all[0]["date"].as_str().unwrap().to_owned(),
            all.last().unwrap()["date"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(days("").await, (30, "2026-06-15".into(), "2026-07-14".into()));
    assert_eq!(days("?days=1").await, (1, "2026-07-14".into(), "2026-07-14".into()));
    assert_eq!(days("?days=90").await, (90, "2026-04-16".into(), "2026-07-14".into()));
    for query in [
        "?days=0",
        "?days=91",
        "?days=-1",
        "?days=",
        "?days=x",
        "?days=1.5",
        "?days=1e1",
        "?days=1&days=2",
        "?days=99999999999999999999",
    ] {
        let answer = tenant.key.get(&format!("{history}{query}")).await;
        answer.expect(400, "validation_failed");
        assert_eq!(answer.json()["details"][0]["path"], "days", "{query}");
    }
    let answer = tenant.key.get(&format!("{history}?from=2026-01-01")).await;
    assert_eq!(answer.expect(400, "validation_failed").json()["details"][0]["path"], "from");
    // Only the refused and answered calls of this workspace count here.
    let today = tenant.key.get(&format!("{history}?days=1")).await.ok();
    assert_eq!(
        (&today["days"][0]["calls"], &today["days"][0]["errors"], sum(&today)),
        (&json!(13), &json!(10), 3)
    );
}
