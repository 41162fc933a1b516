//! What servers ask of their client, and who answers.

mod host;

pub use host::Host;
