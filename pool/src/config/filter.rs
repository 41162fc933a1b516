//! Which tools a session sees, and may call.

use std::{collections::BTreeSet, sync::Arc};

/// A compiled `includeTools` / `excludeTools` pair: the one matcher for listing *and*
/// for calling, so that a tool that is not shown cannot be called either.
///
/// - An include entry is cut at its first `(` and then compared exactly:
///   `"search(query)"` includes the tool `search`. No include list lets everything
///   pass; an empty one lets nothing pass.
/// - An exclude entry is compared exactly, parentheses and all, and wins.
///
/// Two filters that let the same tools pass because their lists mean the same are
/// equal, and hash alike.
///
/// ```
/// use steadfast_pool::Filter;
///
/// let filter = Filter::new(Some(["search(query)", "write"]), ["write"]);
/// assert!(filter.allows("search"));
/// assert!(!filter.allows("write"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Filter(Arc<Rule>);

#[derive(Debug, PartialEq, Eq, Hash)]
enum Rule {
    Only(BTreeSet<Box<str>>),
    AllBut(BTreeSet<Box<str>>),
}

// === impl Filter ===

impl Filter {
    /// Compiles the two lists. `None` for `include` is "no list": everything passes.
    pub fn new<I, E>(include: Option<I>, exclude: E) -> Self
    where
        I: IntoIterator<Item: AsRef<str>>,
        E: IntoIterator<Item: AsRef<str>>,
    {
        let exclude: BTreeSet<Box<str>> = exclude
            .into_iter()
            .map(|name| name.as_ref().into())
            .collect();
        let Some(include) = include else {
            return Self(Arc::new(Rule::AllBut(exclude)));
        };
        let only = include
            .into_iter()
            .map(|entry| entry.as_ref().split('(').next().unwrap_or_default().into())
            .filter(|name| !exclude.contains(name))
            .collect();
        Self(Arc::new(Rule::Only(only)))
    }

    /// Whether this tool or prompt may be seen and called.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        match &*self.0 {
            Rule::Only(names) => names.contains(name),
            Rule::AllBut(names) => !names.contains(name),
        }
    }

    /// What it lets pass by name.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        let only = match &*self.0 {
            Rule::Only(names) => Some(names),
            Rule::AllBut(_) => None,
        };
        only.into_iter().flatten().map(|name| &**name)
    }
}

// === impl Rule ===

impl Default for Rule {
    fn default() -> Self {
        Self::AllBut(BTreeSet::new())
    }
}
