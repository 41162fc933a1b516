//! What is asked of a server about its tasks.

use rmcp::model::{
    ClientRequest, DetailedTask, GetTaskParams, GetTaskRequest, ServerResult, UpdateTaskParams,
    UpdateTaskRequest,
};
use steadfast_classify::{Failure, Flight};

use super::{McpLink, calls::unexpected};

// === impl McpLink ===

impl McpLink {
    /// Whether the server announced tasks as they can be followed here.
    pub(super) fn follows_tasks(&self) -> bool {
        let info = self.peer.peer_info();
        info.is_some_and(|info| info.capabilities.supports_tasks())
    }

    pub(super) async fn task(
        &self,
        params: GetTaskParams,
        flight: Flight,
    ) -> Result<DetailedTask, Failure> {
        let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(params));
        match self.ask(request, flight).await? {
            ServerResult::GetTaskResult(result) => Ok(result.task),
            other => Err(unexpected(&other, "the answer to tasks/get is no task")),
        }
    }

    /// Any result will do: how the task took it is seen by asking how it is.
    pub(super) async fn tell_task(
        &self,
        params: UpdateTaskParams,
        flight: Flight,
    ) -> Result<(), Failure> {
        let request = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params));
        self.ask(request, flight).await.map(drop)
    }
}
