//! One key's connection: who holds it, who waits for it, and its life.

mod idle;
mod losses;
mod machine;
mod owner;
mod state;
mod station;
mod tools;

pub use losses::Respawn;
pub(crate) use machine::{Phase, Rules, Shut};
pub(crate) use station::{Patience, Station};
