//! Parallel rows: those that mostly wait, with the long ones, so that all of them take minutes instead of a quarter of
//! an hour. CPU-bound rows run alone.

use crate::outcome::Outcome;
use crate::row::{Beside, Row};
use crate::run::Programs;

/// Runs the rows and returns their outcomes in the order of the rows. `show` is called with each one as soon as it
/// ends.
pub(crate) async fn all(
    programs: &Programs,
    rows: &[&'static Row],
    show: impl Fn(&Outcome) + Send + Sync,
) -> anyhow::Result<Vec<Outcome>> {
    let mut outcomes = lane(programs, rows, Beside::Alone, &show).await?;
    let (long, idle) = tokio::try_join!(
        lane(programs, rows, Beside::Long, &show),
        lane(programs, rows, Beside::Idle, &show),
    )?;
    outcomes.extend(long);
    outcomes.extend(idle);
    let place = |outcome: &Outcome| rows.iter().position(|row| row.name == outcome.row);
    outcomes.sort_by_key(place);
    Ok(outcomes)
}

async fn lane(
    programs: &Programs,
    rows: &[&'static Row],
    beside: Beside,
    show: &(impl Fn(&Outcome) + Sync),
) -> anyhow::Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for row in rows.iter().filter(|row| row.beside == beside) {
        let outcome = programs.run(row).await?;
        show(&outcome);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}
