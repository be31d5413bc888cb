//! Wrong passwords, counted per subject. Callers decide what a subject is and how long it is blocked.

use model::Timestamp;

use crate::{SystemTx, error::Result};

/// The keyed hash that a subject is counted under.
pub type Subject = [u8; 32];

/// The count of a subject, including the guess just counted.
#[derive(Clone, Copy, Debug)]
pub struct GuessCount {
    /// Wrong passwords, including this one.
    pub failures: i64,
    /// Until when earlier guesses block the subject.
    pub blocked_until: Timestamp,
}

/// Counts a guess, and locks the subject until the transaction ends. Expired failures no longer count.
pub async fn count(
    tx: &mut SystemTx,
    subject: &Subject,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<GuessCount> {
    let found: Option<(i64, Timestamp)> = tx
        .one(
            "INSERT INTO password_guess AS known (subject, failures, blocked_until, expires_at) VALUES ($1, 1, 0, $3)
             ON CONFLICT (subject) DO UPDATE SET
               failures = CASE WHEN known.expires_at <= $2 THEN 1 ELSE known.failures + 1 END, expires_at = $3
             RETURNING failures, blocked_until",
            &[subject.as_slice().into(), now.into(), expires_at.into()],
        )
        .await?;
    let (failures, blocked_until) = found.unwrap_or((1, Timestamp::from_micros(0)));
    Ok(GuessCount { failures, blocked_until })
}

/// Blocks a subject.
pub async fn block(tx: &mut SystemTx, subject: &Subject, until: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE password_guess SET blocked_until = $2 WHERE subject = $1",
        &[subject.as_slice().into(), until.into()],
    )
    .await?;
    Ok(())
}

/// Takes one guess back. With fewer than `free` failures the subject is not blocked.
pub async fn uncount(tx: &mut SystemTx, subject: &Subject, free: i64) -> Result<()> {
    tx.run(
        "UPDATE password_guess SET failures = failures - 1,
         blocked_until = CASE WHEN failures - 1 < $2 THEN 0 ELSE blocked_until END WHERE subject = $1 AND failures > 0",
        &[subject.as_slice().into(), free.into()],
    )
    .await?;
    tx.run("DELETE FROM password_guess WHERE subject = $1 AND failures <= 0", &[subject.as_slice().into()])
        .await?;
    Ok(())
}

/// Deletes a subject.
pub async fn reset(tx: &mut SystemTx, subject: &Subject) -> Result<()> {
    tx.run("DELETE FROM password_guess WHERE subject = $1", &[subject.as_slice().into()]).await?;
    Ok(())
}

/// Deletes some subjects above `capacity`, those with the fewest failures first. Returns how many.
pub async fn trim(tx: &mut SystemTx, capacity: i64) -> Result<u64> {
    let found: Option<(i64,)> = tx.one("SELECT count(*) FROM password_guess", &[]).await?;
    let excess = found.map_or(0, |(count,)| count) - capacity;
    if excess <= 0 {
        return Ok(0);
    }
    tx.run(
        "DELETE FROM password_guess WHERE subject IN
         (SELECT subject FROM password_guess ORDER BY failures, expires_at LIMIT $1)",
        &[excess.min(SystemTx::SWEEP).into()],
    )
    .await
}
