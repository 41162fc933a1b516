//! The lists of a server, all pages of them.

use std::collections::HashSet;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams, Prompt, Resource, ResourceTemplate,
    ServerCapabilities, ServerResult, Tool,
};
use steadfast_classify::{Class, Failure};

use super::{
    McpLink,
    calls::{claimed, unexpected},
};

/// More pages than any real server has.
const MAX_PAGES: usize = 1000;

/// One page, and the cursor of the next.
type Page<T> = (Vec<T>, Option<String>);

/// A request that takes a cursor.
macro_rules! page_request {
    ($variant:ident) => {
        |cursor| {
            let mut request = $variant::default();
            request.params = Some(PaginatedRequestParams::default().with_cursor(cursor));
            ClientRequest::$variant(request)
        }
    };
}

// === impl McpLink ===

impl McpLink {
    pub(super) async fn tools(&self) -> Result<Vec<Tool>, Failure> {
        if !self.has(|can| can.tools.is_some()) {
            return Ok(Vec::new());
        }
        let page = page_request!(ListToolsRequest);
        self.pages("tools/list", page, |result| match result {
            ServerResult::ListToolsResult(page) => Ok((page.tools, page.next_cursor)),
            other => Err(no_list(&other)),
        })
        .await
    }

    pub(super) async fn prompts(&self) -> Result<Vec<Prompt>, Failure> {
        if !self.has(|can| can.prompts.is_some()) {
            return Ok(Vec::new());
        }
        let page = page_request!(ListPromptsRequest);
        self.pages("prompts/list", page, |result| match result {
            ServerResult::ListPromptsResult(page) => Ok((page.prompts, page.next_cursor)),
            other => Err(no_list(&other)),
        })
        .await
    }

    pub(super) async fn resources(&self) -> Result<Vec<Resource>, Failure> {
        if !self.has(|can| can.resources.is_some()) {
            return Ok(Vec::new());
        }
        let page = page_request!(ListResourcesRequest);
        self.pages("resources/list", page, |result| match result {
            ServerResult::ListResourcesResult(page) => Ok((page.resources, page.next_cursor)),
            other => Err(no_list(&other)),
        })
        .await
    }

    pub(super) async fn resource_templates(&self) -> Result<Vec<ResourceTemplate>, Failure> {
        if !self.has(|can| can.resources.is_some()) {
            return Ok(Vec::new());
        }
        let page = page_request!(ListResourceTemplatesRequest);
        let templates = self.pages("resources/templates/list", page, |result| match result {
            ServerResult::ListResourceTemplatesResult(page) => {
                Ok((page.resource_templates, page.next_cursor))
            }
            other => Err(no_list(&other)),
        });
        match templates.await {
            // Many servers with resources know no templates, and say so like this.
            Err(failure) if no_such_method(&failure) => Ok(Vec::new()),
            templates => templates,
        }
    }

    pub(super) fn announces(&self) -> bool {
        let info = self.peer.peer_info();
        let tools = info.and_then(|info| info.capabilities.tools.clone());
        tools.is_some_and(|tools| tools.list_changed == Some(true))
    }

    fn has(&self, ask: impl FnOnce(&ServerCapabilities) -> bool) -> bool {
        self.peer
            .peer_info()
            .is_none_or(|info| ask(&info.capabilities))
    }

    /// Walks all pages. A list that cannot be had whole is an error, never half a list.
    async fn pages<T>(
        &self,
        method: &'static str,
        request: impl Fn(Option<String>) -> ClientRequest,
        read: impl Fn(ServerResult) -> Result<Page<T>, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let mut items = Vec::new();
        let mut cursor = None;
        let mut seen = HashSet::new();
        for _ in 0..MAX_PAGES {
            let result = self.ask(request(cursor), claimed()).await?;
            let (page, next) = read(result)?;
            items.extend(page);
            // An empty cursor is a cursor.
            let Some(next) = next else { return Ok(items) };
            if !seen.insert(next.clone()) {
                return Err(endless(method, "the same page again and again"));
            }
            cursor = Some(next);
        }
        Err(endless(method, "more than 1000 pages"))
    }
}

fn no_list(result: &ServerResult) -> Failure {
    unexpected(result, "the answer to a list request is no list")
}

fn endless(method: &'static str, what: &'static str) -> Failure {
    Failure::new(Class::Answered).with_source(format!("{method} is endless: {what}"))
}

fn no_such_method(failure: &Failure) -> bool {
    use steadfast_classify::mcp::ServerError;

    failure
        .find_source::<ServerError>()
        .is_some_and(|error| error.code() == rmcp::model::ErrorCode::METHOD_NOT_FOUND.0)
}
