//! Messages that the wire itself reads or makes.

use std::sync::Arc;

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest,
    CustomResult, ErrorData, GetExtensions, JsonRpcMessage, RequestId, ServerResult,
};

use super::{
    Trace,
    exchange::{Rx, Tx},
};

pub(super) fn trace_of(request: &ClientRequest) -> Option<Arc<Trace>> {
    request.extensions().get::<Arc<Trace>>().cloned()
}

pub(super) fn cancelled(notification: &ClientNotification) -> Option<RequestId> {
    match notification {
        ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.clone(),
        _ => None,
    }
}

pub(super) fn cancel(id: &RequestId, reason: &str) -> Tx {
    let params = CancelledNotificationParam::new(Some(id.clone()), Some(reason.to_owned()));
    JsonRpcMessage::notification(CancelledNotification::new(params).into())
}

/// An answer that makes `rmcp` forget a request that nobody waits for.
pub(super) fn forget(id: RequestId) -> Rx {
    JsonRpcMessage::error(ErrorData::internal_error("abandoned", None), Some(id))
}

/// An answer that holds nothing that anybody could ask for.
pub(super) fn unreadable(id: RequestId) -> Rx {
    let nothing = CustomResult::new(serde_json::Value::Null);
    JsonRpcMessage::response(ServerResult::CustomResult(nothing), id)
}
