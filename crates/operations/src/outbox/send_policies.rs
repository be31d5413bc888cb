//! Send policies of workspaces and mailboxes: reading, setting, and trying them out. The gate that obeys them is in
//! `sending/gate`.

use model::{
    MailboxId, Scope,
    audit::changes,
    send_policies::{
        NewSendPolicy, PolicyCheck, PolicyFinding, PolicyReason, PolicyVerdict, SendPolicy,
        gate::{ReviewState, Verdict},
    },
    sending::NewMail,
};
use store::{
    Tx, nodes,
    send_policies::{self, PolicyRecord},
};

use crate::{
    core::{
        app::App,
        call::Call,
        error::{Detail, Error, ErrorKind, Result},
        operation::Operation,
    },
    mailbox::mailboxes,
    outbox::sending::{
        self, Origin,
        gate::{Candidate, Gate},
    },
};

/// Reads the policy of a workspace.
pub const GET: Operation = Operation::read(
    "getSendPolicy",
    "Returns the send policy of a workspace: who its mailboxes may write to, how much, when, and what a person decides first.",
)
.scope(Scope::Manage)
.workspace()
.tagged();
/// Sets the policy of a workspace.
pub const SET: Operation = Operation::write(
    "setSendPolicy",
    "Replaces the send policy of a workspace. It can be stricter than the server's, never wider.",
)
.workspace()
.admin()
.errors(&[ErrorKind::StorageUnavailable]);
/// Reads the policy of a mailbox.
pub const GET_OF_MAILBOX: Operation = Operation::read(
    "getMailboxSendPolicy",
    "Returns the send policy of a mailbox. What it does not set is that of its workspace.",
)
.scope(Scope::Manage)
.errors(&[ErrorKind::NotFound])
.tagged();
/// Sets the policy of a mailbox.
pub const SET_OF_MAILBOX: Operation = Operation::write(
    "setMailboxSendPolicy",
    "Replaces the send policy of a mailbox. It can be stricter than that of its workspace, never wider.",
)
.admin()
.errors(&[ErrorKind::NotFound, ErrorKind::StorageUnavailable]);
/// Deletes the policy of a mailbox.
pub const DELETE_OF_MAILBOX: Operation = Operation::write(
    "deleteMailboxSendPolicy",
    "Deletes the send policy of a mailbox, which then has that of its workspace.",
)
.admin()
.empty()
.errors(&[ErrorKind::NotFound]);
/// Tries the policies out.
pub const CHECK: Operation = Operation::read(
    "checkSendPolicy",
    "Returns what would happen to an email if it were sent now. Nothing is sent, and nothing counted.",
)
.scope(Scope::Manage)
.errors(sending::ERRORS);

pub(crate) const OPERATIONS: &[&Operation] =
    &[&GET, &SET, &GET_OF_MAILBOX, &SET_OF_MAILBOX, &DELETE_OF_MAILBOX, &CHECK];

/// What the audit log calls a policy, and what it shows of one.
const AUDIT_KIND: &str = "send_policy";
const AUDIT_FIELDS: &[&str] =
    &["recipients", "new_recipient", "caps", "quiet_hours", "scan", "review", "hold"];

/// The policies that concern a mailbox: of the server, the workspace, and the mailbox.
struct Layers {
    floor: SendPolicy,
    workspace: Option<NewSendPolicy>,
    mailbox: Option<NewSendPolicy>,
}

impl Layers {
    /// Those of a mailbox; an empty id has none of its own.
    async fn load(tx: &mut Tx, app: &App, mailbox: &MailboxId) -> Result<Self> {
        let floor = app.settings().send_policy.floor.clone();
        let mut layers = Self { floor, workspace: None, mailbox: None };
        for PolicyRecord { mailbox_id, policy, .. } in send_policies::find(tx, mailbox).await? {
            if mailbox_id.as_str().is_empty() {
                layers.workspace = Some(policy);
            } else {
                layers.mailbox = Some(policy);
            }
        }
        Ok(layers)
    }

    /// What the workspace says, with what it leaves out.
    fn of_workspace(&self) -> SendPolicy {
        self.workspace.clone().unwrap_or_default().under(&self.floor)
    }

    /// What the mailbox says, with what it leaves out.
    fn of_mailbox(&self) -> SendPolicy {
        self.mailbox.clone().unwrap_or_default().under(&self.of_workspace())
    }
}

/// The policy of the workspace is kept under the id of no mailbox.
fn of_workspace() -> MailboxId {
    MailboxId::from("")
}

/// Reads the policy of the workspace.
#[crate::boxed]
pub async fn get(app: &App, call: &Call) -> Result<SendPolicy> {
    let app_ = app.clone();
    app.read(call, async move |tx| Ok(Layers::load(tx, &app_, &of_workspace()).await?.of_workspace())).await
}

/// Sets the policy of the workspace.
#[crate::boxed]
pub async fn set(app: &App, call: &Call, policy: NewSendPolicy) -> Result<SendPolicy> {
    require_obeyed(app, call, &policy).await?;
    let (app_, now) = (app.clone(), call.now);
    app.write(call, async move |tx| {
        store::workspaces::lock(tx).await?;
        let layers = Layers::load(tx, &app_, &of_workspace()).await?;
        refuse_wider(&policy, &layers.floor, now)?;
        let (before, after) = (layers.of_workspace(), policy.under(&layers.floor));
        send_policies::set(tx, &of_workspace(), &policy, now).await?;
        let workspace = tx.workspace().clone();
        tx.audit().about(AUDIT_KIND, workspace).changed(changes(&before, &after, AUDIT_FIELDS));
        Ok(after)
    })
    .await
}

