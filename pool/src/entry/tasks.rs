//! Tasks that calls follow, and those that nobody waits for any more.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use super::station::Station;
use crate::Link;

/// How many are remembered where there is no connection; then the oldest is forgotten, and
/// ends at the server when its time is up.
const MOST: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// Those that calls wait for.
    followed: HashSet<String>,
    /// Those that nobody waits for, and whose server was not told so yet.
    owed: VecDeque<String>,
}

// === impl Station ===

impl Station {
    /// A call waits for a task from now on.
    pub(crate) fn follow_task(&self, task: &str) {
        self.state().tasks.followed.insert(task.to_owned());
    }

    /// A call does not wait for a task any more. Unless it has `ended`, the server is told,
    /// once: now, or as soon as there is a connection again. Never waits, and makes none for
    /// it.
    pub(crate) fn leave_task(&self, task: &str, ended: bool) {
        {
            let tasks = &mut self.state().tasks;
            // Otherwise it was told when its connection was closed.
            if !tasks.followed.remove(task) || ended {
                return;
            }
            tasks.owe(task.to_owned());
        }
        self.settle();
    }

    /// The connection is closed for good: nobody can wait for a task on it any more.
    pub(super) fn leave_all_tasks(&self) {
        {
            let tasks = &mut self.state().tasks;
            let followed = std::mem::take(&mut tasks.followed);
            followed.into_iter().for_each(|task| tasks.owe(task));
        }
        self.settle();
    }

    /// Tells the server what it was not told yet, if there is a connection.
    pub(super) fn settle(&self) {
        while let Some((link, owed)) = self.owed() {
            let untold: Vec<_> = owed
                .into_iter()
                .filter(|task| !link.cancel_task(task))
                .collect();
            if untold.is_empty() {
                return;
            }
            let mut state = self.state();
            untold.into_iter().for_each(|task| state.tasks.owe(task));
            // There may be another connection meanwhile, whose beginning found nothing owed.
            let current = state.connection.as_ref().map(|current| &current.link);
            if current.is_none_or(|current| Arc::ptr_eq(current, &link)) {
                return;
            }
        }
    }

    fn owed(&self) -> Option<(Arc<dyn Link>, VecDeque<String>)> {
        let mut state = self.state();
        let link = Arc::clone(&state.connection.as_ref()?.link);
        Some((link, std::mem::take(&mut state.tasks.owed)))
    }
}

// === impl Tasks ===

impl Tasks {
    fn owe(&mut self, task: String) {
        if self.owed.len() == MOST {
            self.owed.pop_front();
        }
        self.owed.push_back(task);
    }
}
