//! Lists as servers give them, flaws included.

use std::{collections::HashSet, fmt, sync::Arc};

/// A list of a server's, whole but for what could not be used of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Listing<T> {
    /// What can be used, in the server's order.
    pub items: Vec<T>,
    /// What was left out, in the server's order. Never silently: the pool tells it.
    pub flaws: Vec<Flaw>,
}

/// Something that a server lists and that is left out of its list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flaw {
    /// What it is called; `#3` for the third of a page that has no name.
    pub name: Arc<str>,
    /// Why it is left out.
    pub fault: Fault,
}

/// Why something is left out of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It is not as the protocol says, a tool without an input schema, say. The rest of
    /// the list is good.
    Unreadable(Arc<str>),
    /// Another one of that name comes before it: a call could not tell them apart.
    Repeated,
}

/// How much of the reason is kept: it may repeat whole texts of the server.
const REASON: usize = 200;

// === impl Listing ===

impl<T> Listing<T> {
    /// A list and what was left out of it.
    #[must_use]
    pub const fn new(items: Vec<T>, flaws: Vec<Flaw>) -> Self {
        Self { items, flaws }
    }

    pub(crate) fn append(&mut self, mut page: Self) {
        self.items.append(&mut page.items);
        self.flaws.append(&mut page.flaws);
    }

    /// The list without what has the name of something before it.
    pub(crate) fn distinct(mut self, name: impl Fn(&T) -> &str) -> Self {
        let mut seen = HashSet::with_capacity(self.items.len());
        let flaws = &mut self.flaws;
        self.items.retain(|item| {
            let name = name(item);
            let first = seen.insert(name.to_owned());
            if !first {
                flaws.push(Flaw {
                    name: name.into(),
                    fault: Fault::Repeated,
                });
            }
            first
        });
        self
    }
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self::new(Vec::new(), Vec::new())
    }
}

impl<T> From<Vec<T>> for Listing<T> {
    fn from(items: Vec<T>) -> Self {
        Self::new(items, Vec::new())
    }
}

// === impl Flaw ===

impl Flaw {
    /// Something that cannot be read, and why.
    #[must_use]
    pub fn unreadable(name: impl Into<Arc<str>>, reason: impl fmt::Display) -> Self {
        let reason: String = reason.to_string().chars().take(REASON).collect();
        Self {
            name: name.into(),
            fault: Fault::Unreadable(reason.into()),
        }
    }

    /// Whether the server has it all the same: it was not understood.
    pub(crate) const fn is_unreadable(&self) -> bool {
        matches!(self.fault, Fault::Unreadable(_))
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            Fault::Unreadable(reason) => write!(f, "{:?} cannot be read: {reason}", self.name),
            Fault::Repeated => write!(f, "{:?} is there twice, the first counts", self.name),
        }
    }
}