/// Reads the policy of a mailbox.
#[crate::boxed]
pub async fn get_of_mailbox(app: &App, call: &Call, mailbox: &str) -> Result<SendPolicy> {
    let (app_, named) = (app.clone(), mailboxes::name(call, mailbox));
    app.read(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        Ok(Layers::load(tx, &app_, &mailbox).await?.of_mailbox())
    })
    .await
}

/// Sets the policy of a mailbox.
#[crate::boxed]
pub async fn set_of_mailbox(
    app: &App,
    call: &Call,
    mailbox: &str,
    policy: NewSendPolicy,
) -> Result<SendPolicy> {
    require_obeyed(app, call, &policy).await?;
    let (app_, named, now) = (app.clone(), mailboxes::name(call, mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        store::workspaces::lock(tx).await?;
        let layers = Layers::load(tx, &app_, &mailbox).await?;
        let above = layers.of_workspace();
        refuse_wider(&policy, &above, now)?;
        let (before, after) = (layers.of_mailbox(), policy.under(&above));
        send_policies::set(tx, &mailbox, &policy, now).await?;
        tx.audit().about(AUDIT_KIND, &mailbox).in_mailbox(&mailbox).changed(changes(
            &before,
            &after,
            AUDIT_FIELDS,
        ));
        Ok(after)
    })
    .await
}

/// Deletes the policy of a mailbox.
#[crate::boxed]
pub async fn delete_of_mailbox(app: &App, call: &Call, mailbox: &str) -> Result<()> {
    let (app_, named) = (app.clone(), mailboxes::name(call, mailbox));
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        store::workspaces::lock(tx).await?;
        let layers = Layers::load(tx, &app_, &mailbox).await?;
        if !send_policies::delete(tx, &mailbox).await? {
            return Err(Error::not_found("Send policy not found")
                .with_fix("This mailbox has no policy of its own: it has that of its workspace."));
        }
        tx.audit().about(AUDIT_KIND, &mailbox).in_mailbox(&mailbox).changed(changes(
            &layers.of_mailbox(),
            &layers.of_workspace(),
            AUDIT_FIELDS,
        ));
        Ok(())
    })
    .await
}

/// Whether a mailbox has a policy of its own.
#[crate::boxed]
pub async fn has_own(app: &App, call: &Call, mailbox: &str) -> Result<bool> {
    let (app_, named) = (app.clone(), mailboxes::name(call, mailbox));
    app.read(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        Ok(Layers::load(tx, &app_, &mailbox).await?.mailbox.is_some())
    })
    .await
}

fn refuse_wider(policy: &NewSendPolicy, above: &SendPolicy, now: model::Timestamp) -> Result<()> {
    let faults = policy.faults_under(above, now).into_iter();
    Error::refuse(faults.map(|fault| Detail::new(fault.path, fault.message)).collect())
}

/// Refuses a policy while a program runs that would not obey it, and such programs from now on.
async fn require_obeyed(app: &App, call: &Call, policy: &NewSendPolicy) -> Result<()> {
    let now = call.now;
    let schema = if policy.alone().scan.is_on() { send_policies::SCAN_SCHEMA } else { send_policies::SCHEMA };
    let is_obeyed =
        app.db().system_write(async move |tx| nodes::require_schema(tx, schema, now).await).await?;
    if is_obeyed {
        return Ok(());
    }
    let fix =
        "A node of this service runs an older version, which would not obey the policy. Upgrade it first.";
    Err(Error::new(ErrorKind::StorageUnavailable).with_retry_after(60).with_fix(fix))
}

/// Tries the policies out on a message that is not sent.
#[crate::boxed]
pub async fn check(app: &App, call: &Call, mailbox: &str, input: NewMail) -> Result<PolicyCheck> {
    let origin = Origin::of_call(app, call, mailbox).await?;
    let (outgoing, _) = sending::written(app, &origin, input, call.now).await?;
    sending::require_complete(&outgoing)?;
    sending::check_request(app, origin.plan, outgoing.recipient_count())?;
    let (app_, mailbox, now) = (app.clone(), origin.mailbox.id.clone(), call.now);
    let named = sending::routed_recipients(app, &origin, &outgoing).await?;
    let scan = sending::content::scan(app, &origin, &outgoing).await?;
    app.read(call, async move |tx| {
        let candidate = Candidate {
            id: "",
            recipients: &named,
            review: ReviewState::Possible,
            content: scan.as_ref(),
            digest: "",
            now,
        };
        let decision = Gate::load(tx, &app_, &mailbox).await?.decide(tx, candidate).await?;
        Ok(show(decision.verdict, now))
    })
    .await
}

fn show(verdict: Verdict, now: model::Timestamp) -> PolicyCheck {
    let whole = |code: PolicyReason| vec![PolicyFinding { code, path: None }];
    let (shown, reasons, at, retry_after) = match verdict {
        Verdict::Send(_) => (PolicyVerdict::Send, Vec::new(), None, None),
        Verdict::Schedule(at) => (PolicyVerdict::Schedule, whole(PolicyReason::QuietHours), Some(at), None),
        Verdict::Review(reasons) => (PolicyVerdict::Review, reasons, None, None),
        Verdict::Block(reasons) | Verdict::Suppressed(reasons) => (PolicyVerdict::Block, reasons, None, None),
        Verdict::Capped(until) => {
            let seconds = now.seconds_until(until).max(1);
            (PolicyVerdict::Block, whole(PolicyReason::CapReached), None, Some(seconds))
        }
    };
    PolicyCheck { verdict: shown, reasons, scheduled_send_at: at, retry_after }
}
