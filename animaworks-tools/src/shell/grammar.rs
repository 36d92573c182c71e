//! A script as the simple commands it would run, at any depth.
//!
//! Only the node kinds named here are understood; a script with any other, or with
//! an error, is refused as a whole.

use tree_sitter::{Node, Parser};

use crate::permission::{Reason, Refusal};

/// The longest script that is read, in bytes.
const MAX_BYTES: usize = 32 << 10;
/// How deep a script may be nested.
const MAX_DEPTH: usize = 60;

/// Every simple command of a script, in the order they are written.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) commands: Vec<Command>,
    pub(super) redirects: Vec<Redirect>,
    /// Whether it is one plain command: no pipe, list, expansion or redirection.
    pub(super) single: bool,
    /// Whether it computes with variables, whose text the shell would evaluate.
    pub(super) arithmetic: bool,
}

/// A simple command; without words it only assigns.
#[derive(Debug, Default, Clone)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    pub(super) assigned: Vec<String>,
    pub(super) input: Input,
}

/// Where a command reads from.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) enum Input {
    #[default]
    Inherited,
    /// Another command.
    Pipe,
    /// A text in the script.
    Here,
    /// A file.
    File,
}

/// A redirection to or from a file.
#[derive(Debug, Clone)]
pub(super) struct Redirect {
    pub(super) target: Word,
    pub(super) writes: bool,
}

/// A word after the shell's unquoting.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// What is known of it; up to the first unknown part when it is computed.
    pub(super) text: String,
    /// Whether a part of it is worked out while the script runs.
    pub(super) computed: bool,
    /// Whether it holds an unquoted `*`, `?` or `[`.
    pub(super) glob: bool,
    /// Whether it begins with an unquoted `~`.
    pub(super) tilde: bool,
    /// Whether it is unquoted `{a,b}`, which becomes several words.
    braces: bool,
    /// Whether any of it was quoted or escaped.
    quoted: bool,
}

impl Word {
    /// A word that is known.
    pub(super) fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// A word that is not.
    pub(super) fn unknown() -> Self {
        Self { computed: true, ..Self::default() }
    }

    /// The whole word, when nothing of it is left to the shell.
    pub(super) fn known(&self) -> Option<&str> {
        (!self.computed && !self.glob && !self.tilde).then_some(&self.text)
    }

    /// A word of which only the beginning is known.
    pub(super) fn begins(text: String) -> Self {
        Self { text, computed: true, ..Self::default() }
    }

    fn push(&mut self, other: Self) {
        if !self.computed {
            self.text.push_str(&other.text);
        }
        self.computed |= other.computed;
        self.glob |= other.glob;
        self.braces |= other.braces;
        self.quoted |= other.quoted;
    }
}

/// Reads a script.
pub(super) fn read(text: &str) -> Result<Script, Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::new(Reason::Empty, ""));
    }
    if text.len() > MAX_BYTES {
        return Err(Refusal::new(Reason::TooLong, text));
    }
    if let Some(hidden) = text.chars().find(|c| super::is_hidden(*c)) {
        return Err(Refusal::new(Reason::Hidden, hidden.escape_unicode().to_string()));
    }
    let unreadable = || Refusal::new(Reason::NotUnderstood, text);
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map_err(|error| {
        tracing::error!(%error, "the shell grammar does not fit the parser");
        unreadable()
    })?;
    let tree = parser.parse(text, None).ok_or_else(unreadable)?;
    let root = tree.root_node();
    if root.has_error() {
        return Err(unreadable());
    }
    let mut reader = Reader { source: text, script: Script::default() };
    reader.foreign_spaces(root)?;
    reader.statement(root, &Input::Inherited, 0)?;
    let mut script = reader.script;
    let plain = |word: &Word| word.known().is_some();
    script.single = match script.commands.as_slice() {
        [one] => script.redirects.is_empty() && one.assigned.is_empty() && one.words.iter().all(plain) && is_one(root),
        _ => false,
    };
    Ok(script)
}

/// Whether the program is one simple command and nothing else.
fn is_one(root: Node<'_>) -> bool {
    root.child_count() == 1 && root.child(0).is_some_and(|child| child.kind() == "command")
}

struct Reader<'a> {
    source: &'a str,
    script: Script,
}

impl<'a> Reader<'a> {
    fn text(&self, node: Node<'_>) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn refuse(&self, node: Node<'_>) -> Refusal {
        Refusal::new(Reason::NotUnderstood, self.text(node))
    }

