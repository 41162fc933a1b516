//! What a call that was let through has to show when it ends.

/// What a call that was let through has to show when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    generation: u32,
    /// The lease of a probe, 0 for any other call. No two probes of one generation that are
    /// out have the same.
    lease: u32,
}

/// The bits of a generation.
pub(crate) const GENERATION: u32 = (1 << 20) - 1;

// === impl Pass ===

impl Pass {
    /// The `lease` has 30 bits.
    pub(crate) const fn new(generation: u32, lease: u64) -> Self {
        Self {
            generation,
            lease: lease as u32,
        }
    }

    pub(crate) const fn generation(self) -> u32 {
        self.generation
    }

    pub(crate) const fn is_probe(self) -> bool {
        self.lease != 0
    }

    /// Whether this was let through after `generation` began; `None`: in it.
    pub(crate) const fn is_newer_than(self, generation: u32) -> Option<bool> {
        match self.generation.wrapping_sub(generation) & GENERATION {
            0 => None,
            // Generations start again at zero: newer is what is less than half way ahead.
            ahead => Some(ahead <= GENERATION / 2),
        }
    }

    /// The lease in the word once this probe has left.
    pub(crate) const fn give_back(self, lease: u64) -> u64 {
        if self.lease as u64 == lease { 0 } else { lease }
    }
}
