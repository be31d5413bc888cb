//! Custom labels of a mailbox: list, create, update, delete, reorder.

use std::collections::HashSet;

use model::{
    LabelId, Limit, Scope,
    folders::slug,
    labels::{LABELS_PER_MAILBOX, Label, LabelChange, LabelOrder, NewLabel},
};
use store::labels;

use crate::{
    core::{
        app::App,
        call::Call,
        error::{Error, ErrorKind, Result},
        input::clean_name,
        operation::Operation,
    },
    mailbox::mailboxes,
};

/// Lists the labels.
pub const LIST: Operation =
    Operation::read("listCustomLabels", "Lists the custom labels of a mailbox, sorted by sort_order.")
        .errors(&[ErrorKind::NotFound]);
/// Makes a label.
pub const CREATE: Operation =
    Operation::write("createCustomLabel", "Creates a custom label; at most 20 per mailbox.")
        .scope(Scope::Organize)
        .created()
        .errors(&[ErrorKind::NotFound, ErrorKind::LabelExists, ErrorKind::QuotaExceeded]);
/// Changes a label.
pub const UPDATE: Operation = Operation::write("updateCustomLabel", "Changes a custom label.")
    .scope(Scope::Organize)
    .errors(&[ErrorKind::NotFound, ErrorKind::LabelExists]);
/// Deletes a label.
pub const DELETE: Operation =
    Operation::write("deleteCustomLabel", "Deletes a custom label and removes it from all emails.")
        .scope(Scope::Organize)
        .empty()
        .errors(&[ErrorKind::NotFound]);
/// Orders the labels.
pub const REORDER: Operation =
    Operation::write("reorderCustomLabels", "Sets the order of a mailbox's custom labels.")
        .scope(Scope::Organize)
        .errors(&[ErrorKind::NotFound]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &CREATE, &UPDATE, &DELETE, &REORDER];

/// Lists the labels.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, mailbox: &str) -> Result<Vec<Label>> {
    let named = mailboxes::name(call, mailbox);
    app.short_read(call, async move |tx| labels::list_named(tx, &named).await?.ok_or_else(mailboxes::missing))
        .await
}

/// Makes a label.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, mailbox: &str, input: NewLabel) -> Result<Label> {
    let name = clean_name("name", &input.name)?;
    let slug = label_slug(&name)?;
    let (named, id, now) = (mailboxes::name(call, mailbox), app.new_id(), call.now);
    app.write(call, async move |tx| {
        let mailbox_id = mailboxes::find_id(tx, &named).await?;
        store::mailboxes::lock(tx, &mailbox_id).await?;
        let present = labels::list(tx, &mailbox_id).await?;
        if present.len() >= LABELS_PER_MAILBOX {
            return Err(Error::quota("labels in a mailbox", Limit::of(LABELS_PER_MAILBOX as u64)));
        }
        let sort_order = present.last().map_or(0, |label| label.sort_order + 1);
        let (rules, color) = (input.rules, input.color.to_ascii_lowercase());
        let label =
            Label { id, mailbox_id, name, slug, rules, color, sort_order, created_at: now, updated_at: now };
        tx.audit().about("label", &label.id);
        if !labels::insert(tx, &label).await? {
            return Err(Error::new(ErrorKind::LabelExists));
        }
        Ok(label)
    })
    .await
}

/// Changes a label.
#[crate::boxed]
pub async fn update(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: LabelId,
    change: LabelChange,
) -> Result<Label> {
    let new_name = change.name.map(|name| clean_name("name", &name)).transpose()?;
    let new_slug = new_name.as_deref().map(label_slug).transpose()?;
    let (named, now) = (mailboxes::name(call, mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        store::mailboxes::lock(tx, &mailbox).await?;
        let mut label = labels::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
        tx.audit().about("label", &id);
        label.name = new_name.unwrap_or(label.name);
        label.slug = new_slug.unwrap_or(label.slug);
        label.rules = change.rules.unwrap_or(label.rules);
        label.color = change.color.map_or(label.color, |color| color.to_ascii_lowercase());
        label.updated_at = now;
        if labels::slug_taken(tx, &label).await? {
            return Err(Error::new(ErrorKind::LabelExists));
        }
        labels::update(tx, &label).await?;
        Ok(label)
    })
    .await
}

/// Deletes a label.
#[crate::boxed]
pub async fn delete(app: &App, call: &Call, mailbox: &str, id: LabelId) -> Result<()> {
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        tx.audit().about("label", &id);
        // An arriving message must not get the label while it is deleted.
        store::mailboxes::lock(tx, &mailbox).await?;
        if labels::delete(tx, &mailbox, &id).await? { Ok(()) } else { Err(missing()) }
    })
    .await
}

/// Orders the labels. All of them must be listed, each once, so that the order is complete.
#[crate::boxed]
pub async fn reorder(app: &App, call: &Call, mailbox: &str, order: LabelOrder) -> Result<Vec<Label>> {
    let (named, now) = (mailboxes::name(call, mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        store::mailboxes::lock(tx, &mailbox).await?;
        let mut present = labels::list(tx, &mailbox).await?;
        let wanted: HashSet<_> = order.ids.iter().collect();
        let complete = wanted.len() == order.ids.len()
            && wanted.len() == present.len()
            && present.iter().all(|label| wanted.contains(&label.id));
        if !complete {
            return Err(Error::invalid("ids", "must name every label of the mailbox exactly once"));
        }
        for (position, id) in (0..).zip(&order.ids) {
            for label in present.iter_mut().filter(|label| label.id == *id && label.sort_order != position) {
                label.sort_order = position;
                label.updated_at = now;
                labels::update(tx, label).await?;
            }
        }
        present.sort_by_key(|label| label.sort_order);
        Ok(present)
    })
    .await
}

fn label_slug(name: &str) -> Result<String> {
    let slug = slug(name);
    if slug.is_empty() { Err(Error::invalid("name", "needs at least one letter or digit")) } else { Ok(slug) }
}

fn missing() -> Error {
    Error::not_found("Label not found")
}
