//! The jail from outside: one binary for every integration test.
