//! `github`: issues and pull requests of a repository over the REST API.

use animaworks_core::{ToolContext, ToolError, ToolOutput, Trust, TypedTool, config::Secret, tool::Effect};
use http::{Method, Request};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Outside, Service,
    line::{address, with_body},
    not_configured, untrusted,
};

const GITHUB: Service = Service { name: "github", variable: "GITHUB_TOKEN" };
const API: &str = "https://api.github.com";
const USUAL: usize = 20;
const MOST: usize = 100;

/// Which of them.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum State {
    #[default]
    Open,
    Closed,
    All,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::All => "all",
        }
    }
}

/// What the lists take.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListArgs {
    repo: String,
    #[serde(default)]
    state: State,
    #[serde(default)]
    limit: Option<usize>,
}

/// What `github_issue` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct IssueArgs {
    repo: String,
    number: u64,
}

/// What `github_create_issue` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CreateIssueArgs {
    repo: String,
    title: String,
    body: String,
    #[serde(default)]
    labels: Vec<String>,
}

/// What `github_create_pr` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CreatePullArgs {
    repo: String,
    title: String,
    body: String,
    head: String,
    #[serde(default = "main_branch")]
    base: String,
    #[serde(default)]
    draft: bool,
}

fn main_branch() -> String {
    "main".to_owned()
}

#[derive(Debug)]
pub(super) struct Issues(pub(super) Outside);

#[derive(Debug)]
pub(super) struct Issue(pub(super) Outside);

#[derive(Debug)]
pub(super) struct CreateIssue(pub(super) Outside);

#[derive(Debug)]
pub(super) struct Pulls(pub(super) Outside);

#[derive(Debug)]
pub(super) struct CreatePull(pub(super) Outside);

impl TypedTool for Issues {
    const NAME: &'static str = "github_issues";
    const EFFECT: Effect = Effect::External;
    const RETURNS: Trust = Trust::Untrusted;
    type Args = ListArgs;

    async fn run(&self, args: ListArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let found = list(&self.0, Self::NAME, "issues", &args, cx).await?;
        // the API counts pull requests among the issues
        let issues: Vec<Value> = found.into_iter().filter(|issue| issue["pull_request"].is_null()).collect();
        Ok(lines(issues, issue_line))
    }
}

impl TypedTool for Pulls {
    const NAME: &'static str = "github_prs";
    const EFFECT: Effect = Effect::External;
    const RETURNS: Trust = Trust::Untrusted;
    type Args = ListArgs;

    async fn run(&self, args: ListArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let found = list(&self.0, Self::NAME, "pulls", &args, cx).await?;
        Ok(lines(found, |pull| {
            let draft = if pull["draft"] == true { " draft" } else { "" };
            format!("{} [{} → {}{draft}]", issue_line(pull), text(&pull["head"]["ref"]), text(&pull["base"]["ref"]))
        }))
    }
}

impl TypedTool for Issue {
    const NAME: &'static str = "github_issue";
    const EFFECT: Effect = Effect::External;
    const RETURNS: Trust = Trust::Untrusted;
    type Args = IssueArgs;

    async fn run(&self, args: IssueArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = format!("issues/{}", args.number);
        let repository = Repository::open(&self.0, Self::NAME, &args.repo, cx).await?;
        let issue: Value = repository.get(&path).await?;
        let comments: Vec<Value> = repository.get(&format!("{path}/comments")).await?;
        let mut said = format!("{}\n\n{}", issue_line(&issue), text(&issue["body"]));
        for comment in &comments {
            let (who, when) = (text(&comment["user"]["login"]), text(&comment["created_at"]));
            said.push_str(&format!("\n\n--- {who} {when}\n{}", text(&comment["body"])));
        }
        Ok(untrusted(said).with_data(json!({ "issue": issue, "comments": comments })))
    }
}

impl TypedTool for CreateIssue {
    const NAME: &'static str = "github_create_issue";
    const EFFECT: Effect = Effect::External;
    const RETURNS: Trust = Trust::Untrusted;
    type Args = CreateIssueArgs;

