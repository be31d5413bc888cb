//! The affiliate account over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::affiliate::{Affiliate, AffiliateAnalytics, AffiliateChange, AffiliateSignUp, Commission, Payout};
use operations::{App, Call, Result, affiliate};

use crate::{
    Endpoint,
    input::{Json, OptionalJson},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Affiliate";
    vec![
        Endpoint::new(tag, Method::GET, "/api/v1/affiliate/me", &affiliate::ME, me),
        Endpoint::new(tag, Method::PATCH, "/api/v1/affiliate/me", &affiliate::UPDATE, update),
        Endpoint::new(tag, Method::POST, "/api/v1/affiliate/signup", &affiliate::SIGN_UP, sign_up),
        Endpoint::new(tag, Method::GET, "/api/v1/affiliate/analytics", &affiliate::ANALYTICS, analytics),
        Endpoint::new(
            tag,
            Method::GET,
            "/api/v1/affiliate/commissions",
            &affiliate::COMMISSIONS,
            commissions,
        ),
        Endpoint::new(tag, Method::GET, "/api/v1/affiliate/payouts", &affiliate::PAYOUTS, payouts),
    ]
}

async fn me(app: App, call: Arc<Call>, (): ()) -> Result<Affiliate> {
    affiliate::me(&app, &call).await
}

async fn update(app: App, call: Arc<Call>, Json(change): Json<AffiliateChange>) -> Result<Affiliate> {
    affiliate::update(&app, &call, change).await
}

async fn sign_up(
    app: App,
    call: Arc<Call>,
    OptionalJson(input): OptionalJson<AffiliateSignUp>,
) -> Result<Affiliate> {
    affiliate::sign_up(&app, &call, input).await
}

async fn analytics(app: App, call: Arc<Call>, (): ()) -> Result<AffiliateAnalytics> {
    affiliate::analytics(&app, &call).await
}

async fn commissions(app: App, call: Arc<Call>, (): ()) -> Result<Vec<Commission>> {
    affiliate::commissions(&app, &call).await
}

async fn payouts(app: App, call: Arc<Call>, (): ()) -> Result<Vec<Payout>> {
    affiliate::payouts(&app, &call).await
}
