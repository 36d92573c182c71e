//! `web_fetch`: a page of the public internet as Markdown.
//!
//! Addresses come from models and from other pages, so only public ones are reached, and every redirect is a new
//! request that is looked at like the first (exec spec §4.5).

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use animaworks_core::{ToolContext, ToolError, ToolOutput, Trust, TypedTool, t, tool::Effect};
use encoding_rs::Encoding;
use http::{
    HeaderMap,
    header::{CONTENT_TYPE, LOCATION},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::{
    Outside, Service,
    line::{finish, get},
    untrusted,
};

const WEB: Service = Service { name: "web", variable: "" };
const MOST_REDIRECTS: usize = 5;
/// Characters of a page that are shown at once.
const AT_ONCE: usize = 8000;
/// How long a page is believed.
const FRESH: Duration = Duration::from_secs(900);
/// Pages that are kept.
const KEPT: usize = 256;
/// What nobody reads of a page.
const UNREAD: [&str; 9] = ["script", "style", "noscript", "template", "iframe", "svg", "canvas", "head", "form"];

/// What `web_fetch` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    url: String,
    #[serde(default)]
    offset: usize,
}

/// A page as it is shown.
#[derive(Debug)]
struct Page {
    /// Where it was in the end.
    url: Url,
    title: String,
    text: String,
    /// Whether it was too long to be read to its end.
    cut: bool,
}

/// The pages of the last quarter of an hour.
#[derive(Debug, Default)]
pub(super) struct Pages(Mutex<VecDeque<(Duration, String, Arc<Page>)>>);

impl Pages {
    fn find(&self, url: &str, now: Duration) -> Option<Arc<Page>> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|(at, _, _)| now.saturating_sub(*at) < FRESH);
        pages.iter().find(|(_, known, _)| known == url).map(|(_, _, page)| page.clone())
    }

    fn keep(&self, url: &str, now: Duration, page: Arc<Page>) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.len() == KEPT {
            pages.pop_front();
        }
        pages.push_back((now, url.to_owned(), page));
    }
}

#[derive(Debug)]
pub(super) struct WebFetch {
    pub(super) outside: Outside,
    pub(super) pages: Arc<Pages>,
}

impl TypedTool for WebFetch {
    const NAME: &'static str = "web_fetch";
    const EFFECT: Effect = Effect::External;
    const RETURNS: Trust = Trust::Untrusted;
    type Args = Args;

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let url = wanted(&args.url).map_err(|problem| crate::fault::invalid(Self::NAME, format!("url: {problem}")))?;
        let now = self.outside.clock.elapsed();
        let page = match self.pages.find(url.as_str(), now) {
            Some(page) => page,
            None => {
                let page = Arc::new(self.fetch(url.clone(), cx).await?);
                self.pages.keep(url.as_str(), now, page.clone());
                page
            }
        };
        let total = page.text.chars().count();
        let mut text = format!("# {}\n{}\n\n", page.title, page.url);
        text.extend(page.text.chars().skip(args.offset).take(AT_ONCE));
        let next = args.offset.saturating_add(AT_ONCE);
        if next < total {
            text.push_str("\n\n");
            text.push_str(&t!(cx.locale, "tools.web_fetch.more", next = next, total = total));
        } else if page.cut {
            text.push_str("\n\n");
            text.push_str(&t!(cx.locale, "tools.web_fetch.cut"));
        }
        Ok(untrusted(text).with_data(json!({ "url": page.url.as_str(), "title": page.title, "characters": total })))
    }
}

