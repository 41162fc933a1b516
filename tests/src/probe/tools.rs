//! `tools/list`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::knobs::{Cursors, ListKnobs};
use super::message::{self, INTERNAL_ERROR, INVALID_PARAMS, Request, RpcError};
use super::outbox::{Out, Outbox};
use super::pause::pause;
use super::server::Server;

/// The tools of every probe.
const OWN: [&str; 5] = ["w", "r", "i", "env", "pid"];

/// A cursor is this and the number of its page, counted from 1.
const CURSOR: &str = "page-";

/// The one cursor of a list that always gives the same.
const SAME: &str = "again";

#[derive(Debug, PartialEq)]
struct Page {
    tools: Vec<String>,
    next: Option<String>,
}

pub(crate) async fn answer(server: Arc<Server>, request: Request, out: Outbox) {
    let list = server.list();
    pause(list.delay_ms).await;
    let cursor = request.params.get("cursor").and_then(Value::as_str);
    let page = match number(&list, cursor) {
        Ok(number) if list.hang_page == Some(number) => return,
        Ok(number) => outcome(&list, number),
        Err(error) => Err(error),
    };
    let is_last = page.as_ref().is_ok_and(|page| page.next.is_none());
    out.answer(&message::reply(
        &request.id,
        page.map(|page| page.into_result(&list)),
    ));
    if let Some(code) = server.knobs.start.exit_after_list
        && is_last
    {
        out.push(Out::Exit(code));
    }
}

/// All tools of this list, in order.
pub(crate) fn names(list: &ListKnobs) -> impl Iterator<Item = String> {
    let own = OWN.iter().map(|&name| name.to_owned());
    let extra = (0..list.extra).map(|number| format!("t{number}"));
    own.chain(list.names.iter().cloned())
        .chain(extra)
        .filter(|name| !list.without.contains(name))
}

/// The number of the page that a cursor stands for.
fn number(list: &ListKnobs, cursor: Option<&str>) -> Result<usize, RpcError> {
    let unknown = |cursor| RpcError::new(INVALID_PARAMS, format!("unknown cursor {cursor:?}"));
    match cursor {
        None => Ok(1),
        Some("") if list.cursors == Cursors::Empty => Ok(2),
        Some(SAME) if list.cursors == Cursors::Same => Ok(2),
        Some(cursor) => {
            let number = cursor.strip_prefix(CURSOR).and_then(|n| n.parse().ok());
            number.filter(|&n| n > 1).ok_or_else(|| unknown(cursor))
        }
    }
}

fn outcome(list: &ListKnobs, number: usize) -> Result<Page, RpcError> {
    if list.rpc_error.is_some() || list.rpc_message.is_some() {
        let code = list.rpc_error.unwrap_or(INTERNAL_ERROR);
        return Err(RpcError::asked(code, list.rpc_message.as_ref()));
    }
    Ok(page(list, number))
}

fn page(list: &ListKnobs, number: usize) -> Page {
    let all: Vec<_> = names(list).collect();
    let size = match (list.page_size, list.cursors) {
        (Some(size), _) => size.get(),
        // Two pages, so that there is a second one to ask for.
        (None, Cursors::Empty) => all.len().div_ceil(2).max(1),
        (None, Cursors::Healthy | Cursors::Same | Cursors::Endless) => all.len().max(1),
    };
    let first = size.saturating_mul(number - 1);
    let mut tools: Vec<_> = all.iter().skip(first).take(size).cloned().collect();
    let next = match list.cursors {
        Cursors::Same => Some(SAME.to_owned()),
        Cursors::Endless => Some(format!("{CURSOR}{}", number + 1)),
        Cursors::Empty if number == 1 => Some(String::new()),
        Cursors::Healthy | Cursors::Empty => {
            (first + size < all.len()).then(|| format!("{CURSOR}{}", number + 1))
        }
    };
    if tools.is_empty() && list.cursors == Cursors::Endless {
        tools.push(format!("endless{number}"));
    }
    Page { tools, next }
}

// === impl Page ===

impl Page {
    fn into_result(self, list: &ListKnobs) -> Value {
        let tools = self.tools.iter().map(|name| describe(list, name));
        let mut result = json!({ "tools": tools.collect::<Vec<_>>() });
        if let Some(next) = self.next {
            result["nextCursor"] = json!(next);
        }
        result
    }
}

fn describe(list: &ListKnobs, name: &str) -> Value {
    let schema = list.schemas.get(name).cloned();
    let mut tool = json!({
        "name": name,
        "description": "executes once and answers; its arguments are faults to inject",
        "inputSchema": schema.unwrap_or_else(|| json!({ "type": "object" })),
    });
    if let Some(support) = list.task_support.get(name) {
        tool["execution"] = json!({ "taskSupport": support });
    }
    let own = match name {
        "r" | "env" | "pid" => json!({ "readOnlyHint": true }),
        "i" => json!({ "idempotentHint": true }),
        _ => Value::Null,
    };
    let annotations = list.annotations.get(name).cloned().unwrap_or(own);
    if !annotations.is_null() {
        tool["annotations"] = annotations;
    }
    tool
}
