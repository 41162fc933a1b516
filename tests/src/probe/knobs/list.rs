//! The tool list and its faults.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which tools are listed, in which pages, and what goes wrong meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListKnobs {
    /// Whether a tool can run as a task (`execution.taskSupport`), by its name.
    pub task_support: BTreeMap<String, String>,
    /// So many more tools, named `t0`, `t1`, …; each behaves as `w`.
    pub extra: usize,
    /// More tools with these names; each behaves as `w`.
    pub names: Vec<String>,
    /// Tools that are neither listed nor known.
    pub without: BTreeSet<String>,
    /// Annotations by tool; `null` takes the tool's own ones away.
    pub annotations: BTreeMap<String, Value>,
    /// Input schemas by tool.
    pub schemas: BTreeMap<String, Value>,
    /// Tools per page; absent: all in one page.
    pub page_size: Option<NonZeroUsize>,
    /// The cursors between pages.
    pub cursors: Cursors,
    /// The page that is never answered, counted from 1.
    pub hang_page: Option<usize>,
    /// Wait so long before each page.
    pub delay_ms: u64,
    /// Answer `tools/list` with this JSON-RPC error code.
    pub rpc_error: Option<i64>,
    /// The text of that error.
    pub rpc_message: Option<String>,
    /// The list after a call with `change_list`; absent: the same with one more tool, `added`.
    pub changed: Option<Box<Self>>,
}

/// How `nextCursor` behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cursors {
    /// A new one for each page, none on the last.
    #[default]
    Healthy,
    /// The same one for ever.
    Same,
    /// A new one for ever, with one more tool each.
    Endless,
    /// The empty string for the second page, then none.
    Empty,
}
