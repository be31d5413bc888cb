//! How an email is presented: the scan gate, safe text, bounds. Every door presents mail through this module.

use std::{collections::HashMap, sync::Arc};

use mail::safe_text::SafeText;
use model::{
    EmailId, FolderId, MailboxId, Timestamp, WorkspaceId,
    emails::{BodyFormat, BodySource, Email, OmissionReason, ProviderMetadata, ReadOptions, ScanStatus},
    folders::{Folder, SystemFolder},
};
use store::{
    Tx,
    contents::{
        self, BothTexts, ContentRecord, ContentView, HeaderSource, OpenedMessage, Part, ReadableContent,
        StoredPart, Texts,
    },
    emails::{self, EmailRecord, EmailWithContent},
    folders,
    mailboxes::MailboxName,
    vault::DataKey,
};

use crate::{
    core::{
        app::App,
        error::{Error, Result},
    },
    mailbox::mailboxes,
};

/// Characters of a body in safe mode, unless the caller says otherwise.
pub(crate) const DEFAULT_SAFE_CHARS: usize = 20_000;

/// The names of the folders that some emails are in.
#[derive(Default)]
pub(crate) struct FolderNames(HashMap<FolderId, String>);

impl FolderNames {
    /// The folders that every mailbox has keep their names, so the store is asked only about others.
    pub(crate) async fn load<'a, I>(tx: &mut Tx, mailbox: &MailboxId, emails: I) -> Result<Self>
    where
        I: IntoIterator<Item = &'a EmailRecord>,
    {
        if emails.into_iter().all(|mail| SystemFolder::of(&mail.folder_id).is_some()) {
            return Ok(Self::default());
        }
        let mut folders = folders::select_list(mailbox);
        tx.select(&mut [&mut folders]).await?;
        Ok(Self::from(folders.rows()))
    }

    /// The name of one folder, if it is none of those.
    pub(crate) fn of_one(id: FolderId, name: Option<String>) -> Self {
        Self(name.map(|name| (id, name)).into_iter().collect())
    }

    /// Whether emails are only in folders that every mailbox has.
    pub(crate) fn are_known(emails: &[EmailRecord]) -> bool {
        emails.iter().all(|mail| SystemFolder::of(&mail.folder_id).is_some())
    }

    fn of(&self, id: &FolderId) -> String {
        let system = SystemFolder::of(id).map(SystemFolder::name);
        let name = system.or_else(|| self.0.get(id).map(String::as_str));
        name.unwrap_or(id.as_str()).to_owned()
    }
}

impl From<Vec<Folder>> for FolderNames {
    fn from(folders: Vec<Folder>) -> Self {
        Self(folders.into_iter().map(|folder| (folder.id, folder.name)).collect())
    }
}

/// The content of an email, as far as it is presented.
pub(crate) enum EmailContent {
    /// The snippet only.
    Preview,
    /// The body for people, and the header block.
    Full { body: String, headers: String },
    /// The safe text for agents.
    Safe(String),
}

/// Presents emails of one mailbox with the same options.
pub(crate) struct Presenter<'a> {
    pub(crate) folders: &'a FolderNames,
    pub(crate) options: &'a ReadOptions,
}

