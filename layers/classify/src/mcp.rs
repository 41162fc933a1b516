//! What the errors and results of `rmcp` mean.
