//! The composition of an organisation, and the routes over it.
