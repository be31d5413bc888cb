//! The messaging-app link over HTTP.

use std::sync::Arc;

use axum::http::Method;
use model::telegram::{TelegramCode, TelegramLink, TelegramUnlinked};
use operations::{App, Call, Result, telegram};

use super::paths::InMailbox;
use crate::{Endpoint, input::Path};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Telegram";
    let link = "/api/v1/mailboxes/{mailboxId}/telegram";
    let code = "/api/v1/mailboxes/{mailboxId}/telegram/link";
    vec![
        Endpoint::new(tag, Method::GET, link, &telegram::GET, get),
        Endpoint::new(tag, Method::POST, code, &telegram::LINK, make_code),
        Endpoint::new(tag, Method::DELETE, link, &telegram::UNLINK, unlink),
    ]
}

async fn get(app: App, call: Arc<Call>, Path(path): Path<InMailbox>) -> Result<TelegramLink> {
    telegram::get(&app, &call, &path.mailbox).await
}

async fn make_code(app: App, call: Arc<Call>, Path(path): Path<InMailbox>) -> Result<TelegramCode> {
    telegram::link(&app, &call, &path.mailbox).await
}

async fn unlink(app: App, call: Arc<Call>, Path(path): Path<InMailbox>) -> Result<TelegramUnlinked> {
    telegram::unlink(&app, &call, &path.mailbox).await
}
