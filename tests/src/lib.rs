//! The test kit: what stands at the very bottom of every test.
