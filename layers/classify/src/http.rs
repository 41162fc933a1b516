//! What HTTP requests and responses mean.
