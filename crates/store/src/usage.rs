//! Usage of a workspace by day.

use model::{Day, usage::UsageDay};

use crate::{Tx, error::Result};

/// The figures of the days from `first` to `last`, including days without usage.
pub async fn history(tx: &mut Tx, first: Day, last: Day) -> Result<Vec<UsageDay>> {
    let rows: Vec<(i64, String, i64)> = tx
        .all(
            "SELECT day, metric, amount FROM usage_day WHERE workspace_id = $1 AND day >= $2 AND day <= $3
             UNION ALL SELECT day, name, amount FROM counter_addition
             WHERE workspace_id = $1 AND day >= $2 AND day <= $3 AND mailbox_id = ''",
            &[first.number().into(), last.number().into()],
        )
        .await?;
    let mut days: Vec<UsageDay> =
        (first.number()..=last.number()).map(|number| UsageDay::empty(Day::from_number(number))).collect();
    for (number, metric, amount) in rows {
        let Some(day) = usize::try_from(number - first.number()).ok().and_then(|index| days.get_mut(index))
        else {
            continue;
        };
        let figure = match metric.as_str() {
            "calls" => &mut day.calls,
            "errors" => &mut day.errors,
            "mails_in" => &mut day.mails_in,
            "mails_out" => &mut day.mails_out,
            "credits.read" => &mut day.credits.read,
            "credits.write" => &mut day.credits.write,
            "credits.email_send" => &mut day.credits.email_send,
            "credits.provision" => &mut day.credits.provision,
            "credits.ai_light" => &mut day.credits.ai_light,
            "credits.ai_heavy" => &mut day.credits.ai_heavy,
            _ => continue,
        };
        *figure += amount;
    }
    Ok(days)
}