impl Presenter<'_> {
    /// Whether the content of a message may be shown.
    pub(crate) fn may_show_content(&self, mail: &EmailRecord) -> bool {
        // Outgoing messages are not scanned.
        if mail.outgoing {
            return true;
        }
        let required = self.options.require_scan_status;
        // Safe content is for agents, who must only see what was found clean, whatever else is asked for.
        let safe = self.options.agent_safe_content.then_some(ScanStatus::Clean);
        [required, safe].into_iter().flatten().all(|status| mail.scan_status == Some(status))
    }

    /// Whether the content has to be fetched at all.
    pub(crate) fn wants_content(&self, mail: &EmailRecord) -> bool {
        !self.options.metadata_only && self.may_show_content(mail)
    }

    /// Fetches the content of an email, if it is to be shown.
    pub(crate) async fn fetch(&self, tx: &mut Tx, mail: &EmailRecord) -> Result<Option<FetchedContent>> {
        if self.wants_content(mail) {
            fetch(tx, &mail.content_id, self.options.agent_safe_content).await
        } else {
            Ok(None)
        }
    }

    /// Presents an email with its fetched content, or else with its snippet.
    pub(crate) async fn open_and_show(
        &self,
        app: &App,
        workspace: &WorkspaceId,
        mail: EmailRecord,
        fetched: Option<FetchedContent>,
    ) -> Result<Email> {
        let shown = match fetched {
            Some(fetched) => open(app, workspace, fetched).await?,
            None => EmailContent::Preview,
        };
        Ok(self.show(mail, shown))
    }

    /// Shows an email.
    pub(crate) fn show(&self, mail: EmailRecord, shown: EmailContent) -> Email {
        let gated = !self.may_show_content(&mail);
        let omitted = gated || self.options.metadata_only;
        let safe = self.options.agent_safe_content;
        let folder_name = self.folders.of(&mail.folder_id);
        let mut email = metadata(mail, folder_name, safe, omitted);
        email.content_omitted = omitted;
        email.content_omission_reason = gated.then_some(OmissionReason::ScanStatusNotClean);
        if omitted {
            email.snippet = None;
            if let Some(threats) = &mut email.scan_threats {
                for threat in threats {
                    threat.url = None;
                }
            }
            return email;
        }
        match shown {
            EmailContent::Preview => {
                email.body_format = Some(BodyFormat::Text);
                email.body = email.snippet.clone();
            }
            EmailContent::Full { body, headers } => {
                self.set_body(&mut email, body);
                email.raw_headers =
                    Some(headers).filter(|_| !safe).map(|headers| mail::message::without_verdicts(&headers));
            }
            EmailContent::Safe(text) => {
                email.body_format = Some(BodyFormat::Text);
                self.set_body(&mut email, text);
            }
        }
        email
    }

    /// Sets the body, cut to its bound.
    fn set_body(&self, email: &mut Email, body: String) {
        let (text, original) = cut(body, max_body_chars(self.options));
        email.content_truncated = original.is_some();
        email.body_original_char_count = original;
        email.body = Some(text);
    }
}

/// An email without its body, as it is shown: in safe mode without diagnostics and with every line made safe, and
/// without what describes the content when that is left out.
pub fn metadata(mail: EmailRecord, folder_name: String, safe: bool, omitted: bool) -> Email {
    let line = |text: String| if safe { SafeText::line(&text).into_string() } else { text };
    let attachment_count = i64::try_from(mail.attachments.len()).unwrap_or(i64::MAX);
    let (status, message) = storage_state(&mail);
    Email {
        folder_name,
        id: mail.id,
        subject: line(mail.subject),
        sender: line(mail.sender),
        recipient: line(mail.recipient),
        to: line(mail.to_line),
        cc: mail.cc.map(line),
        bcc: mail.bcc.map(line),
        date: mail.date,
        received_at: mail.arrived_at,
        read: mail.read,
        starred: mail.starred,
        is_urgent: mail.is_urgent,
        category: mail.category,
        custom_labels: mail.labels,
        folder_id: mail.folder_id,
        thread_id: Some(mail.thread_id),
        thread_count: None,
        snippet: Some(mail.snippet),
        body: None,
        body_format: (!omitted).then_some(mail.body_format),
        body_source: (!omitted && safe).then_some(mail.safe_source),
        body_divergent: (!omitted && safe).then_some(mail.safe_divergent),
        in_reply_to: mail.in_reply_to.map(line),
        email_references: mail.email_references.map(line),
        delivery_status: mail.delivery_status.map(|status| status.as_str().to_owned()),
        provider_metadata: (!safe).then_some(ProviderMetadata {
            size: mail.size,
            automatic: mail.automatic,
            reply_to: mail.reply_to,
        }),
        message_id: mail.message_id.map(line),
        raw_headers: None,
        body_storage_status: (!safe).then(|| status.to_owned()),
        body_storage_message: (!safe).then(|| message.to_owned()),
        scan_status: mail.scan_status,
        scan_threats: (!safe).then_some(mail.scan_threats),
        sender_authentication: mail.sender_authentication,
        attachments: (!safe).then_some(mail.attachments),
        attachment_count,
        content_omitted: false,
        content_omission_reason: None,
        content_truncated: false,
        body_original_char_count: None,
        agent_safe_content: safe,
        score: None,
        highlights: None,
    }
}

/// The most characters of a body.
fn max_body_chars(options: &ReadOptions) -> usize {
    match options.max_body_chars {
        Some(max_chars) => max_chars,
        None if options.agent_safe_content => DEFAULT_SAFE_CHARS,
        None => usize::MAX,
    }
}

/// The same options for a body that must also fit the rest of a budget.
pub(crate) fn within(options: &ReadOptions, left: Option<usize>) -> ReadOptions {
    let max_chars = left.map(|left| left.min(max_body_chars(options))).or(options.max_body_chars);
    ReadOptions { max_body_chars: max_chars, ..options.clone() }
}

