//! What can be proven from one look at the process table. Pure: nothing here asks the system.

use std::collections::{HashMap, HashSet, VecDeque};

/// How far below a proven process its descendants are followed.
const MAX_DEPTH: usize = 8;

/// A process for as long as it lives. A pid alone is reused, with its start time it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    /// In the system's own unit, only compared.
    pub(crate) start: u64,
}

/// One process as the table shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) id: Identity,
    pub(crate) ppid: u32,
    pub(crate) pgid: u32,
    /// Ended, only not yet waited for.
    pub(crate) dead: bool,
    /// The number in the mark that it carries in its environment: whose server's it is.
    pub(crate) mark: Option<u64>,
}

/// One pass over all processes, for any number of servers. Not atomic: a pid may be reused
/// between two of its rows.
#[derive(Debug, Default)]
pub(crate) struct ProcessTable {
    rows: Vec<Row>,
    /// Where each pid stands, the last one if it stands there twice.
    by_pid: HashMap<u32, usize>,
    /// Where the children of each pid stand.
    children: HashMap<u32, Vec<usize>>,
}

/// Whose descendants are looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ancestor {
    pub(super) leader: Identity,
    /// The number in the mark that the leader was started with.
    pub(super) mark: u64,
}

/// What is alive of a server, its leader apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Family {
    /// In the leader's process group: one signal to the group reaches them all.
    pub(super) members: Vec<Identity>,
    /// Left the group, to be signalled one by one; parents before children.
    pub(super) escaped: Vec<Identity>,
    /// Left the group and stand too deep to be touched. Only counted.
    pub(super) beyond: Vec<Identity>,
    /// The table could not be read, so there may be any number.
    pub(super) unknown: bool,
}

struct Search<'a> {
    table: &'a ProcessTable,
    leader: Identity,
    mark: u64,
    /// The leader is still in the table, so its pid, and with it the group's id, is not reused.
    pinned: bool,
    host: u32,
}

// === impl ProcessTable ===

impl ProcessTable {
    pub(crate) fn new(rows: Vec<Row>) -> Self {
        let mut by_pid = HashMap::with_capacity(rows.len());
        let mut children: HashMap<_, Vec<_>> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            by_pid.insert(row.id.pid, at);
            children.entry(row.ppid).or_default().push(at);
        }
        Self {
            rows,
            by_pid,
            children,
        }
    }

    /// Everything alive that provably descends from `ancestor`: by group, by mark, by having been
    /// found before (`known`), or by a chain of parents up to one of those. Never `host` itself,
    /// never process 1, and nothing below either.
    pub(super) fn family(&self, ancestor: Ancestor, known: &[Identity], host: u32) -> Family {
        let search = Search::new(self, ancestor, host);
        let mut queue: VecDeque<(&Row, usize)> = self.roots(&search, known).collect();
        let mut seen: HashSet<u32> = queue.iter().map(|(row, _)| row.id.pid).collect();
        let mut family = Family::default();
        while let Some((row, depth)) = queue.pop_front() {
            search.place(row, depth, &mut family);
            for child in search.children_of(row) {
                if seen.insert(child.id.pid) {
                    queue.push_back((child, depth + 1));
                }
            }
        }
        family
    }

    /// How many carry a mark, whoever's.
    #[cfg(test)]
    pub(super) fn marked(&self) -> usize {
        self.rows.iter().filter(|row| row.mark.is_some()).count()
    }

    /// Whether this very process is in it, and not another with its pid.
    fn holds(&self, id: Identity) -> bool {
        let at = self.by_pid.get(&id.pid);
        at.is_some_and(|at| self.rows[*at].id == id)
    }

    fn roots<'a>(
        &'a self,
        search: &'a Search<'a>,
        known: &'a [Identity],
    ) -> impl Iterator<Item = (&'a Row, usize)> {
        let proven = move |row: &&Row| {
            search.may_be_ours(row)
                && (row.id == search.leader
                    || row.mark == Some(search.mark)
                    || search.in_group(row)
                    || known.contains(&row.id))
        };
        self.rows.iter().filter(proven).map(|row| (row, 0))
    }
}

// === impl Search ===

impl<'a> Search<'a> {
    fn new(table: &'a ProcessTable, ancestor: Ancestor, host: u32) -> Self {
        let Ancestor { leader, mark } = ancestor;
        Self {
            table,
            leader,
            mark,
            pinned: table.holds(leader),
            host,
        }
    }

    /// A descendant is never older than the leader. This alone clears the host and its parents.
    fn may_be_ours(&self, row: &Row) -> bool {
        row.id.start >= self.leader.start && row.id.pid > 1 && row.id.pid != self.host
    }

    fn in_group(&self, row: &Row) -> bool {
        self.pinned && row.pgid == self.leader.pid
    }

    fn children_of(&self, parent: &Row) -> impl Iterator<Item = &'a Row> {
        // Rows with the same pid twice: a stale one must not lend its children to the other.
        let current = self.table.holds(parent.id);
        let children = self.table.children.get(&parent.id.pid);
        let born_after = parent.id.start;
        children
            .filter(|_| current)
            .into_iter()
            .flatten()
            .map(|at| &self.table.rows[*at])
            .filter(move |child| child.id.start >= born_after && self.may_be_ours(child))
    }

    fn place(&self, row: &Row, depth: usize, family: &mut Family) {
        if row.dead || row.id == self.leader {
            return;
        }
        if self.in_group(row) {
            family.members.push(row.id);
        } else if depth <= MAX_DEPTH {
            family.escaped.push(row.id);
        } else {
            family.beyond.push(row.id);
        }
    }
}

// === impl Family ===

impl Family {
    pub(super) fn unknown() -> Self {
        Self {
            unknown: true,
            ..Self::default()
        }
    }

    /// Whether it is certain that nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.count() == Some(0)
    }

    /// How many are left, if that is known.
    pub(super) fn count(&self) -> Option<usize> {
        (!self.unknown).then(|| self.iter().count())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Identity> {
        self.members.iter().chain(&self.escaped).chain(&self.beyond)
    }
}

#[cfg(test)]
mod tests;
