//! One key's connection: who holds it, who waits for it, and its life.

mod checkout;
mod ends;
mod idle;
mod keepalive;
mod linger;
mod listing;
mod losses;
mod machine;
mod making;
mod names;
mod owner;
mod pace;
mod phase;
mod ready;
mod report;
mod restart;
mod state;
mod station;
mod tasks;

pub(crate) use checkout::{Checkout, Use};
pub(crate) use linger::Lingering;
pub use losses::Respawn;
pub(crate) use machine::Rules;
pub(crate) use phase::{Era, Phase};
pub(crate) use ready::Patience;
pub(crate) use station::Station;