fn storage_state(mail: &EmailRecord) -> (&'static str, &'static str) {
    let unread = mail.safe_source == BodySource::None && mail.scan_status == Some(ScanStatus::Skipped);
    if unread && mail.attachments.is_empty() && mail.size > 0 {
        ("unparsed", "The message is kept as it came; its structure could not be read safely.")
    } else {
        ("stored", "The message is stored.")
    }
}

/// Cuts a text to a number of characters, and returns its full length if it was cut.
pub(crate) fn cut(text: String, max_chars: usize) -> (String, Option<i64>) {
    // Bytes are never fewer than characters, so most texts need no counting.
    if text.len() <= max_chars {
        return (text, None);
    }
    match text.char_indices().nth(max_chars) {
        None => (text, None),
        Some((end, _)) => {
            let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            (text[..end].to_owned(), Some(count))
        }
    }
}

/// The content of an email as stored; several emails may share one.
#[derive(Clone)]
pub(crate) enum FetchedContent {
    /// For people.
    Full(Arc<ReadableContent>),
    /// For agents.
    Safe(Arc<Texts>),
}

impl From<ReadableContent> for FetchedContent {
    fn from(content: ReadableContent) -> Self {
        Self::Full(Arc::new(content))
    }
}

impl From<Texts> for FetchedContent {
    fn from(texts: Texts) -> Self {
        Self::Safe(Arc::new(texts))
    }
}

/// Finds an email with what is needed to show it.
pub(crate) async fn find(
    tx: &mut Tx,
    mailbox: &MailboxName,
    id: &EmailId,
    safe: bool,
) -> Result<Option<EmailWithContent<FetchedContent>>> {
    fn fetched<T: Into<FetchedContent>>(found: EmailWithContent<T>) -> EmailWithContent<FetchedContent> {
        let EmailWithContent { mailbox, folder_name, email, content } = found;
        EmailWithContent { mailbox, folder_name, email, content: content.into() }
    }
    Ok(if safe {
        emails::find_with_content::<Texts>(tx, mailbox, id).await?.map(fetched)
    } else {
        emails::find_with_content::<ReadableContent>(tx, mailbox, id).await?.map(fetched)
    })
}

/// Finds an email with its content, or tells what is missing.
pub(crate) async fn get<T: ContentView>(
    tx: &mut Tx,
    mailbox: &MailboxName,
    id: &EmailId,
) -> Result<EmailWithContent<T>> {
    match emails::find_with_content::<T>(tx, mailbox, id).await? {
        Some(found) => Ok(found),
        None => Err(missing_in(tx, mailbox).await?),
    }
}

/// The error for an email that does not exist: a mailbox that is missing is told as such.
pub(crate) async fn missing_in(tx: &mut Tx, mailbox: &MailboxName) -> Result<Error> {
    mailboxes::find_id(tx, mailbox).await?;
    Ok(missing())
}

/// Fetches what is needed to show an email.
pub(crate) async fn fetch(tx: &mut Tx, content: &str, safe: bool) -> Result<Option<FetchedContent>> {
    Ok(if safe {
        contents::find_view::<Texts>(tx, content).await?.map(FetchedContent::from)
    } else {
        contents::find_view::<ReadableContent>(tx, content).await?.map(FetchedContent::from)
    })
}

/// Decrypts fetched content.
pub(crate) async fn open(
    app: &App,
    workspace: &WorkspaceId,
    fetched: FetchedContent,
) -> Result<EmailContent> {
    let key = app.data_key(workspace).await?;
    let opener = ContentOpener { app, workspace, key: &key };
    match fetched {
        FetchedContent::Full(content) => {
            let body = opener.text(&content.id, Part::Body, &content.body).await?;
            let headers = match &content.headers {
                HeaderSource::Sealed(headers) => opener.row(&content.id, Part::Headers, headers)?,
                HeaderSource::Message(message) => {
                    header_block(&opener.bytes(&content.id, Part::Raw, message).await?).to_vec()
                }
            };
            Ok(EmailContent::Full { body, headers: String::from_utf8_lossy(&headers).into_owned() })
        }
        FetchedContent::Safe(texts) => {
            let text = opener.safe(&texts).await?;
            Ok(EmailContent::Safe(text))
        }
    }
}

/// Decrypts the text for agents and the body for people.
pub(crate) async fn open_both(
    app: &App,
    workspace: &WorkspaceId,
    BothTexts(texts): &BothTexts,
) -> Result<(String, String)> {
    let key = app.data_key(workspace).await?;
    let opener = ContentOpener { app, workspace, key: &key };
    let body = match &texts.body {
        Some(body) => opener.text(&texts.id, Part::Body, body).await?,
        None => String::new(),
    };
    let safe = match &texts.safe {
        Some(_) => opener.safe(texts).await?,
        None => body.clone(),
    };
    Ok((safe, body))
}

