//! The columns of a table, declared once. One list of fields gives the SELECT list, the row decoder and the INSERT
//! values, so they cannot differ in order.

use super::{
    transaction::{SystemTx, Tx},
    value::{FromRow, Param},
};
use crate::error::Result;

/// A record whose fields are columns of a table.
pub(crate) trait Columns: FromRow {
    /// The columns in order, for SELECT.
    const COLUMNS: &'static str;
    /// The same, one by one.
    const NAMES: &'static [&'static str];

    /// The values in the same order.
    fn params(&self) -> Vec<Param<'_>>;
}

/// Declares the columns of a record:
///
/// ```ignore
/// columns!(Folder { id, name, unread_count, total_count, system });
/// ```
///
/// A column with another name than its field is `field = column`. One that holds JSON is `field as json`, or
/// `field as optional_json` when it may be NULL. `Record in table { … }` writes the table before each column, for queries
/// of several tables; `and field = "expression" => reader` after it reads what is computed and never inserted.
macro_rules! columns {
    ($record:ident { $($field:ident $(= $column:ident)? $(as $codec:ident)?),+ $(,)? }) => {
        impl $crate::sql::Columns for $record {
            const COLUMNS: &'static str =
                concat!($(", ", columns!(@name $field $($column)?)),+).split_at(2).1;
            columns!(@columns $($field $(= $column)? $(as $codec)?),+);
        }
        impl $crate::FromRow for $record {
            fn from_row(row: &mut $crate::Row<'_>) -> $crate::Result<Self> {
                Ok(Self { $($field: columns!(@read row $($codec)?)),+ })
            }
        }
    };
    ($record:ident in $table:ident { $($field:ident $(= $column:ident)? $(as $codec:ident)?),+ $(,)? }
        $(and $computed:ident = $sql:literal => $read:path)?) => {
        impl $crate::sql::Columns for $record {
            const COLUMNS: &'static str = concat!(
                $(", ", stringify!($table), ".", columns!(@name $field $($column)?)),+ $(, ", ", $sql)?
            ).split_at(2).1;
            columns!(@columns $($field $(= $column)? $(as $codec)?),+);
        }
        impl $crate::FromRow for $record {
            fn from_row(row: &mut $crate::Row<'_>) -> $crate::Result<Self> {
                Ok(Self { $($field: columns!(@read row $($codec)?),)+ $($computed: $read(row)?)? })
            }
        }
    };
    (@columns $($field:ident $(= $column:ident)? $(as $codec:ident)?),+) => {
        const NAMES: &'static [&'static str] = &[$(columns!(@name $field $($column)?)),+];

        fn params(&self) -> Vec<$crate::Param<'_>> {
            vec![$(columns!(@param [$($codec)?] self.$field)),+]
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $column:ident) => { stringify!($column) };
    (@read $row:ident) => { $row.next()? };
    (@read $row:ident json) => { $row.next_json()? };
    (@read $row:ident optional_json) => { $row.next_optional_json()? };
    (@param [] $value:expr) => { $crate::sql::ToParam::to_param(&$value) };
    (@param [json] $value:expr) => { $crate::Param::Json(&$value) };
    (@param [optional_json] $value:expr) => {
        $value.as_ref().map_or($crate::Param::Null, |value| $crate::Param::Json(value))
    };
}
pub(crate) use columns;

/// Declares how to decode a row whose columns come from several tables or are computed: its fields, in the order of
/// the query's columns.
macro_rules! row {
    ($record:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::FromRow for $record {
            fn from_row(row: &mut $crate::Row<'_>) -> $crate::Result<Self> {
                Ok(Self { $($field: row.next()?),+ })
            }
        }
    };
}
pub(crate) use row;

/// A row to insert into a table.
pub(crate) struct Insert<'a> {
    table: &'static str,
    columns: Vec<&'static str>,
    params: Vec<Param<'a>>,
    conflict: Option<&'static str>,
}

impl<'a> Insert<'a> {
    /// A row without values yet.
    pub(crate) const fn into(table: &'static str) -> Self {
        Self { table, columns: Vec::new(), params: Vec::new(), conflict: None }
    }

    /// The columns of a record, except the workspace: a transaction adds its own.
    pub(crate) fn record<R: Columns>(mut self, record: &'a R) -> Self {
        self.columns.reserve(R::NAMES.len());
        self.params.reserve(R::NAMES.len());
        let columns = R::NAMES.iter().zip(record.params()).filter(|(name, _)| **name != WORKSPACE);
        for (name, value) in columns {
            self.columns.push(name);
            self.params.push(value);
        }
        self
    }

    /// One more column.
    pub(crate) fn column(mut self, name: &'static str, value: impl Into<Param<'a>>) -> Self {
        self.columns.push(name);
        self.params.push(value.into());
        self
    }

    /// `ON CONFLICT DO NOTHING` for these columns.
    pub(crate) const fn unless_same(mut self, columns: &'static str) -> Self {
        self.conflict = Some(columns);
        self
    }

    /// Inserts the row, and returns whether there was no conflict.
    pub(crate) async fn run(self, tx: &mut Tx) -> Result<bool> {
        Ok(tx.run(&self.sql(Some(WORKSPACE)), &self.params).await? == 1)
    }

    /// Inserts the row [with the next statement](Tx::pipeline).
    pub(crate) async fn pipeline(self, tx: &mut Tx) -> Result<()> {
        tx.pipeline(&self.sql(Some(WORKSPACE)), &self.params).await
    }

