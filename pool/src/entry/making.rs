//! Making a connection: the handshake, and the first lists.

use std::{sync::Arc, time::Duration};

use futures::FutureExt as _;
use steadfast_classify::{Class, Failure, Phase as CallPhase};
use tokio::time::{Instant, timeout_at};

use super::{listing, station::Station};
use crate::{Link, Lost, ServerConfig, time::after, view::Listed};

/// How much longer than its own deadline a connector may take to give up.
pub(super) const SLACK: Duration = Duration::from_secs(1);

pub(super) async fn connect(
    station: &Station,
    config: &ServerConfig,
    begun: Instant,
    by: Instant,
) -> Result<Arc<dyn Link>, Failure> {
    let connect = station
        .pool()
        .connector()
        .connect(config, by, station.host());
    match timeout_at(after(by, SLACK), connect).await {
        Ok(connected) => connected,
        Err(_) => Err(start_timed_out(begun.elapsed())),
    }
}

/// Asks for the lists, and makes sure that the connection still lives when they are there.
pub(super) async fn discover(
    station: &Station,
    link: &Arc<dyn Link>,
    begun: Instant,
    by: Instant,
) -> Result<Listed, Failure> {
    let mut lost = Arc::clone(link).lost();
    let listed = tokio::select! {
        biased;
        lost = &mut lost => return Err(lost_at_start(lost)),
        listed = timeout_at(by, listing::all(link)) => listed,
    };
    // What was listed by a connection that has ended since is of no use.
    if let Some(lost) = lost.now_or_never() {
        return Err(lost_at_start(lost));
    }
    match listed {
        Err(_) => Err(start_timed_out(begun.elapsed())),
        // The last good list stays; but where there is none there is nothing to call.
        Ok(Listed {
            tools: Some(Err(failure)),
            ..
        }) if !station.has_tools() => Err(unlisted(failure)),
        Ok(listed) => Ok(listed),
    }
}

fn start_timed_out(elapsed: Duration) -> Failure {
    not_sent()
        .with_elapsed(elapsed)
        .with_source("the server was not ready in time")
}

/// Whatever became of the question, no call was sent.
fn unlisted(failure: Failure) -> Failure {
    match failure.class() {
        Class::Unknown | Class::Timeout => failure
            .with_class(Class::NotSent)
            .with_phase(CallPhase::Connect),
        _ => failure.with_may_have_run(false),
    }
}

fn lost_at_start(lost: Lost) -> Failure {
    not_sent().with_source(lost)
}

fn not_sent() -> Failure {
    Failure::new(Class::NotSent).with_phase(CallPhase::Connect)
}
