//! The composition of an organisation, and the routes over it.

mod app;

pub use app::{ApiError, App};