    /// Inserts rows with the same columns [with the next statement](Tx::pipeline_rows).
    pub(crate) async fn pipeline_all(tx: &mut Tx, rows: Vec<Self>) -> Result<()> {
        let Some(first) = rows.first() else { return Ok(()) };
        let sql = first.sql(Some(WORKSPACE));
        tx.pipeline_rows(&sql, rows.into_iter().map(|row| row.params).collect()).await
    }

    /// Inserts a row into a table without workspaces, and returns whether there was no conflict.
    pub(crate) async fn run_system(self, tx: &mut SystemTx) -> Result<bool> {
        Ok(tx.run(&self.sql(None), &self.params).await? == 1)
    }

    fn sql(&self, first: Option<&'static str>) -> String {
        // Without growing: an email has fifty columns, and this is part of every message that arrives.
        let names: usize = self.columns.iter().map(|column| column.len()).sum();
        let mut sql = String::with_capacity(names + 8 * self.columns.len() + 128);
        sql.push_str("INSERT INTO ");
        sql.push_str(self.table);
        let columns = first.into_iter().chain(self.columns.iter().copied());
        for (column, number) in columns.clone().zip(1_u32..) {
            sql.push_str(if number == 1 { " (" } else { ", " });
            sql.push_str(column);
        }
        for (_, number) in columns.zip(1_u32..) {
            sql.push_str(if number == 1 { ") VALUES ($" } else { ", $" });
            push_number(&mut sql, number);
        }
        sql.push(')');
        if let Some(columns) = self.conflict {
            sql.push_str(" ON CONFLICT (");
            sql.push_str(columns);
            sql.push_str(") DO NOTHING");
        }
        sql
    }
}

/// Appends a number below 1000 without the machinery of formatting.
fn push_number(sql: &mut String, number: u32) {
    for power in [100, 10, 1] {
        if number >= power {
            sql.extend(char::from_digit(number / power % 10, 10));
        }
    }
}

/// Stores all columns of a record in the row with these keys, and returns whether there is one.
pub(crate) async fn update_row<R: Columns>(
    tx: &mut Tx,
    table: &str,
    keys: &[(&'static str, Param<'_>)],
    record: &R,
) -> Result<bool> {
    let (sql, params) = update_statement(table, keys, record);
    Ok(tx.run(&sql, &params).await? == 1)
}

fn update_statement<'a, R: Columns>(
    table: &str,
    keys: &[(&'static str, Param<'a>)],
    record: &'a R,
) -> (String, Vec<Param<'a>>) {
    let is_key = |name: &str| name == WORKSPACE || keys.iter().any(|(key, _)| *key == name);
    let changed = R::NAMES.iter().copied().zip(record.params()).filter(|(name, _)| !is_key(name));
    let (names, params): (Vec<&str>, Vec<Param<'a>>) = changed.chain(keys.iter().copied()).unzip();
    let terms: Vec<String> = names.iter().zip(2..).map(|(name, at)| format!("{name} = ${at}")).collect();
    let (values, conditions) = terms.split_at(names.len() - keys.len());
    let (values, conditions) = (values.join(", "), conditions.join(" AND "));
    let sql = format!("UPDATE {table} SET {values} WHERE {WORKSPACE} = $1 AND {conditions}");
    (sql, params)
}

/// The first column of every table with workspace data; a [`Tx`] passes it to its statements as `$1`.
const WORKSPACE: &str = "workspace_id";

#[cfg(test)]
mod tests {
    use super::*;

    struct Door {
        workspace_id: String,
        id: String,
        kind: i64,
        locks: Vec<u8>,
    }
    columns!(Door in door { workspace_id, id, kind = door_kind, locks as json });

    #[test]
    fn a_row_is_inserted_into_the_workspace_of_its_transaction() {
        let door = Door { workspace_id: "ws_2".to_owned(), id: "d".to_owned(), kind: 7, locks: vec![1, 2] };
        assert_eq!(Door::COLUMNS, "door.workspace_id, door.id, door.door_kind, door.locks");
        let insert = Insert::into("door").record(&door).column("open", true).unless_same("workspace_id, id");
        assert_eq!(
            insert.sql(Some(WORKSPACE)),
            "INSERT INTO door (workspace_id, id, door_kind, locks, open) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (workspace_id, id) DO NOTHING"
        );
        assert_eq!(insert.params.len(), 4, "the transaction adds its workspace");
    }

    #[test]
    fn numbers_of_parameters_have_up_to_three_digits() {
        for number in [1, 9, 10, 99, 100, 105, 990, 999] {
            let mut sql = String::new();
            push_number(&mut sql, number);
            assert_eq!(sql, number.to_string());
        }
    }

    #[test]
    fn an_update_changes_everything_but_its_keys() {
        let door = Door { workspace_id: "ws_2".to_owned(), id: "d".to_owned(), kind: 7, locks: vec![1] };
        let (sql, params) =
            update_statement("door", &[("house", "h".into()), ("id", (&door.id).into())], &door);
        assert_eq!(
            sql,
            "UPDATE door SET door_kind = $2, locks = $3 WHERE workspace_id = $1 AND house = $4 AND id = $5"
        );
        assert_eq!(params.len(), 4, "the transaction adds its workspace");
    }
}
