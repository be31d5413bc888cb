//! The service that receives, and how long a turn of it lasts.

use std::path::Path;

use model::{MailboxId, WorkspaceId, folders::SystemFolder};
use store::{Db, emails};

use crate::{
    fill, flush,
    measured_store::{Engine, MeasuredStore},
    program::{Disk, RunningProgram},
    service::Service,
};

/// Messages of the warm-up turn.
pub(super) const WARM_UP: usize = 300;
/// At least one for each session of any case.
const MIN_TURN_MESSAGES: usize = 64;

/// The running program, with one mailbox on a fresh store.
pub(super) struct Receiver {
    store: MeasuredStore,
    workspace: WorkspaceId,
    pub(super) running: RunningProgram,
}

impl Receiver {
    pub(super) async fn start(engine: Engine, program: &Path) -> Self {
        let store = MeasuredStore::new(engine).await;
        let service = Service::open(&store).await;
        fill::add_mailboxes(service.app.db(), &service.workspace, 1).await;
        service.app.meter().close().await;
        let running = RunningProgram::start(program, &store, Disk::Slowable).await;
        Self { store, workspace: service.workspace, running }
    }

    /// Stops the program. Every message that it acknowledged must be stored.
    pub(super) async fn finish(self, acknowledged: usize) {
        self.running.stop();
        assert_eq!(
            stored(&self.store, &self.workspace).await,
            acknowledged,
            "every acknowledged message is stored"
        );
        self.store.remove().await;
    }
}

/// The number of messages in the mailbox.
async fn stored(store: &MeasuredStore, workspace: &WorkspaceId) -> usize {
    let db = Db::open(&store.location).await.expect("the store opens");
    let count = async |tx: &mut store::Tx| {
        let mailbox = MailboxId::from(format!("mbx_{:026}", 0));
        let mut all = 0;
        // Some public messages are spam, which a count without a folder leaves out.
        for folder in [None, Some(SystemFolder::Spam), Some(SystemFolder::Trash)] {
            let filter = emails::EmailFilter {
                folder: folder.map(Into::into),
                date_start: Some(model::Timestamp::from_micros(0)),
                ..Default::default()
            };
            all += emails::count(tx, &mailbox, &filter).await?;
        }
        Ok(all)
    };
    let counted: Result<i64, store::Error> = db.read(workspace, count).await;
    usize::try_from(counted.expect("messages can be counted")).unwrap_or_default()
}

/// The number of messages that fill a turn at this speed.
pub(super) fn messages_in(speed: f64, seconds: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand")]
    let messages = (speed * seconds) as usize;
    messages.max(MIN_TURN_MESSAGES)
}

/// How long the disk takes to flush, for a note.
pub(super) fn flush_note(engine: Engine) -> String {
    format!("a flush takes {:.2} ms", flush::time_flush(engine).as_secs_f64() * 1e3)
}