impl WebFetch {
    async fn fetch(&self, mut url: Url, cx: &ToolContext) -> Result<Page, ToolError> {
        let line = self.outside.public_line(WEB);
        for _ in 0..=MOST_REDIRECTS {
            let answer =
                line.ask(finish(get(&url)?.header("accept", "text/html, text/*;q=0.9, */*;q=0.1"))?, cx).await?;
            if !answer.status.is_redirection() {
                return read(url, &answer.headers, &answer.body, answer.cut)
                    .map_err(|kind| ToolError::failed("ApiError", t!(cx.locale, "tools.web_fetch.kind", kind = kind)));
            }
            let target = answer.headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let next = url.join(target).map_err(|error| error.to_string()).and_then(|next| wanted(next.as_str()));
            url = next.map_err(|problem| {
                ToolError::failed("ApiError", t!(cx.locale, "tools.web_fetch.redirect", problem = problem))
            })?;
        }
        let problem = t!(cx.locale, "tools.web_fetch.redirects", count = MOST_REDIRECTS);
        Err(ToolError::failed("ApiError", problem))
    }
}

/// The address that is fetched: over TLS, without user and fragment. The problem otherwise, in English as the
/// parser says it.
fn wanted(text: &str) -> Result<Url, String> {
    let text = text.trim();
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let mut url = Url::parse(&with_scheme).map_err(|error| error.to_string())?;
    if url.scheme() == "http" && url.port().is_none() && url.set_scheme("https").is_err() {
        return Err("an address that cannot be upgraded to https".to_owned());
    }
    if !matches!(url.scheme(), "https" | "http") || url.host_str().is_none() {
        return Err(format!("{} is not a web address", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address with a user or password in it".to_owned());
    }
    url.set_fragment(None);
    Ok(url)
}

/// A body as text; the kind of it where it is none.
fn read(url: Url, headers: &HeaderMap, body: &[u8], cut: bool) -> Result<Page, String> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("text/html").to_lowercase();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    let is_html = matches!(essence, "text/html" | "application/xhtml+xml");
    let is_text = is_html
        || essence.starts_with("text/")
        || essence.ends_with("json")
        || essence.ends_with("xml")
        || essence == "application/javascript";
    if !is_text {
        return Err(essence.to_owned());
    }
    let encoding = encoding(&kind, body);
    let (text, _, _) = encoding.decode(body);
    if !is_html {
        return Ok(Page { title: url.path().to_owned(), url, text: text.into_owned(), cut });
    }
    let title = between(&text, "<title", "</title>").map(|inner| plain(inner.split_once('>').map_or("", |(_, t)| t)));
    let converter = htmd::HtmlToMarkdown::builder().skip_tags(UNREAD.to_vec()).build();
    let text = converter.convert(&text).map_err(|error| format!("{essence} ({error})"))?;
    Ok(Page { title: title.unwrap_or_default(), url, text, cut })
}

/// The encoding that the header names, else the page itself, else UTF-8.
fn encoding(kind: &str, body: &[u8]) -> &'static Encoding {
    let label = |text: &str| {
        let (_, rest) = text.split_once("charset=")?;
        let name = rest.trim_start_matches(['"', '\'']);
        let end = name.find(['"', '\'', ';', '>', ' ', '/']).unwrap_or(name.len());
        Encoding::for_label(name.get(..end)?.as_bytes())
    };
    let start = String::from_utf8_lossy(body.get(..body.len().min(1024)).unwrap_or_default()).to_lowercase();
    label(kind).or_else(|| label(&start)).unwrap_or(encoding_rs::UTF_8)
}

/// What stands between two marks, whatever their case.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    // lower case of ASCII keeps every byte where it is
    let lower = text.to_ascii_lowercase();
    let start = lower.find(from)?;
    let end = lower.get(start..)?.find(to)?;
    text.get(start..start + end)
}

/// A line of HTML as plain text: no tags, entities as what they mean, one space between words.
pub(super) fn plain(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        match tag.split_once('>') {
            Some((name, after)) if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!') => {
                rest = after;
            }
            _ => {
                text.push('<');
                rest = tag;
            }
        }
    }
    text.push_str(rest);
    let named = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ];
    let text = named.iter().fold(text, |text, (entity, meaning)| text.replace(entity, meaning));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
