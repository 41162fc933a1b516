//! News of changed lists, where the protocol has no stream of its own for them.
//!
//! From 2026-07-28 on a client asks for them by a request that is not answered until one
//! side has enough. The wire hears the news themselves; here that request is kept up.

use std::{sync::Arc, time::Duration};

use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{ErrorCode, ServerCapabilities, SubscriptionFilter},
};
use tokio::time::{Instant, sleep};
use tracing::debug;

use crate::wire::Wire;

/// The pause before the server is asked again, which doubles from one to the other.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How long a subscription must have lived for its end to count as the first.
const STEADY: Duration = Duration::from_secs(60);

/// Subscribes to what the server said it has news of, again and again, until the wire
/// ends or the server refuses.
pub(super) async fn subscribe(peer: Peer<RoleClient>, wire: Arc<Wire>) {
    let Some(filter) = wanted(&peer) else {
        return;
    };
    tokio::select! {
        biased;
        _ = wire.ended() => {}
        () = keep_up(&peer, &wire, &filter) => {}
    }
}

async fn keep_up(peer: &Peer<RoleClient>, wire: &Wire, filter: &SubscriptionFilter) {
    let mut pause = MIN_PAUSE;
    let mut missed = false;
    loop {
        let begun = Instant::now();
        match peer.listen(filter.clone()).await {
            Ok(mut subscription) => {
                if missed {
                    // Whatever changed while nobody listened was not heard.
                    wire.note_all_changed();
                }
                missed = true;
                while let Ok(Some(_)) = subscription.next().await {}
            }
            Err(error) if is_refused(&error, wire) => {
                debug!("the server tells no news");
                return;
            }
            Err(_) => missed = true,
        }
        if begun.elapsed() >= STEADY {
            pause = MIN_PAUSE;
        }
        sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Whether the server would say the same again.
fn is_refused(error: &ServiceError, wire: &Wire) -> bool {
    let ServiceError::McpError(data) = error else {
        return false;
    };
    let known = matches!(
        data.code,
        ErrorCode::METHOD_NOT_FOUND | ErrorCode::INVALID_REQUEST | ErrorCode::INVALID_PARAMS
    );
    known || wire.was_refused()
}

/// What the server has news of; `None` where there is none, or another way to hear it.
fn wanted(peer: &Peer<RoleClient>) -> Option<SubscriptionFilter> {
    let info = peer.peer_info()?;
    if info.protocol_version.has_initialize() {
        return None;
    }
    let ServerCapabilities {
        tools,
        prompts,
        resources,
        ..
    } = &info.capabilities;
    let tells = |changed: Option<bool>| changed.filter(|&changed| changed);
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = tells(tools.as_ref().and_then(|tools| tools.list_changed));
    filter.prompts_list_changed = tells(prompts.as_ref().and_then(|prompts| prompts.list_changed));
    filter.resources_list_changed = tells(
        resources
            .as_ref()
            .and_then(|resources| resources.list_changed),
    );
    (filter != SubscriptionFilter::new()).then_some(filter)
}