    /// The grammar takes every Unicode space for one; the shell only knows blank and tab.
    fn foreign_spaces(&self, root: Node<'_>) -> Result<(), Refusal> {
        for (at, c) in self.source.char_indices().filter(|(_, c)| c.is_whitespace() && !c.is_ascii()) {
            let mut node = root.descendant_for_byte_range(at, at + c.len_utf8());
            let quoted = loop {
                match node {
                    None => break false,
                    Some(inner) if matches!(inner.kind(), "string" | "raw_string" | "heredoc_body" | "comment") => {
                        break true;
                    }
                    Some(inner) => node = inner.parent(),
                }
            };
            if !quoted {
                return Err(Refusal::new(Reason::Hidden, c.escape_unicode().to_string()));
            }
        }
        Ok(())
    }

    fn children(node: Node<'_>) -> Vec<Node<'_>> {
        let mut cursor = node.walk();
        node.named_children(&mut cursor).collect()
    }

    fn statement(&mut self, node: Node<'_>, input: &Input, depth: usize) -> Result<(), Refusal> {
        if depth > MAX_DEPTH {
            return Err(Refusal::new(Reason::TooLong, self.text(node)));
        }
        match node.kind() {
            "program" | "list" | "compound_statement" | "subshell" | "do_group" | "if_statement" | "elif_clause"
            | "else_clause" | "while_statement" | "negated_command" => {
                for child in Self::children(node) {
                    self.statement(child, input, depth + 1)?;
                }
                Ok(())
            }
            "pipeline" => {
                for (at, child) in Self::children(node).into_iter().enumerate() {
                    let input = if at == 0 { input } else { &Input::Pipe };
                    self.statement(child, input, depth + 1)?;
                }
                Ok(())
            }
            "comment" => Ok(()),
            "command" => self.command(node, input, depth),
            "redirected_statement" => self.redirected(node, input, depth),
            "for_statement" => self.for_loop(node, input, depth),
            "case_statement" => self.case(node, input, depth),
            "test_command" => self.inside(node, depth),
            "variable_assignment" => {
                let name = self.assignment(node, depth)?;
                self.script.commands.push(Command { assigned: vec![name], ..Command::default() });
                Ok(())
            }
            "variable_assignments" => {
                for child in Self::children(node) {
                    self.statement(child, input, depth + 1)?;
                }
                Ok(())
            }
            "declaration_command" | "unset_command" => self.declaration(node, depth),
            _ => Err(self.refuse(node)),
        }
    }

    fn command(&mut self, node: Node<'_>, input: &Input, depth: usize) -> Result<(), Refusal> {
        let mut command = Command { input: input.clone(), ..Command::default() };
        for child in Self::children(node) {
            match child.kind() {
                "variable_assignment" => command.assigned.push(self.assignment(child, depth + 1)?),
                "command_name" => {
                    for name in Self::children(child) {
                        command.words.extend(self.words(name, depth + 1)?);
                    }
                }
                "file_redirect" => {
                    if let Some(from) = self.file_redirect(child, depth + 1)? {
                        command.input = from;
                    }
                }
                "herestring_redirect" => {
                    self.inside(child, depth + 1)?;
                    command.input = Input::Here;
                }
                "heredoc_redirect" => {
                    self.heredoc(child, depth + 1)?;
                    command.input = Input::Here;
                }
                "comment" => {}
                _ => command.words.extend(self.words(child, depth + 1)?),
            }
        }
        // commands inside its words stand before it, as they run
        self.script.commands.push(command);
        Ok(())
    }

    fn redirected(&mut self, node: Node<'_>, input: &Input, depth: usize) -> Result<(), Refusal> {
        let mut body = None;
        let mut input = input.clone();
        for child in Self::children(node) {
            match child.kind() {
                "file_redirect" => {
                    if let Some(from) = self.file_redirect(child, depth + 1)? {
                        input = from;
                    }
                }
                "herestring_redirect" => {
                    self.inside(child, depth + 1)?;
                    input = Input::Here;
                }
                "heredoc_redirect" => {
                    self.heredoc(child, depth + 1)?;
                    input = Input::Here;
                }
                _ if body.is_none() => body = Some(child),
                _ => return Err(self.refuse(child)),
            }
        }
        match body {
            Some(body) => self.statement(body, &input, depth + 1),
            None => Ok(()), // `> file` alone makes the file
        }
    }

    /// Notes the file; where the command then reads from, when this is its input.
    fn file_redirect(&mut self, node: Node<'_>, depth: usize) -> Result<Option<Input>, Refusal> {
        let mut operator = "";
        let mut targets = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "file_descriptor" => {}
                ">" | ">>" | "<" | "&>" | "&>>" | ">&" | "<&" | ">|" | "<>" | ">&-" | "<&-" => {
                    operator = self.text(child);
                }
                _ if child.is_named() => targets.extend(self.words(child, depth + 1)?),
                _ => return Err(self.refuse(node)),
            }
        }
        if operator.ends_with("&-") {
            return Ok(None);
        }
        let [target] = targets.as_slice() else { return Err(self.refuse(node)) };
        let is_number = target.known().is_some_and(|text| text == "-" || text.bytes().all(|b| b.is_ascii_digit()));
        if operator.ends_with('&') && is_number {
            return Ok(None);
        }
        let writes = operator != "<" && operator != "<&";
        self.script.redirects.push(Redirect { target: target.clone(), writes });
        Ok((operator == "<").then_some(Input::File))
    }

    fn heredoc(&mut self, node: Node<'_>, depth: usize) -> Result<(), Refusal> {
        for child in Self::children(node) {
            match child.kind() {
                "heredoc_start" | "heredoc_end" | "file_descriptor" => {}
                "heredoc_body" => self.inside(child, depth + 1)?,
                "file_redirect" => {
                    self.file_redirect(child, depth + 1)?;
                }
                "pipeline" | "command" | "redirected_statement" | "list" => {
                    self.statement(child, &Input::Pipe, depth + 1)?;
                }
                _ => return Err(self.refuse(child)),
            }
        }
        Ok(())
    }

    fn for_loop(&mut self, node: Node<'_>, input: &Input, depth: usize) -> Result<(), Refusal> {
        if node.child(0).is_none_or(|keyword| keyword.kind() != "for") {
            return Err(self.refuse(node)); // `select` waits for a person
        }
        for child in Self::children(node) {
            match child.kind() {
                "variable_name" => {
                    let assigned = vec![self.text(child).to_owned()];
                    self.script.commands.push(Command { assigned, ..Command::default() });
                }
                "do_group" | "compound_statement" => self.statement(child, input, depth + 1)?,
                _ => {
                    self.words(child, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn case(&mut self, node: Node<'_>, input: &Input, depth: usize) -> Result<(), Refusal> {
        for child in Self::children(node) {
            if child.kind() != "case_item" {
                self.words(child, depth + 1)?;
                continue;
            }
            let mut cursor = child.walk();
            for (at, part) in child.children(&mut cursor).enumerate() {
                if !part.is_named() {
                    continue;
                }
                if child.field_name_for_child(u32::try_from(at).unwrap_or(u32::MAX)) == Some("value") {
                    self.words(part, depth + 1)?;
                } else {
                    self.statement(part, input, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn declaration(&mut self, node: Node<'_>, depth: usize) -> Result<(), Refusal> {
        let keyword = node.child(0).map(|child| self.text(child)).unwrap_or_default();
        let mut command = Command { words: vec![Word::literal(keyword)], ..Command::default() };
        for child in Self::children(node) {
            match child.kind() {
                "variable_assignment" => command.assigned.push(self.assignment(child, depth + 1)?),
                "variable_name" => command.assigned.push(self.text(child).to_owned()),
                _ => command.words.extend(self.words(child, depth + 1)?),
            }
        }
        self.script.commands.push(command);
        Ok(())
    }

    /// Reads a value for the commands in it; the name that is assigned.
    fn assignment(&mut self, node: Node<'_>, depth: usize) -> Result<String, Refusal> {
        let mut name = None;
        for child in Self::children(node) {
            match (child.kind(), &name) {
                ("variable_name", None) => name = Some(self.text(child).to_owned()),
                ("subscript", None) => {
                    self.inside(child, depth + 1)?;
                    self.script.arithmetic = true;
                    let text = self.text(child);
                    name = Some(text.split('[').next().unwrap_or(text).to_owned());
                }
                ("array", Some(_)) => {
                    for item in Self::children(child) {
                        self.words(item, depth + 2)?;
                    }
                }
                (_, Some(_)) => {
                    self.words(child, depth + 1)?;
                }
                _ => return Err(self.refuse(child)),
            }
        }
        name.ok_or_else(|| self.refuse(node))
    }

    /// Looks for commands inside something that itself runs none: a test, arithmetic, a text.
    fn inside(&mut self, node: Node<'_>, depth: usize) -> Result<(), Refusal> {
        if depth > MAX_DEPTH {
            return Err(Refusal::new(Reason::TooLong, self.text(node)));
        }
        for child in Self::children(node) {
            match child.kind() {
                "command_substitution" | "process_substitution" => self.substitution(child, depth + 1)?,
                "expansion" => self.expansion(child, depth + 1)?,
                "string"
                | "concatenation"
                | "simple_expansion"
                | "parenthesized_expression"
                | "subscript"
                | "array" => self.inside(child, depth + 1)?,
                "binary_expression"
                | "unary_expression"
                | "postfix_expression"
                | "ternary_expression"
                | "arithmetic_expansion" => {
                    self.note_arithmetic(child);
                    self.inside(child, depth + 1)?;
                }
                "word"
                | "number"
                | "raw_string"
                | "ansi_c_string"
                | "string_content"
                | "variable_name"
                | "special_variable_name"
                | "test_operator"
                | "regex"
                | "extglob_pattern"
                | "heredoc_content"
                | "heredoc_start"
                | "heredoc_end"
                | "file_descriptor"
                | "comment" => {}
                _ => return Err(self.refuse(child)),
            }
        }
        Ok(())
    }

    fn note_arithmetic(&mut self, node: Node<'_>) {
        let numeric = node.kind() == "arithmetic_expansion"
            || ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"].iter().any(|operator| self.text(node).contains(operator));
        let named = self.text(node).contains(|c: char| c.is_alphabetic() || c == '$');
        self.script.arithmetic |= numeric && named;
    }

    fn substitution(&mut self, node: Node<'_>, depth: usize) -> Result<(), Refusal> {
        for child in Self::children(node) {
            if child.kind() == "file_redirect" {
                self.file_redirect(child, depth + 1)?; // $(< file)
            } else {
                self.statement(child, &Input::Inherited, depth + 1)?;
            }
        }
        Ok(())
    }

    /// `${…}`; the forms that evaluate a variable's text, or take a variable's name from another, are refused.
    fn expansion(&mut self, node: Node<'_>, depth: usize) -> Result<(), Refusal> {
        let inner = self.text(node).trim_start_matches("${").trim_end_matches('}');
        let transforms = inner.rsplit_once('@').is_some_and(|(name, operator)| {
            operator.len() == 1 && operator.bytes().all(|b| b.is_ascii_alphabetic()) && !name.is_empty()
        });
        if inner.starts_with('!') || transforms {
            return Err(Refusal::new(Reason::Computed, self.text(node)));
        }
        self.inside(node, depth + 1)
    }

    /// A node as the words it becomes: one, or several when it has braces.
    fn words(&mut self, node: Node<'_>, depth: usize) -> Result<Vec<Word>, Refusal> {
        let mut word = self.word(node, depth)?;
        word.tilde = self.text(node).starts_with('~');
        if !word.braces {
            return Ok(vec![word]);
        }
        if word.quoted || word.computed {
            word.computed = true;
            return Ok(vec![word]);
        }
        Ok(match braces(&word.text) {
            Some(texts) => {
                texts.into_iter().map(|text| Word { text, braces: false, quoted: true, ..word.clone() }).collect()
            }
            None => vec![Word { computed: true, ..word }],
        })
    }

    fn word(&mut self, node: Node<'_>, depth: usize) -> Result<Word, Refusal> {
        if depth > MAX_DEPTH {
            return Err(Refusal::new(Reason::TooLong, self.text(node)));
        }
        let text = self.text(node);
        Ok(match node.kind() {
            "word"
            | "number"
            | "extglob_pattern"
            | "regex"
            | "variable_name"
            | "special_variable_name"
            | "test_operator" => unquoted(text),
            "raw_string" => Word {
                text: text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(text).to_owned(),
                quoted: true,
                ..Word::default()
            },
            "ansi_c_string" => {
                let inner = text.strip_prefix("$'").and_then(|text| text.strip_suffix('\''));
                Word { text: inner.and_then(ansi).ok_or_else(|| self.refuse(node))?, quoted: true, ..Word::default() }
            }
            "string" => self.string(node, depth)?,
            "concatenation" => {
                let mut whole = Word::default();
                let mut cursor = node.walk();
                for child in node.children(&mut cursor) {
                    let part = if child.is_named() { self.word(child, depth + 1)? } else { unquoted(self.text(child)) };
                    whole.push(part);
                }
                // braces may be spread over the parts
                whole.braces |= has_braces(&whole.text) && !whole.quoted;
                whole
            }
            "brace_expression" => Word { text: text.to_owned(), computed: true, ..Word::default() },
            "simple_expansion" => Word::unknown(),
            "expansion" => {
                self.expansion(node, depth + 1)?;
                Word::unknown()
            }
            "arithmetic_expansion" => {
                self.note_arithmetic(node);
                self.inside(node, depth + 1)?;
                Word::unknown()
            }
            "command_substitution" | "process_substitution" => {
                self.substitution(node, depth + 1)?;
                Word::unknown()
            }
            _ => return Err(self.refuse(node)),
        })
    }

    /// `"…"`: what lies between the parts counts as text, whether the grammar names it or not.
    fn string(&mut self, node: Node<'_>, depth: usize) -> Result<Word, Refusal> {
        let mut whole = Word { quoted: true, ..Word::default() };
        let (mut at, end) = (node.start_byte() + 1, node.end_byte().saturating_sub(1));
        for child in Self::children(node) {
            let part = match child.kind() {
                "string_content" => continue,
                _ => self.word(child, depth + 1)?,
            };
            let before = self.source.get(at..child.start_byte()).unwrap_or_default();
            whole.push(Word { text: double_quoted(before), quoted: true, ..Word::default() });
            whole.push(part);
            at = child.end_byte();
        }
        let rest = self.source.get(at..end).unwrap_or_default();
        whole.push(Word { text: double_quoted(rest), quoted: true, ..Word::default() });
        Ok(whole)
    }
}

/// A bare word: backslashes go, patterns are noted.
fn unquoted(text: &str) -> Word {
    let mut word = Word { braces: has_braces(text), ..Word::default() };
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                word.quoted = true;
                match chars.next() {
                    Some('\n') | None => {}
                    Some(next) => word.text.push(next),
                }
            }
            '*' | '?' | '[' => {
                word.glob = true;
                word.text.push(c);
            }
            _ => word.text.push(c),
        }
    }
    word
}

fn has_braces(text: &str) -> bool {
    text.split_once('{').is_some_and(|(_, rest)| {
        rest.split_once('}').is_some_and(|(inside, _)| inside.contains(',') || inside.contains(".."))
            || rest.contains(',') && rest.contains('}')
    })
}

/// `a{b,c}d` as `abd acd`; `None` for every other form.
fn braces(text: &str) -> Option<Vec<String>> {
    let (before, rest) = text.split_once('{')?;
    let (inside, after) = rest.split_once('}')?;
    if inside.contains(['{', '}']) || after.contains(['{', '}']) || inside.contains("..") || !inside.contains(',') {
        return None;
    }
    Some(inside.split(',').map(|part| format!("{before}{part}{after}")).collect())
}

fn double_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => {
                chars.next();
            }
            ('\\', Some(next @ ('$' | '`' | '"' | '\\'))) => {
                out.push(*next);
                chars.next();
            }
            _ => out.push(c),
        }
    }
    out
}

/// `$'…'`; `None` for an escape that is not ours to guess.
fn ansi(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let escape = rest.next()?;
        out.push(match escape {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'e' | 'E' => '\u{1b}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '?' => escape,
            'x' => code(&mut rest, "", 16, 2)?,
            'u' => code(&mut rest, "", 16, 4)?,
            'U' => code(&mut rest, "", 16, 8)?,
            '0'..='7' => code(&mut rest, escape.encode_utf8(&mut [0; 4]), 8, 3)?,
            _ => return None,
        });
    }
    Some(out)
}

/// A character by its number, of at most `max` digits; never the one that ends a C string.
fn code(rest: &mut std::str::Chars<'_>, first: &str, radix: u32, max: usize) -> Option<char> {
    let mut digits = first.to_owned();
    while digits.len() < max {
        match rest.clone().next().filter(|c| c.is_digit(radix)) {
            Some(digit) => digits.push(digit),
            None => break,
        }
        rest.next();
    }
    u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32).filter(|c| *c != '\0')
}

#[cfg(test)]
mod tests;
