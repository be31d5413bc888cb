//! Fills stores: mailboxes for one workspace, or many workspaces at once.
//!
//! Everything derives from a running number, so that a measurement can name any row without having stored it.

use std::sync::Arc;

use model::{
    LabelId, MailboxId, Timestamp, WorkspaceId,
    folders::{Folder, SystemFolder},
    labels::Label,
    mailboxes::MailboxSettings,
};
use store::{
    Db, Error, Param, SystemTx, addresses, folders, labels,
    mailboxes::{self, MailboxRecord},
    vault::{DataKey, MasterKey},
};

/// Mailboxes per workspace, in stores with many workspaces.
pub(crate) const MAILBOXES_EACH: usize = 3;
/// Rows per INSERT.
const ROWS: usize = 200;
/// Workspaces per transaction.
const BATCH: usize = 5_000;

const CREATED_AT: Timestamp = Timestamp::from_micros(1_750_000_000_000_000);

/// The id of the n-th workspace. Ids start with a time, so later ones sort after earlier ones.
pub(crate) fn workspace_id(n: usize) -> WorkspaceId {
    format!("ws_{n:026}").into()
}

/// The key hash of the n-th workspace: bytes as evenly spread as those of a real hash.
pub(crate) fn key_hash(n: usize) -> [u8; 32] {
    let mut hash = [0; 32];
    let mut state = (n as u64).wrapping_mul(0xd134_2543_de82_ef95);
    for chunk in hash.chunks_mut(8) {
        chunk.copy_from_slice(&next_random(&mut state).to_le_bytes());
    }
    hash
}

/// `SplitMix64`: well mixed, the same in every run.
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Adds workspaces with a key and a few mailboxes each.
pub(crate) async fn add_workspaces(db: &Db, key: MasterKey, count: usize) {
    let key = Arc::new(key);
    for first in (0..count).step_by(BATCH) {
        let (numbers, key) = (first..(first + BATCH).min(count), key.clone());
        db.system_write(async move |tx| insert_workspaces(tx, &key, numbers).await)
            .await
            .expect("workspaces are added");
    }
    // What autovacuum would do within a minute; SQLite has no such thing.
    if !db.is_sole_node() {
        let analyse = db.system_write(async |tx| tx.run("ANALYZE", &[]).await);
        analyse.await.expect("statistics are gathered");
    }
}

async fn insert_workspaces(
    tx: &mut SystemTx,
    key: &MasterKey,
    numbers: std::ops::Range<usize>,
) -> Result<(), Error> {
    // The program refuses to start on data of another master key.
    let data_key = DataKey::generate().expect("a data key");
    let settings = serde_json::to_string(&MailboxSettings::default()).expect("settings are JSON");
    let mut workspaces =
        Rows::new("workspace (id, name, owner_address, timezone, plan, data_key, created_at, updated_at)");
    let mut keys = Rows::new("api_key (workspace_id, id, name, role, hint, secret_hash, created_at)");
    let mut boxes =
        Rows::new("mailbox (workspace_id, id, public_id, email, name, settings, created_at, updated_at)");
    let mut counters = Rows::new("mailbox_counter (workspace_id, mailbox_id, name, value)");
    let at = Value::Integer(CREATED_AT.as_micros());
    for n in numbers {
        let workspace = Value::Text(workspace_id(n).to_string());
        let wrapped = key.wrap(workspace_id(n).as_str(), &data_key).expect("a wrapped key");
        let hash = key_hash(n);
        workspaces.add([
            workspace.clone(),
            Value::text("Workspace"),
            Value::Text(format!("owner-{n}@agents.test")),
            Value::text("UTC"),
            Value::text("developer"),
            Value::Bytes(wrapped),
            at.clone(),
            at.clone(),
        ]);
        keys.add([
            workspace.clone(),
            Value::Text(format!("key_{n:026}")),
            Value::text("key"),
            Value::text("admin"),
            Value::text("sk-proj-0000…"),
            Value::Bytes(hash.to_vec()),
            at.clone(),
        ]);
        for which in 0..MAILBOXES_EACH {
            let mailbox = Value::Text(format!("mbx_{n:025}{which}"));
            boxes.add([
                workspace.clone(),
                mailbox.clone(),
                Value::Text(format!("{n:08x}-0000-7000-8000-{which:012x}")),
                Value::Text(format!("agent-{n}-{which}@agents.test")),
                Value::text("Mailbox"),
                Value::Text(settings.clone()),
                at.clone(),
                at.clone(),
            ]);
            let counter = Value::text("inbox_unread.other");
            counters.add([workspace.clone(), mailbox, counter, Value::Integer(7)]);
        }
    }
    for rows in [workspaces, keys, boxes, counters] {
        rows.insert(tx).await?;
    }
    Ok(())
}

