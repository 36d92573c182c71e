//! The smaller seams: what the life needs of the world, each with more than one implementation in sight.
//!
//! Where there is one implementation there is no trait: the files of an Anima are the contract.

mod allowance;
mod host;
mod human;
mod post;
mod sandbox;
mod tasks;
mod transport;

pub use allowance::{Allowance, Refused};
pub use host::Host;
pub use human::{Answer, ChannelReceipt, HumanLine, Notice, Priority, Question};
pub use post::{BoardPost, Claim, PostError, PostOffice, Settled};
pub use sandbox::{Enforced, Sandbox, SandboxError, SandboxPolicy, Unconfined};
pub use tasks::{TaskBook, TaskEvent, TaskUpdate};
pub use transport::{Body, HttpTransport, TransportError};