    async fn run(&self, args: CreateIssueArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let body = json!({ "title": args.title, "body": args.body, "labels": args.labels });
        let repository = Repository::open(&self.0, Self::NAME, &args.repo, cx).await?;
        Ok(created(repository.post("issues", &body).await?))
    }
}

impl TypedTool for CreatePull {
    const NAME: &'static str = "github_create_pr";
    const EFFECT: Effect = Effect::External;
    const RETURNS: Trust = Trust::Untrusted;
    type Args = CreatePullArgs;

    async fn run(&self, args: CreatePullArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let body = json!({
            "title": args.title, "body": args.body, "head": args.head, "base": args.base, "draft": args.draft,
        });
        let repository = Repository::open(&self.0, Self::NAME, &args.repo, cx).await?;
        Ok(created(repository.post("pulls", &body).await?))
    }
}

async fn list(
    outside: &Outside,
    tool: &'static str,
    what: &str,
    args: &ListArgs,
    cx: &ToolContext,
) -> Result<Vec<Value>, ToolError> {
    let limit = args.limit.unwrap_or(USUAL).clamp(1, MOST);
    let path = format!("{what}?state={}&per_page={limit}", args.state.as_str());
    Repository::open(outside, tool, &args.repo, cx).await?.get(&path).await
}

/// A repository and the key it is asked with.
struct Repository<'a> {
    outside: &'a Outside,
    url: String,
    key: Secret,
    cx: &'a ToolContext,
}

impl<'a> Repository<'a> {
    async fn open(
        outside: &'a Outside,
        tool: &'static str,
        repo: &str,
        cx: &'a ToolContext,
    ) -> Result<Self, ToolError> {
        let part = |part: &str| {
            let plain = part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
            plain && !part.is_empty() && !part.starts_with('.')
        };
        if !repo.split_once('/').is_some_and(|(owner, name)| part(owner) && part(name)) {
            return Err(crate::fault::invalid(tool, format!("repo: {repo} is not owner/name")));
        }
        let (known, key) = outside.configured(GITHUB, &cx.anima).await?;
        let key = key.ok_or_else(|| not_configured(GITHUB, cx.locale))?.secret;
        let base = known.base_url.unwrap_or_else(|| API.to_owned());
        Ok(Self { outside, url: address(&base, &format!("repos/{repo}"))?.into(), key, cx })
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ToolError> {
        self.ask(Method::GET, path, None).await
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, ToolError> {
        self.ask(Method::POST, path, Some(body)).await
    }

    async fn ask<T: DeserializeOwned>(&self, method: Method, path: &str, body: Option<&Value>) -> Result<T, ToolError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}/{path}", self.url))
            .header("accept", "application/vnd.github+json")
            .header("x-github-api-version", "2022-11-28")
            .header("authorization", format!("Bearer {}", self.key.expose()));
        self.outside.line(GITHUB).json(with_body(request, body)?, self.cx).await
    }
}

fn lines(found: Vec<Value>, line: impl Fn(&Value) -> String) -> ToolOutput {
    let text = found.iter().map(line).collect::<Vec<_>>().join("\n");
    untrusted(text).with_data(Value::from(found))
}

/// `#12 open  Title  (labels) by who, day`.
fn issue_line(issue: &Value) -> String {
    let labels: Vec<&str> =
        issue["labels"].as_array().into_iter().flatten().map(|label| text(&label["name"])).collect();
    let labels = if labels.is_empty() { String::new() } else { format!(" ({})", labels.join(", ")) };
    let (state, title) = (text(&issue["state"]), text(&issue["title"]));
    let (who, when) = (text(&issue["user"]["login"]), text(&issue["created_at"]));
    format!("#{} {state} {title}{labels} {who} {when}", issue["number"])
}

fn created(made: Value) -> ToolOutput {
    untrusted(format!("#{} {}", made["number"], text(&made["html_url"]))).with_data(made)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
