//! Operations: one function each, free of HTTP, and the gates that every call passes.
//!
//! Doors (the API, the console, MCP) translate to and from these functions. What an operation costs and needs is
//! declared in its [`Operation`] constant, and [`catalog`] lists them all.
//!
//! The modules are grouped in wings, and a wing uses only those named before it: `core`, `mailbox`, `inbox`,
//! `outbox`, `account`, `recall`, `notify`, `agent`, `payments`, `upkeep`; `assembly`, `catalog` and `workers`
//! combine them. Doors see the modules without their wings.

mod account;
mod agent;
mod assembly;
mod catalog;
mod core;
mod inbox;
mod mailbox;
mod notify;
mod outbox;
pub mod payments;
mod recall;
mod upkeep;
pub mod workers;

use operations_macros::boxed;

pub use self::{
    account::{
        accounts, affiliate, api_keys, audit, confirmations, identity, members, password_resets, usage,
        workspaces,
    },
    agent::{conversations, integrations, tasks, triage, triagers},
    catalog::{audited, catalog, require_audited},
    core::{
        admission::{Admission, Entrance, Idempotency, Replay},
        app::{App, AppParts},
        assistant,
        audit::Author,
        call::{Call, IdempotencyClaim},
        caller::{Access, Actor, Caller, Credential},
        clock::DatabaseClock,
        error::{Detail, Error, ErrorKind, Result},
        events,
        gates::gate_errors,
        metering::{Credits, Meter, Rate, Reservation},
        operation::{Answer, Operation, Reach},
        passwords::{Client, HashingCost, device::DEVICE_SECONDS},
        ports,
        request_info::RequestInfo,
        secrets,
        settings::{
            BotUpdates, MemorySettings, Outbound, PaymentSettings, Prices, SendPolicySettings, Settings,
            SignUpPolicy,
        },
        state::{running_keys::RunningKey, scanning::Scanning},
        supervisor,
    },
    inbox::{attachments, email_context, emails, inbound, mail_log, scanning, test_message, threads},
    mailbox::{domains, folders, labels, mailboxes},
    notify::{telegram, webhooks},
    outbox::{drafts, reviews, scheduled_sends, send_policies, sending, suppressions, unsubscribing},
    recall::{knowledge, memory, search},
    upkeep::{admin, backlog, counters, maintenance, nodes, storage, storage_rounds, trace},
};
