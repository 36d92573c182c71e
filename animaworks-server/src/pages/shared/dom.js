// What every page is built with. Text only ever becomes text: nothing here, and nothing in a page, reads markup.

/** An element with properties, event handlers (`onclick`) and children; strings become text nodes. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Puts children in the place of all others. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat().filter(Boolean));
}

let words = {};

/** The sentence of a key, with its `{placeholders}` filled; the key itself when there is none. */
export function say(key, fields = {}) {
  const text = words[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in fields ? String(fields[name]) : whole));
}

/** Loads the words of a language and fills every element that names one. */
export async function speak(lang) {
  const answer = await ask("/api/words", { lang });
  words = answer.words;
  document.documentElement.lang = answer.lang;
  for (const node of document.querySelectorAll("[data-say]")) node.textContent = say(node.dataset.say);
  for (const node of document.querySelectorAll("[data-hint]")) {
    node.setAttribute("aria-label", say(node.dataset.hint));
    if (node.tagName === "INPUT") node.setAttribute("placeholder", say(node.dataset.hint));
  }
  return answer.lang;
}

async function read(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body?.error?.message ?? `${response.status}`);
  return body;
}

/** Looks at something. */
export async function ask(path, params = {}) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== undefined && value !== null));
  return read(await fetch(`${path}?${query}`, { headers: { accept: "application/json" } }));
}

/** Does one of the few things that can be done. */
export async function act(path, body) {
  const token = document.querySelector("meta[name=token]").content;
  const headers = { "content-type": "application/json", "x-pack-token": token };
  return read(await fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** A text with the words of a question marked. */
export function marked(text, question) {
  const wanted = question.split(/\s+/).filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!wanted.length) return [text];
  return text.split(new RegExp(`(${wanted.join("|")})`, "gi")).map((part, at) => (at % 2 ? el("mark", {}, part) : part));
}

/** A line with what stands between back quotes as code. */
function inline(text, question) {
  return text.split("`").flatMap((part, at) => (at % 2 ? [el("code", {}, part)] : marked(part, question)));
}

/** Markdown as far as a memory uses it: headings, lists, code, paragraphs. */
export function prose(text, question = "") {
  const out = [];
  let list = null;
  let code = null;
  let paragraph = [];
  const close = () => {
    if (paragraph.length) out.push(el("p", {}, inline(paragraph.join("\n"), question)));
    paragraph = [];
    list = null;
  };
  for (const line of text.split("\n")) {
    if (/^\s*(```|~~~)/.test(line)) {
      if (code === null) { close(); code = []; } else { out.push(el("pre", {}, code.join("\n"))); code = null; }
      continue;
    }
    if (code !== null) { code.push(line); continue; }
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    const item = /^\s*[-*]\s+(.*)$/.exec(line);
    if (heading) { close(); out.push(el(heading[1].length < 3 ? "h2" : "h3", {}, marked(heading[2], question))); }
    else if (item) {
      if (!list) { close(); list = el("ul"); out.push(list); }
      list.append(el("li", {}, inline(item[1], question)));
    } else if (!line.trim()) close();
    else { list = null; paragraph.push(line); }
  }
  if (code !== null) out.push(el("pre", {}, code.join("\n")));
  close();
  return out;
}

/** A moment as people of a language write it. */
export function moment(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return "";
  return date.toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
}

/** A size as people read it. */
export function size(bytes) {
  if (bytes < 1e6) return `${Math.max(1, Math.round(bytes / 1e3))} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

/** What a person chose, kept by the browser. */
export const kept = {
  read: (name) => { try { return localStorage.getItem(name); } catch { return null; } },
  write: (name, value) => { try { localStorage.setItem(name, value); } catch { /* a private window keeps nothing */ } },
};
