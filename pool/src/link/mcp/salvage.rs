//! What can be had of a page of a list that cannot be read as a whole.

use rmcp::model::{CustomResult, ServerResult};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::lists::Page;
use crate::{Flaw, Listing};

/// Reads a page item by item: one bad tool does not cost the others. `None` if it is no
/// page at all, or nobody can tell whether another one follows.
pub(super) fn page<T: DeserializeOwned>(result: &ServerResult, field: &str) -> Option<Page<T>> {
    let ServerResult::CustomResult(CustomResult(page)) = result else {
        return None;
    };
    let next = match page.get("nextCursor") {
        None | Some(Value::Null) => None,
        Some(next) => Some(next.as_str()?.to_owned()),
    };
    let mut listing = Listing::default();
    for (index, item) in page.get(field)?.as_array()?.iter().enumerate() {
        match T::deserialize(item) {
            Ok(item) => listing.items.push(item),
            Err(error) => listing
                .flaws
                .push(Flaw::unreadable(name(item, index), error)),
        }
    }
    Some((listing, next))
}

fn name(item: &Value, index: usize) -> String {
    let name = ["name", "uri", "uriTemplate"]
        .iter()
        .find_map(|field| item.get(field)?.as_str());
    name.map_or_else(|| format!("#{}", index + 1), ToOwned::to_owned)
}
