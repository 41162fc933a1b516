//! A circuit breaker for tower services with generations and leased probes.
