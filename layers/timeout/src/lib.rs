//! Connect, read, attempt and total time limits for tower services.
