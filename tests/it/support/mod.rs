//! What the tests across crates share.

mod agent;
mod processes;
mod spy;
mod stage;
mod user;

pub(crate) use agent::{Agent, Outcome, object, quick, text};
pub(crate) use processes::{gone, kill_unseen, signal, until, wait_unseen};
pub(crate) use spy::Spy;
pub(crate) use stage::{Stage, pool_settings};
pub(crate) use user::{User, form, told};

use std::time::Duration;

/// What "soon" means where real processes are scheduled.
pub(crate) const SOON: Duration = Duration::from_secs(3);

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
