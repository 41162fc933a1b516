//! Which versions of the protocol are spoken.

use rmcp::model::ProtocolVersion;
use steadfast_classify::{Class, Failure, Phase};

use super::Running;

/// A server that speaks a version of the protocol that is not known here.
///
/// Asking again gives the same answer, so the failure that carries this is permanent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server speaks protocol version {theirs:?}, known are {}", known())]
#[non_exhaustive]
pub struct VersionMismatch {
    /// What the server answered.
    pub theirs: ProtocolVersion,
}

/// Whether the version that the handshake ended with is one that is known.
///
/// The server answers with the client's version or another that it supports, and a client
/// that does not support that one should disconnect (MCP 2025-11-25, lifecycle, "Version
/// negotiation").
pub(crate) fn agreed(running: &Running) -> Result<(), Failure> {
    match running.peer().peer_info() {
        Some(info) if !ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version) => {
            let theirs = info.protocol_version.clone();
            let failure = Failure::new(Class::NotSent)
                .with_phase(Phase::Connect)
                .with_permanent()
                .with_source(VersionMismatch { theirs });
            Err(failure)
        }
        _ => Ok(()),
    }
}

fn known() -> String {
    let known: Vec<_> = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .map(ProtocolVersion::as_str)
        .collect();
    known.join(", ")
}
