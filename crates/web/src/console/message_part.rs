//! A part of a conversation: for a script as it is, and as a page of its own in a browser without one.

use askama::Template;
use axum::response::Response;
use operations::Result;

use super::{
    links::encoded,
    page::{self, html},
    shell::Shell,
    sidebar::fill_sidebar,
    visit::Visit,
};

#[derive(Template)]
#[template(path = "console/message_part.html")]
struct PartPage {
    shell: Shell,
    title: &'static str,
    back: String,
    part: String,
}

/// The part, or the page around it.
pub(super) async fn respond<T: Template>(
    visit: &Visit,
    mailbox: &str,
    email: &str,
    title: &'static str,
    part: &T,
) -> Result<Response> {
    if page::is_partial(&visit.headers) {
        return html(part);
    }
    let part = part.render().map_err(operations::Error::internal)?;
    let mut shell = visit.shell(title, "").await?;
    fill_sidebar(visit, &mut shell, mailbox).await?;
    // That page leads on to the conversation.
    let back = format!("/console/m/{}/e/{}", encoded(mailbox), encoded(email));
    html(&PartPage { shell, title, back, part })
}
