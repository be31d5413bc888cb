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

/// The running program, with mailboxes on a fresh store.
pub(super) struct Receiver {
    store: MeasuredStore,
    workspace: WorkspaceId,
    mailboxes: usize,
    pub(super) running: RunningProgram,
}

impl Receiver {
    pub(super) async fn start(engine: Engine, program: &Path, mailboxes: usize) -> Self {
        let store = MeasuredStore::new(engine).await;
        let service = Service::open(&store).await;
        fill::add_mailboxes(service.app.db(), &service.workspace, mailboxes).await;
        service.app.meter().close().await;
        let running = RunningProgram::start(program, &store, Disk::Slowable).await;
        Self { store, workspace: service.workspace, mailboxes, running }
    }

    /// Stops the program. Every message that it acknowledged must be stored.
    pub(super) async fn finish(self, acknowledged: usize) {
        self.running.stop();
        assert_eq!(
            stored(&self.store, &self.workspace, self.mailboxes).await,
            acknowledged,
            "every acknowledged message is stored"
        );
        self.store.remove().await;
    }
}

/// The number of messages in the mailboxes.
async fn stored(store: &MeasuredStore, workspace: &WorkspaceId, mailboxes: usize) -> usize {
    let db = Db::open(&store.location).await.expect("the store opens");
    let count = async move |tx: &mut store::Tx| {
        let mut all = 0;
        for mailbox in 0..mailboxes {
            let mailbox = MailboxId::from(format!("mbx_{mailbox:026}"));
            // Some public messages are spam, which a count without a folder leaves out.
            for folder in [None, Some(SystemFolder::Spam), Some(SystemFolder::Trash)] {
                let filter = emails::EmailFilter {
                    folder: folder.map(Into::into),
                    date_start: Some(model::Timestamp::from_micros(0)),
                    ..Default::default()
                };
                all += emails::count(tx, &mailbox, &filter).await?;
            }
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
