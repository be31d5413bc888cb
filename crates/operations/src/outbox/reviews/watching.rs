//! Who gets a mail about new reviews: each admin switches that on and off for themselves, in the console.

use model::{AccountId, audit::changes};
use serde_json::json;
use store::reviews;

use crate::core::{
    app::App,
    call::Call,
    caller::Actor,
    error::{Error, ErrorKind, Result},
    operation::Operation,
};

/// Switches mails about new reviews on or off, for the person who calls.
pub const WATCH: Operation =
    Operation::write("watchReviews", "Sets whether the caller gets a mail about each new review.")
        .workspace()
        .admin();

/// The account of the person who calls.
fn account(call: &Call) -> Result<AccountId> {
    match &call.caller.actor {
        Actor::Person { account, .. } => Ok(account.clone()),
        _ => Err(Error::new(ErrorKind::Unauthorized)),
    }
}

/// Whether the person gets a mail about each new review.
#[crate::boxed]
pub async fn is_watching(app: &App, call: &Call) -> Result<bool> {
    let account = account(call)?;
    app.read(call, async move |tx| Ok(reviews::is_watching(tx, &account).await?)).await
}

/// Sets whether the person gets a mail about each new review.
#[crate::boxed]
pub async fn set_watching(app: &App, call: &Call, on: bool) -> Result<()> {
    let account = account(call)?;
    app.write(call, async move |tx| {
        let before = reviews::is_watching(tx, &account).await?;
        reviews::set_watching(tx, &account, on).await?;
        tx.audit().about("member", &account).changed(changes(
            &json!({ "review_mail": before }),
            &json!({ "review_mail": on }),
            &["review_mail"],
        ));
        Ok(())
    })
    .await
}
