//! The composition of an organisation, and the routes over it.
//!
//! [`InProcess`] opens a data directory and gives its Animas; [`App`] puts routes over them;
//! [`demo`] makes the sample organisation.

mod app;
mod compose;
pub mod demo;

pub use app::{ApiError, App};
pub use compose::{Hands, InProcess, Resident, Visit, now};
