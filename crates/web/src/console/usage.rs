//! What the workspace has used: credits by class, calls, messages in and out.

use askama::Template;
use axum::{Router, extract::RawQuery, response::Response, routing::get};
use model::usage::HistoryQuery;
use operations::usage;
use serde_json::json;

use super::{
    chart::{self, Bar},
    fields::{Fields, input},
    page::html,
    shell::Shell,
    time::{When, number},
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new().route("/console/usage", get(show))
}

const CLASSES: [&str; 6] = ["Reads", "Writes", "Sends", "Provisioning", "Light AI", "Heavy AI"];

/// A chart with its legend and its figures as a table.
struct Chart {
    id: &'static str,
    title: &'static str,
    svg: String,
    legend: Vec<(usize, &'static str, String)>,
    names: Vec<&'static str>,
    rows: Vec<(String, Vec<String>)>,
}

fn chart(id: &'static str, title: &'static str, names: &[&'static str], bars: Vec<Bar>) -> Chart {
    let total = |series: usize| -> i64 { bars.iter().filter_map(|(_, values)| values.get(series)).sum() };
    let legend = names.iter().enumerate().map(|(at, name)| (at + 1, *name, number(total(at)))).collect();
    let svg = chart::stacked(title, names, &bars);
    let row = |(day, values): Bar| (day, values.into_iter().map(number).collect());
    let rows = bars.into_iter().rev().map(row).collect();
    Chart { id, title, svg, legend, names: names.to_vec(), rows }
}

#[derive(Template)]
#[template(path = "console/usage.html")]
struct UsagePage {
    shell: Shell,
    days: i64,
    credits_used: String,
    credits_left: String,
    mails_used: String,
    mails_left: String,
    period_end: When,
    charts: Vec<Chart>,
}

async fn show(visit: Visit, RawQuery(query): RawQuery) -> Response {
    visit
        .answer(async {
            let fields = Fields::parse(query.unwrap_or_default().as_bytes());
            let days = match fields.get("days") {
                "7" => 7,
                "90" => 90,
                _ => 30,
            };
            let shell = visit.shell("Usage", "usage").await?;
            let app = visit.app();
            let credits = usage::credits(app, &visit.call(&usage::CREDITS)?).await?;
            let email_usage = usage::email(app, &visit.call(&usage::EMAIL)?).await?;
            let wanted: HistoryQuery = input(&json!({ "days": days }))?;
            let history = usage::history(app, &visit.call(&usage::HISTORY)?, wanted).await?.days;
            let of = |figures: fn(&model::usage::UsageDay) -> Vec<i64>| -> Vec<Bar> {
                history.iter().map(|day| (day.date.to_string(), figures(day))).collect()
            };
            let by_class = of(|day| {
                let used = &day.credits;
                vec![used.read, used.write, used.email_send, used.provision, used.ai_light, used.ai_heavy]
            });
            let calls = of(|day| vec![day.calls - day.errors, day.errors]);
            let traffic = of(|day| vec![day.mails_in, day.mails_out]);
            let left = |left: Option<i64>| left.map_or_else(|| "unlimited".to_owned(), number);
            html(&UsagePage {
                days,
                credits_used: number(credits.used),
                credits_left: left(credits.remaining),
                mails_used: number(email_usage.used),
                mails_left: left(email_usage.remaining),
                period_end: shell.zone.when(credits.period_end),
                charts: vec![
                    chart("credits", "Credits by class", &CLASSES, by_class),
                    chart("emails", "Emails", &["Received", "Sent"], traffic),
                    chart("calls", "API calls", &["Succeeded", "Failed"], calls),
                ],
                shell,
            })
        })
        .await
}
