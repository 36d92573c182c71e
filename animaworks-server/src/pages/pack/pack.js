// The dashboard of the memory pack: looks, and makes three moves that can be taken back.
import { act, ask, el, fill, kept, marked, moment, prose, say, size, speak } from "/shared/dom.js";

const view = document.getElementById("view");
const search = document.getElementById("search");
const q = document.getElementById("q");
const project = document.getElementById("project");
const TABS = { memory, sessions, archive, agents, tasks };
const SEARCHED = ["memory", "sessions"];

let lang = kept.read("lang") ?? document.documentElement.lang;
let tab = "memory";
/** Answers to a question that was asked before another one are not shown. */
let turn = 0;

function go(params) {
  const hash = new URLSearchParams(Object.entries(params).filter(([, value]) => value));
  if (location.hash.slice(1) === String(hash)) show(); else location.hash = String(hash);
}

async function show() {
  const at = new URLSearchParams(location.hash.slice(1));
  tab = at.get("tab") in TABS ? at.get("tab") : "memory";
  q.value = at.get("q") ?? "";
  search.hidden = !SEARCHED.includes(tab) || at.has("id") || at.has("source");
  project.hidden = tab !== "sessions" || at.has("q");
  fill(document.getElementById("tabs"), Object.keys(TABS).map((name) =>
    el("button", { role: "tab", "aria-selected": String(name === tab), onclick: () => go({ tab: name }) }, say(`tab.${name}`))));
  const mine = ++turn;
  const put = (...nodes) => { if (mine === turn) fill(view, ...nodes); };
  put(el("p", { class: "empty" }, say("loading")));
  try {
    await TABS[tab](at, put);
  } catch (error) {
    put(el("p", { class: "card error" }, error.message));
  }
}

const nothing = (key) => el("p", { class: "empty" }, say(key));
const back = () => el("button", { onclick: () => history.back() }, `← ${say("back")}`);

// --- memory -----------------------------------------------------------------------------------------------------

