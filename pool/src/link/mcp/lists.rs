//! The lists of a server, all pages of them.

use std::collections::HashSet;

use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams, Prompt, Resource, ResourceTemplate,
    ServerCapabilities, ServerResult, Tool,
};
use serde::de::DeserializeOwned;
use steadfast_classify::{Class, Failure};

use super::{
    McpLink,
    calls::{claimed, unexpected},
    salvage,
};
use crate::Listing;

/// More pages than any real server has.
const MAX_PAGES: usize = 1000;

/// One page, and the cursor of the next.
pub(super) type Page<T> = (Listing<T>, Option<String>);

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
    pub(super) async fn tools(&self) -> Result<Listing<Tool>, Failure> {
        if !self.has(|can| can.tools.is_some()) {
            return Ok(Listing::default());
        }
        let page = page_request!(ListToolsRequest);
        self.pages("tools/list", page, |result| match result {
            ServerResult::ListToolsResult(page) => Ok((page.tools.into(), page.next_cursor)),
            other => salvaged(&other, "tools"),
        })
        .await
    }

    pub(super) async fn prompts(&self) -> Result<Listing<Prompt>, Failure> {
        if !self.has(|can| can.prompts.is_some()) {
            return Ok(Listing::default());
        }
        let page = page_request!(ListPromptsRequest);
        self.pages("prompts/list", page, |result| match result {
            ServerResult::ListPromptsResult(page) => Ok((page.prompts.into(), page.next_cursor)),
            other => salvaged(&other, "prompts"),
        })
        .await
    }

    pub(super) async fn resources(&self) -> Result<Listing<Resource>, Failure> {
        if !self.has(|can| can.resources.is_some()) {
            return Ok(Listing::default());
        }
        let page = page_request!(ListResourcesRequest);
        self.pages("resources/list", page, |result| match result {
            ServerResult::ListResourcesResult(page) => {
                Ok((page.resources.into(), page.next_cursor))
            }
            other => salvaged(&other, "resources"),
        })
        .await
    }

    pub(super) async fn resource_templates(&self) -> Result<Listing<ResourceTemplate>, Failure> {
        if !self.has(|can| can.resources.is_some()) {
            return Ok(Listing::default());
        }
        let page = page_request!(ListResourceTemplatesRequest);
        let templates = self.pages("resources/templates/list", page, |result| match result {
            ServerResult::ListResourceTemplatesResult(page) => {
                Ok((page.resource_templates.into(), page.next_cursor))
            }
            other => salvaged(&other, "resourceTemplates"),
        });
        match templates.await {
            // Many servers with resources know no templates, and say so like this.
            Err(failure) if no_such_method(&failure) => Ok(Listing::default()),
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

    /// Walks all pages. A list that cannot be had to its end, or of which nothing can be
    /// read, is an error; what is left out of any other is among its flaws.
    async fn pages<T>(
        &self,
        method: &'static str,
        request: impl Fn(Option<String>) -> ClientRequest,
        read: impl Fn(ServerResult) -> Result<Page<T>, Failure>,
    ) -> Result<Listing<T>, Failure> {
        let mut listing = Listing::default();
        let mut cursor = None;
        let mut seen = HashSet::new();
        for _ in 0..MAX_PAGES {
            let result = self.ask(request(cursor), claimed()).await?;
            let (page, next) = read(result)?;
            listing.append(page);
            // An empty cursor is a cursor.
            let Some(next) = next else {
                return whole(listing);
            };
            if !seen.insert(next.clone()) {
                return Err(endless(method, "the same page again and again"));
            }
            cursor = Some(next);
        }
        Err(endless(method, "more than 1000 pages"))
    }
}

fn salvaged<T: DeserializeOwned>(result: &ServerResult, field: &str) -> Result<Page<T>, Failure> {
    let otherwise = "the answer to a list request is no list";
    salvage::page(result, field).ok_or_else(|| unexpected(result, otherwise))
}

fn whole<T>(listing: Listing<T>) -> Result<Listing<T>, Failure> {
    match listing.flaws.first() {
        Some(flaw) if listing.items.is_empty() => Err(Failure::new(Class::Unknown)
            .with_source(format!("nothing in the list can be read; {flaw}"))),
        _ => Ok(listing),
    }
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
