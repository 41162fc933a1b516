//! What a step of an exchange gives.

use super::{
    changes::List,
    exchange::{Outgoing, Rx},
};

/// What the writer is to do.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "lives for one step on the stack, once per message"
)]
pub(crate) enum Next {
    Write(Outgoing),
    Empty,
    Closed,
}

/// Where an incoming message goes.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "lives for one step on the stack, once per message"
)]
pub(crate) enum Incoming {
    /// To `rmcp`.
    Forward(Rx),
    /// Nowhere: it was for us.
    Taken,
    /// Nowhere: one of the server's lists changed.
    Changed(List),
}
