//! `web_search`: a search engine of the owner's choice, Brave by key or a SearXNG of one's own.

use animaworks_core::{ToolContext, ToolError, ToolOutput, Trust, TypedTool, t, tool::Effect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Outside, Service,
    line::{address, finish, get},
    not_configured, untrusted,
    web_fetch::plain,
};

const BRAVE: Service = Service { name: "brave", variable: "BRAVE_API_KEY" };
const SEARXNG: Service = Service { name: "searxng", variable: "SEARXNG_API_KEY" };
const BRAVE_URL: &str = "https://api.search.brave.com";
/// Results without a wish.
const USUAL: usize = 10;
/// The most that Brave gives at once.
const MOST: usize = 20;

/// How old a page may be.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum Freshness {
    Day,
    Week,
    Month,
    Year,
}

/// What `web_search` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    query: String,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    freshness: Option<Freshness>,
}

#[derive(Debug)]
pub(super) struct WebSearch(pub(super) Outside);

/// A page that was found.
#[derive(Debug, Serialize, Deserialize)]
struct Found {
    #[serde(default)]
    title: String,
    url: String,
    #[serde(default, alias = "content")]
    description: String,
    #[serde(default, alias = "publishedDate")]
    age: Option<String>,
}

#[derive(Deserialize)]
struct Brave {
    web: Option<BraveWeb>,
}

#[derive(Deserialize)]
struct BraveWeb {
    #[serde(default)]
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct SearXng {
    results: Vec<Found>,
}

impl TypedTool for WebSearch {
    const NAME: &'static str = "web_search";
    const EFFECT: Effect = Effect::External;
    const RETURNS: Trust = Trust::Untrusted;
    type Args = Args;

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let limit = args.limit.unwrap_or(USUAL).clamp(1, MOST);
        let (own, _) = self.0.configured(SEARXNG, &cx.anima).await?;
        let mut found = match own.base_url {
            Some(base) => self.searxng(&base, &args, cx).await?,
            None => self.brave(&args, limit, cx).await?,
        };
        found.truncate(limit);
        for page in &mut found {
            page.title = plain(&page.title);
            page.description = plain(&page.description);
        }
        let lines = found.iter().enumerate().map(|(at, page)| {
            let age = page.age.as_ref().map(|age| format!(" ({age})")).unwrap_or_default();
            format!("{}. {}{age}\n   {}\n   {}", at + 1, page.title, page.url, page.description)
        });
        let text = if found.is_empty() {
            t!(cx.locale, "tools.web_search.nothing")
        } else {
            lines.collect::<Vec<_>>().join("\n")
        };
        Ok(untrusted(text).with_data(json!({ "results": found })))
    }
}

impl WebSearch {
    async fn brave(&self, args: &Args, limit: usize, cx: &ToolContext) -> Result<Vec<Found>, ToolError> {
        let (known, key) = self.0.configured(BRAVE, &cx.anima).await?;
        let key = key.ok_or_else(|| not_configured(BRAVE, cx.locale))?;
        let mut url = address(&known.base_url.unwrap_or_else(|| BRAVE_URL.to_owned()), "res/v1/web/search")?;
        url.query_pairs_mut()
            .append_pair("q", &args.query)
            .append_pair("count", &limit.to_string())
            .append_pair("text_decorations", "false");
        if let Some(language) = &args.language {
            // its own word for Japanese
            let language = if language == "ja" { "jp" } else { language.as_str() };
            url.query_pairs_mut().append_pair("search_lang", language);
        }
        if let Some(freshness) = args.freshness {
            let code = match freshness {
                Freshness::Day => "pd",
                Freshness::Week => "pw",
                Freshness::Month => "pm",
                Freshness::Year => "py",
            };
            url.query_pairs_mut().append_pair("freshness", code);
        }
        let request = get(&url)?.header("x-subscription-token", key.secret.expose());
        let answer: Brave = self.0.line(BRAVE).json(finish(request)?, cx).await?;
        Ok(answer.web.map(|web| web.results).unwrap_or_default())
    }

    async fn searxng(&self, base: &str, args: &Args, cx: &ToolContext) -> Result<Vec<Found>, ToolError> {
        let mut url = address(base, "search")?;
        url.query_pairs_mut().append_pair("q", &args.query).append_pair("format", "json");
        if let Some(language) = &args.language {
            url.query_pairs_mut().append_pair("language", language);
        }
        if let Some(freshness) = args.freshness {
            let range = match freshness {
                Freshness::Day => "day",
                Freshness::Week => "week",
                Freshness::Month => "month",
                Freshness::Year => "year",
            };
            url.query_pairs_mut().append_pair("time_range", range);
        }
        let answer: SearXng = self.0.line(SEARXNG).json(finish(get(&url)?)?, cx).await?;
        Ok(answer.results)
    }
}