async function memory(at, put) {
  const question = at.get("q");
  if (at.has("source")) return file(at, put);
  if (!question) {
    const { dirs } = await ask("/api/memory");
    if (!dirs.some((dir) => dir.files.length)) return put(nothing("memory_empty"));
    return put(dirs.filter((dir) => dir.files.length).map((dir) => el("div", { class: "card" },
      el("h2", {}, dir.path), el("span", { class: "soft" }, say("files", { count: dir.files.length })),
      el("ul", { class: "files" }, dir.files.map((source) => el("li", {},
        el("button", { onclick: () => go({ tab, dir: String(dir.dir), source }) }, source)))))));
  }
  const { hits } = await ask("/api/memory-search", { q: question });
  if (!hits.length) return put(nothing("found_nothing"));
  put(hits.map((hit) => {
    const body = hit.content.split("\n").filter((line) => line.replace(/^#+\s*/, "") !== hit.heading).join("\n").trim();
    return el("article", { class: "card hit" },
      el("div", { class: "row" }, el("h3", { class: "grow" }, marked(hit.heading || hit.source, question)),
        hit.date && el("span", { class: "tag" }, hit.date)),
      el("div", { class: "row" }, el("span", { class: "soft grow" }, `${hit.source}:${hit.line}`),
        el("button", { onclick: () => go({ tab, dir: String(hit.dir), source: hit.source, q: question }) }, say("open"))),
      el("div", { class: "body" }, prose(body, question)));
  }));
}

async function file(at, put) {
  const page = await ask("/api/memory-file", { dir: at.get("dir") ?? 0, source: at.get("source") });
  put(el("p", {}, back()), el("article", { class: "card" }, el("p", { class: "soft" }, page.path), prose(page.text, at.get("q") ?? "")));
}

// --- sessions ---------------------------------------------------------------------------------------------------

function actions(row, archived) {
  const key = { project: row.project, id: row.sessionId };
  const button = (word, path, more = {}, off = false) => el("button", {
    disabled: off,
    onclick: async (event) => {
      event.stopPropagation();
      try { await act(path, { ...key, ...more }); await show(); } catch (error) { alert(error.message); }
    },
  }, say(word));
  if (archived) return [button("restore", "/api/restore-session")];
  return [
    row.pinned ? button("unpin", "/api/pin-session", { pinned: false }) : button("pin", "/api/pin-session", { pinned: true }),
    button("archive", "/api/archive-session", {}, row.live),
  ];
}

function card(row, archived, extra = {}) {
  const open = () => go({ tab, project: row.project, id: row.sessionId, offset: extra.offset ? String(extra.offset) : "", q: extra.question });
  return el("article", { class: "card session", onclick: open },
    el("div", { class: "row" },
      el("h3", { class: "grow clip" }, row.title || say("untitled")),
      row.pinned && el("span", { class: "tag" }, say("pinned")),
      row.live && el("span", { class: "tag warn" }, say("live"))),
    extra.snippet
      ? el("p", { class: "clip" }, marked(extra.snippet, extra.question))
      : row.first !== row.title && el("p", { class: "soft clip" }, row.first),
    el("div", { class: "row" },
      el("span", { class: "soft grow" }, `${moment(row.modifiedAt)} · ${size(row.sizeBytes)} · ${row.cwd || row.project}`),
      el("span", { class: "row actions" }, el("button", { onclick: open }, say("open")), actions(row, archived))));
}

function projects(counts, chosen) {
  fill(project, el("option", { value: "" }, say("all_projects")),
    counts.map(([name, count]) => el("option", { value: name, selected: name === chosen }, `${name} (${count})`)));
}

async function listed(at, put, archived) {
  const chosen = at.get("project") ?? "";
  const rows = [];
  const more = async () => {
    const page = await ask(archived ? "/api/archive" : "/api/sessions", { project: chosen, offset: rows.length });
    rows.push(...page.sessions);
    if (!archived) projects(page.projects, chosen);
    if (!rows.length) return put(nothing(archived ? "archive_empty" : "sessions_empty"));
    put(el("p", { class: "soft" }, say("shown", { count: rows.length, total: page.total })), rows.map((row) => card(row, archived)),
      rows.length < page.total && el("p", { class: "empty" }, el("button", { onclick: more }, say("more"))));
  };
  await more();
}

async function sessions(at, put) {
  if (at.has("id")) return transcript(at, put, false);
  const question = at.get("q");
  if (!question) return listed(at, put, false);
  const hits = [];
  let from = 0;
  const more = async () => {
    const page = await ask("/api/session-search", { q: question, offset: from });
    hits.push(...page.hits);
    from = page.searched;
    const rest = from < page.total;
    put(el("p", { class: "soft" }, say("searched", { searched: from, total: page.total, count: hits.length })),
      hits.map((hit) => card(hit, false, { snippet: hit.snippet, offset: hit.offset, question })),
      !hits.length && !rest && nothing("found_nothing"),
      rest && el("p", { class: "empty" }, el("button", { onclick: more }, say("search_on"))));
  };
  await more();
}

async function archive(at, put) {
  if (at.has("id")) return transcript(at, put, true);
  await listed(at, put, true);
}

async function transcript(at, put, archived) {
  const key = { project: at.get("project"), id: at.get("id"), archived };
  const question = at.get("q") ?? "";
  const said = [];
  let damaged = 0;
  let next = Number(at.get("offset") ?? 0);
  const begun = next;
  const more = async () => {
    const page = await ask("/api/session", { ...key, offset: next });
    next = page.next;
    damaged += page.damaged;
    said.push(...page.said.map((one) => entry(one, question)));
    put(el("p", { class: "row" }, back(), el("span", { class: "soft grow" }, key.id),
        begun > 0 && el("button", { onclick: () => go({ tab, project: key.project, id: key.id, q: question }) }, say("from_start"))),
      damaged > 0 && el("p", { class: "soft" }, say("damaged", { count: damaged })),
      said, next !== null && el("p", { class: "empty" }, el("button", { onclick: more }, say("more"))));
  };
  await more();
}

function entry(one, question) {
  return el("section", { class: `said ${one.role === "user" ? "user" : ""}` },
    el("div", { class: "soft" }, `${say(`role.${one.role}`)} ${moment(one.at)}`),
    one.text && el("div", { class: "text" }, marked(one.text, question)),
    one.calls.map((call) => el("details", {}, el("summary", {}, call.name || say("answer")), el("pre", {}, call.text))));
}

// --- agents and tasks -------------------------------------------------------------------------------------------

async function agents(at, put) {
  const [{ agents: panes, session }, config] = await Promise.all([ask("/api/agents"), ask("/api/config")]);
  const start = config.startCommand && el("div", { class: "card" },
    el("h2", {}, say("start_command")), el("p", { class: "soft" }, say("start_command_note")), el("pre", {}, config.startCommand));
  if (!panes.length) return put(start, nothing(session ? "agents_empty" : "agents_unset"));
  put(start, el("div", { class: "grid" }, panes.map((pane) => el("article", { class: "card" },
    el("div", { class: "row" }, el("h3", { class: "grow" }, pane.title || pane.window), el("span", { class: "tag" }, pane.command)),
    el("p", { class: "soft" }, `${session} · ${pane.window} ${pane.id}`),
    el("pre", { class: "screen" }, pane.screen)))),
    el("p", { class: "empty" }, el("button", { onclick: show }, say("again"))));
}

async function tasks(at, put) {
  const { tasks: all, without } = await ask("/api/tasks");
  if (!all.length) return put(nothing("tasks_empty"));
  put(all.map((task) => el("article", { class: `card task ${task.status}` },
    el("div", { class: "row" }, el("h3", { class: "grow" }, task.title),
      el("span", { class: task.status === "blocked" ? "tag warn" : "tag" }, say(`status.${task.status}`))),
    el("p", { class: "soft" }, [task.assigned_to, task.priority !== "low" && say(`priority.${task.priority}`), task.updated || task.created,
      task.deliverable, task.blocked_by.length && say("waits_for", { what: task.blocked_by.join(", ") }),
      `${task.file}:${task.line}`].filter(Boolean).join(" · ")))),
  without.length > 0 && el("p", { class: "soft" }, say("without_tasks", { count: without.length })));
}

// --- the frame --------------------------------------------------------------------------------------------------

function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
}

document.getElementById("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  theme(next);
  kept.write("theme", next);
});
const toggle = document.getElementById("lang");
async function talk(wanted) {
  lang = await speak(wanted);
  toggle.textContent = lang === "ja" ? "English" : "日本語";
}
toggle.addEventListener("click", async () => {
  await talk(lang === "ja" ? "en" : "ja");
  kept.write("lang", lang);
  await show();
});
search.addEventListener("submit", (event) => {
  event.preventDefault();
  go({ tab, q: q.value.trim(), project: project.hidden ? "" : project.value });
});
project.addEventListener("change", () => go({ tab, project: project.value }));
addEventListener("hashchange", show);

theme(kept.read("theme"));
await talk(lang);
const config = await ask("/api/config");
document.getElementById("team").textContent = config.teamName ?? "";
document.title = config.teamName ? `${say("title")} · ${config.teamName}` : say("title");
await show();
