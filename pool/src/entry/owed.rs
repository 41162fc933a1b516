//! Tasks that nobody waits for any more, and whose server was not told so yet.

use std::{collections::VecDeque, sync::Arc};

use super::station::Station;

/// How many are remembered where there is no connection; then the oldest is forgotten, and
/// ends at the server when its time is up.
const MOST: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Owed(VecDeque<String>);

// === impl Station ===

impl Station {
    /// Tells the server that nobody waits for a task any more, once: now, or as soon as
    /// there is a connection again. Never waits, and makes none for it.
    pub(crate) fn cancel_task(&self, task: &str) {
        self.state().owed.add(task.to_owned());
        self.settle();
    }

    /// Tells the server what it was not told yet, if there is a connection.
    pub(super) fn settle(&self) {
        loop {
            let (link, owed) = {
                let mut state = self.state();
                let Some(connection) = &state.connection else {
                    return;
                };
                let link = Arc::clone(&connection.link);
                (link, std::mem::take(&mut state.owed))
            };
            let untold: Vec<_> = owed
                .0
                .into_iter()
                .filter(|task| !link.cancel_task(task))
                .collect();
            if untold.is_empty() {
                return;
            }
            let mut state = self.state();
            untold.into_iter().for_each(|task| state.owed.add(task));
            // There may be another connection meanwhile, whose beginning found nothing owed.
            let current = state.connection.as_ref().map(|current| &current.link);
            if current.is_none_or(|current| Arc::ptr_eq(current, &link)) {
                return;
            }
        }
    }
}

// === impl Owed ===

impl Owed {
    fn add(&mut self, task: String) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(task);
    }
}
