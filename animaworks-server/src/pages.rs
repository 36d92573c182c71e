//! The pages that are part of this program: plain HTML, CSS and JavaScript, with no build step.
//!
//! `shared/` is what every page begins with (colours, layout, text that cannot become markup);
//! each page has a directory of its own. Pages hold no sentences: they ask for the words of their language.

/// A file of a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asset {
    pub(crate) path: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) body: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// The page of the memory pack.
pub(crate) const PACK: &[Asset] = &[
    Asset { path: "/", kind: HTML, body: include_str!("pages/pack/index.html") },
    Asset { path: "/pack.css", kind: CSS, body: include_str!("pages/pack/pack.css") },
    Asset { path: "/pack.js", kind: JS, body: include_str!("pages/pack/pack.js") },
    Asset { path: "/shared/base.css", kind: CSS, body: include_str!("pages/shared/base.css") },
    Asset { path: "/shared/dom.js", kind: JS, body: include_str!("pages/shared/dom.js") },
];

/// What a page may do: load its own files and talk to the server it came from, nothing else.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                                 connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
