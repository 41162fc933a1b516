//! The tasks of a wire, and their end.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::{AbortHandle, JoinHandle},
    time,
};

use super::{Ended, Wire};

/// The two tasks of a wire; dropping it ends them, and with them the connection.
#[derive(Debug)]
pub(crate) struct WireTasks {
    wire: Arc<Wire>,
    reader: AbortHandle,
    writer: JoinHandle<()>,
    flush: Duration,
}

// === impl WireTasks ===

impl WireTasks {
    /// `writer` ends once the wire is closed and its outbox is empty; it gets `flush` for
    /// that.
    pub(super) fn new(
        wire: &Arc<Wire>,
        reader: &JoinHandle<()>,
        writer: JoinHandle<()>,
        flush: Duration,
    ) -> Self {
        Self {
            wire: Arc::clone(wire),
            reader: reader.abort_handle(),
            writer,
            flush,
        }
    }

    /// Closes the server's input, after what is queued, and at the latest after a bound.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, it closes at once.
    pub(crate) async fn close_input(&mut self) {
        self.wire.end(Ended::Closed);
        // A stuck pipe takes nothing more, however long one waits.
        let _ = time::timeout(self.flush, &mut self.writer).await;
        self.writer.abort();
    }
}

impl Drop for WireTasks {
    fn drop(&mut self) {
        self.wire.end(Ended::Closed);
        self.writer.abort();
        self.reader.abort();
    }
}
