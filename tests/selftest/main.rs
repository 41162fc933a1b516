//! The probe's own behaviour.
