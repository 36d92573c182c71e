//! Text made comparable: folding, search terms, dates.

pub(crate) mod dates;
pub(crate) mod normalize;
pub(crate) mod subject;
pub(crate) mod terms;
