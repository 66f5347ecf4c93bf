//! The words of Ringfence.