/// A value of a column.
#[derive(Clone)]
pub(crate) enum Value {
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    fn as_param(&self) -> Param<'_> {
        match self {
            Self::Integer(number) => (*number).into(),
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => bytes.into(),
        }
    }
}

/// Rows for one table, many per statement: one by one they would take a minute.
pub(crate) struct Rows {
    table: &'static str,
    width: usize,
    /// The SQL of a row's last value, by parameter number.
    last: fn(usize) -> String,
    values: Vec<Value>,
}

impl Rows {
    pub(crate) fn new(table: &'static str) -> Self {
        let width = table.matches(',').count() + 1;
        Self { table, width, last: |number| format!("${number}"), values: Vec::new() }
    }

    /// The same with another SQL for the last value.
    pub(crate) fn with_last(self, last: fn(usize) -> String) -> Self {
        Self { last, ..self }
    }

    pub(crate) fn add<const WIDTH: usize>(&mut self, row: [Value; WIDTH]) {
        assert_eq!(WIDTH, self.width, "a value for each column of {}", self.table);
        self.values.extend(row);
    }

    pub(crate) async fn insert(self, tx: &mut SystemTx) -> Result<(), Error> {
        for part in self.values.chunks(self.width * ROWS) {
            let rows: Vec<String> = (0..part.len() / self.width)
                .map(|row| {
                    let first = row * self.width + 1;
                    let last = first + self.width - 1;
                    let mut places: Vec<String> = (first..last).map(|number| format!("${number}")).collect();
                    places.push((self.last)(last));
                    format!("({})", places.join(", "))
                })
                .collect();
            let params: Vec<Param<'_>> = part.iter().map(Value::as_param).collect();
            tx.run(&format!("INSERT INTO {} VALUES {}", self.table, rows.join(", ")), &params).await?;
        }
        Ok(())
    }
}

/// Adds mailboxes to one workspace, as the service creates them, and returns their public ids.
pub(crate) async fn add_mailboxes(db: &Db, workspace: &WorkspaceId, count: usize) -> Vec<String> {
    let public_id = |n: usize| format!("00000000-0000-7000-8000-{n:012x}");
    for first in (0..count).step_by(BATCH / 10) {
        let numbers = first..(first + BATCH / 10).min(count);
        let owner = workspace.clone();
        let add = async move |tx: &mut store::Tx| {
            for n in numbers {
                let record = MailboxRecord {
                    id: MailboxId::from(format!("mbx_{n:026}")),
                    public_id: public_id(n),
                    workspace_id: owner.clone(),
                    email: format!("bench-{n}@agents.test"),
                    name: "Mailbox".to_owned(),
                    settings: MailboxSettings::default(),
                    triages_sent: false,
                    domain: None,
                    disabled_at: None,
                    disabled_reason: None,
                    created_at: CREATED_AT,
                    updated_at: CREATED_AT,
                };
                addresses::claim(tx, &record.email, &record.id).await?;
                mailboxes::insert(tx, &record).await?;
                for (position, folder) in (0..).zip(SystemFolder::FIRST) {
                    folders::insert(tx, &record.id, &Folder::system(folder), position).await?;
                }
            }
            Ok::<_, Error>(())
        };
        db.write(workspace, add).await.expect("mailboxes are added");
    }
    (0..count).map(public_id).collect()
}

/// Adds labels to the first mailbox of [`add_mailboxes`].
pub(crate) async fn add_labels(db: &Db, workspace: &WorkspaceId, count: usize) {
    let mailbox_id = MailboxId::from(format!("mbx_{:026}", 0));
    let add = async move |tx: &mut store::Tx| {
        for (sort_order, n) in (0..).zip(0..count) {
            let label = Label {
                id: LabelId::from(format!("lbl_{n:026}")),
                mailbox_id: mailbox_id.clone(),
                name: format!("Customer group {n}"),
                slug: format!("customer-group-{n}"),
                rules: format!("from:@customer{n}.example.com and has:attachment"),
                color: "#1f6feb".to_owned(),
                sort_order,
                created_at: CREATED_AT,
                updated_at: CREATED_AT,
            };
            labels::insert(tx, &label).await?;
        }
        Ok::<_, Error>(())
    };
    db.write(workspace, add).await.expect("labels are added");
}
