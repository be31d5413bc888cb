//! Columns that hold the name of an enum's variant, decoded to the enum and encoded from it.

use model::{
    Plan, Role,
    affiliate::{CommissionStatus, PayoutStatus},
    conversations::Speaker,
    domains::DomainStatus,
    drafts::DraftState,
    emails::{BodyFormat, BodySource, Category, ScanStatus},
    events::EventType,
    integrations::ConnectionStatus,
    knowledge::{DocumentStatus, DocumentType},
    outbound::{OutboundKind, ReportState},
    payments::{PaymentState, Protocol},
    reviews::ReviewState,
    sending::{DeliveryStatus, FailureClass, RecipientLine, RecipientState},
    suppressions::SuppressionReason,
    tasks::{TaskPriority, TaskStatus},
    triagers::{RunStatus, SourceKind},
    webhooks::{DeliveryStatus as WebhookDeliveryStatus, WebhookStatus},
};

use super::value::{Cell, FromCell, Param, ToParam};
use crate::error::{Error, Result};

macro_rules! named_columns {
    ($($name:ident),+ $(,)?) => {
        $(
            impl FromCell for $name {
                fn from_cell(cell: Cell<'_>) -> Result<Self> {
                    let unknown = |error: <$name as std::str::FromStr>::Err| Error::Corrupt(error.to_string().into());
                    String::from_cell(cell)?.parse().map_err(unknown)
                }
            }
            impl From<$name> for Param<'_> {
                fn from(value: $name) -> Self {
                    Param::Text(value.as_str())
                }
            }
            impl ToParam for $name {
                fn to_param(&self) -> Param<'_> {
                    Param::Text(self.as_str())
                }
            }
        )+
    };
}

named_columns!(
    BodyFormat,
    BodySource,
    Category,
    CommissionStatus,
    ConnectionStatus,
    DeliveryStatus,
    DocumentStatus,
    DocumentType,
    DomainStatus,
    DraftState,
    EventType,
    FailureClass,
    OutboundKind,
    PaymentState,
    PayoutStatus,
    Plan,
    Protocol,
    RecipientLine,
    RecipientState,
    ReportState,
    ReviewState,
    Role,
    RunStatus,
    ScanStatus,
    SourceKind,
    Speaker,
    SuppressionReason,
    TaskPriority,
    TaskStatus,
    WebhookDeliveryStatus,
    WebhookStatus,
);
