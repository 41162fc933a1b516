//! Retries that are safe: exponential backoff with jitter, a cap, a budget and a guard against repeating what may have run.
