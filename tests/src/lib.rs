//! The test kit: what stands at the very bottom of every test.

pub mod gated_sse;
pub mod llm_server;
pub mod program;
pub mod vendor;
