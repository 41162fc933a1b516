//! Fallback for tower services: the last good answer, a default, and where each answer came from.
