//! The folders and labels of the open mailbox in the sidebar.

use model::{labels::Label, triagers::RecentRunsQuery};
use operations::{Result, conversations, folders, labels, triagers};
use serde_json::json;

use super::{
    fields::input,
    links::encoded,
    shell::{Shell, SideFolder},
    visit::Visit,
};

/// The icon of a folder.
fn icon(id: &str) -> &'static str {
    match id {
        "inbox" => "inbox",
        "sent" => "sent",
        "draft" => "draft",
        "scheduled" => "clock",
        "review" => "review",
        "archive" => "archive",
        "spam" => "spam",
        "trash" => "trash",
        _ => "folder",
    }
}

/// Adds the folders and labels of the open mailbox to the sidebar.
pub(super) async fn fill_sidebar(visit: &Visit, shell: &mut Shell, mailbox: &str) -> Result<Vec<Label>> {
    let found = folders::list(visit.app(), &visit.call(&folders::LIST)?, mailbox).await?;
    mailbox.clone_into(&mut shell.mailbox);
    let encoded_mailbox = encoded(mailbox);
    shell.folders = found
        .into_iter()
        .filter(|folder| folder.id.as_str() != "inbox")
        .map(|folder| {
            let id = folder.id.as_str();
            let counts_all = matches!(id, "draft" | "scheduled" | "review");
            let quiet = matches!(id, "sent" | "trash" | "archive");
            SideFolder {
                count: match (quiet, counts_all) {
                    (true, _) => 0,
                    (_, true) => folder.total_count,
                    _ => folder.unread_count,
                },
                icon: icon(id),
                color: String::new(),
                url: match id {
                    "scheduled" => format!("/console/m/{encoded_mailbox}/scheduled"),
                    _ => format!("/console/m/{encoded_mailbox}/f/{}", encoded(id)),
                },
                name: folder.name,
                id: id.to_owned(),
            }
        })
        .collect();
    let known = labels::list(visit.app(), &visit.call(&labels::LIST)?, mailbox).await?;
    shell.labels = known
        .iter()
        .map(|label| SideFolder {
            id: format!("label-{}", label.slug),
            name: label.name.clone(),
            icon: "folder",
            color: label.color.clone(),
            count: 0,
            url: format!("/console/m/{encoded_mailbox}/l/{}", encoded(&label.slug)),
        })
        .collect();
    show_what_holds_something(visit, shell, mailbox).await;
    Ok(known)
}

/// Lists pages that the server is not set up for, when there is something on them.
async fn show_what_holds_something(visit: &Visit, shell: &mut Shell, mailbox: &str) {
    if !shell.pages.agent
        && let Ok(call) = visit.call(&conversations::LIST)
        && let Ok(query) = input(&json!({}))
        && let Ok(page) = conversations::list(visit.app(), &call, mailbox, query).await
    {
        shell.pages.agent = !page.conversations.is_empty();
    }
    if !shell.pages.triage
        && let Ok(call) = visit.call(&triagers::RECENT)
        && let Ok(recent) = triagers::recent(visit.app(), &call, mailbox, RecentRunsQuery { limit: 1 }).await
    {
        shell.pages.triage = !recent.runs.is_empty();
    }
}