/// Decrypts the beginning of a text for agents: as much as is enough, to the end of a word, or all of it.
pub(crate) async fn open_start(
    app: &App,
    workspace: &WorkspaceId,
    texts: &Texts,
    enough: &mut (dyn FnMut(&str) -> bool + Send),
) -> Result<String> {
    let key = app.data_key(workspace).await?;
    let opener = ContentOpener { app, workspace, key: &key };
    let mut is_cut = false;
    let mut is_enough = |start: &[u8]| {
        is_cut = enough(whole_words(start));
        is_cut
    };
    let mut start = opener.safe_bytes(texts, &mut is_enough).await?;
    if is_cut {
        start.truncate(whole_words(&start).len());
    }
    String::from_utf8(start).map_err(Error::internal)
}

/// The start of a text without the part of a word at its end.
fn whole_words(start: &[u8]) -> &str {
    let end = start.iter().rposition(u8::is_ascii_whitespace).unwrap_or_default();
    std::str::from_utf8(&start[..end]).unwrap_or_default()
}

/// The raw message of a content, byte for byte.
pub(crate) async fn open_raw(app: &App, workspace: &WorkspaceId, content: &ContentRecord) -> Result<Vec<u8>> {
    let key = app.data_key(workspace).await?;
    let opener = ContentOpener { app, workspace, key: &key };
    let StoredPart::InRow(sealed) = &content.raw else {
        return opener.bytes(&content.id, Part::Raw, &content.raw).await;
    };
    match contents::open_message(&key, &content.id, sealed)? {
        OpenedMessage::Whole(message) => Ok(message),
        OpenedMessage::Around(around) => {
            let body = opener.bytes(&content.id, Part::Body, &content.body).await?;
            around.with_text(&body).ok_or_else(|| Error::internal("a stored message is damaged"))
        }
    }
}

struct ContentOpener<'a> {
    app: &'a App,
    workspace: &'a WorkspaceId,
    key: &'a DataKey,
}

impl ContentOpener<'_> {
    fn row(&self, id: &str, part: Part, sealed: &[u8]) -> Result<Vec<u8>> {
        Ok(contents::open(self.key, id, part, sealed)?)
    }

    async fn bytes(&self, id: &str, part: Part, stored: &StoredPart) -> Result<Vec<u8>> {
        match stored {
            StoredPart::InRow(sealed) => self.row(id, part, sealed),
            StoredPart::Blob(name) => {
                let space = self.workspace.as_str();
                let bytes = self.app.blobs().get(space, self.key, name).await.map_err(store::Error::from)?;
                Ok(bytes.to_vec())
            }
        }
    }

    /// The text for agents: as much as is enough, or all of it.
    async fn safe_bytes(
        &self,
        texts: &Texts,
        enough: &mut (dyn FnMut(&[u8]) -> bool + Send),
    ) -> Result<Vec<u8>> {
        let parts = (texts.body.as_ref(), texts.safe.as_ref());
        if let Some(text) = contents::open_safe_start(self.key, &texts.id, parts, enough)? {
            return Ok(text);
        }
        match parts {
            (_, Some(safe)) => self.bytes(&texts.id, Part::Safe, safe).await,
            (Some(body), None) => self.bytes(&texts.id, Part::Body, body).await,
            (None, None) => Ok(Vec::new()),
        }
    }

    async fn safe(&self, texts: &Texts) -> Result<String> {
        String::from_utf8(self.safe_bytes(texts, &mut |_| false).await?).map_err(Error::internal)
    }

    async fn text(&self, id: &str, part: Part, stored: &StoredPart) -> Result<String> {
        String::from_utf8(self.bytes(id, part, stored).await?).map_err(Error::internal)
    }
}

/// The part of a message before its first empty line.
fn header_block(raw: &[u8]) -> &[u8] {
    let end = raw.windows(4).position(|four| four == b"\r\n\r\n").map_or(raw.len(), |at| at + 2);
    let block = &raw[..end];
    // Only this far: a message is long, and its headers are short.
    let bare = block.windows(2).position(|two| two == b"\n\n").map_or(end, |at| at + 1);
    &block[..bare]
}

/// Whether triage holds the email now.
pub(crate) fn is_held(mail: &EmailRecord, now: Timestamp) -> bool {
    mail.held_until.is_some_and(|until| until > now)
}

/// The error for an email that does not exist.
pub(crate) fn missing() -> Error {
    Error::not_found("Email not found")
}
