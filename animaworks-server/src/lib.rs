//! The composition of an organisation, and the routes over it.
//!
//! [`InProcess`] opens a data directory and gives its Animas; [`App`] puts routes over them;
//! [`demo`] makes the sample organisation; [`Dashboard`] is the page of the memory pack.

mod app;
mod compose;
mod dashboard;
pub mod demo;
mod pages;

pub use app::{ApiError, App};
pub use compose::{Hands, InProcess, Resident, Visit, now};
pub use dashboard::Dashboard;
