//! Elements and texts, one after the other, as Markdown or as plain words. One buffer is
//! written from front to back, so that depth costs nothing.

use url::Url;

use crate::page::{PAGE_BYTES_MAX, PAGE_INDENTS_MAX, PAGE_LINK_BYTES_MAX, PageForm};
use crate::parser::html::HtmlNode;

/// Elements that stand on lines of their own, with an empty line around them.
const BLOCKS: [&str; 25] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "details",
    "div",
    "dl",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "ul",
    "hgroup",
    "search",
];

/// Elements that begin a new line.
const LINES: [&str; 4] = ["dt", "dd", "tr", "option"];

/// Line ends in a row that are kept where the page means its own lines.
const PRE_BREAKS_MAX: usize = 3;

/// Writes a page.
#[derive(Debug)]
pub(super) struct Writer {
    form: PageForm,
    base: Option<Url>,
    out: String,
    /// Line ends that are due before the next character.
    breaks: usize,
    /// A space that is due, unless a line ends first.
    space: bool,
    /// What every line begins with: quotes and list items.
    prefixes: Vec<Prefix>,
    lists: Vec<List>,
    /// Marks that were opened and have nothing in them yet, and those that have.
    marks: Vec<Mark>,
    tables: Vec<Table>,
    pre_depth: usize,
    is_full: bool,
    hidden_characters: usize,
}

#[derive(Debug)]
struct Prefix {
    first: Option<String>,
    rest: String,
}

#[derive(Debug)]
struct List {
    next: Option<u64>,
}

#[derive(Debug)]
struct Mark {
    open: &'static str,
    close: String,
    is_written: bool,
}

#[derive(Debug, Default)]
struct Table {
    rows: usize,
    cells: usize,
    in_cell: bool,
    /// How long the text was where the cell began.
    cell_start: usize,
}

impl Writer {
    pub(super) fn new(form: PageForm, base: Option<Url>) -> Writer {
        Writer {
            form,
            base,
            out: String::new(),
            breaks: 0,
            space: false,
            prefixes: Vec::new(),
            lists: Vec::new(),
            marks: Vec::new(),
            tables: Vec::new(),
            pre_depth: 0,
            is_full: false,
            hidden_characters: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The text, whether it was cut, and how many characters were left out.
    pub(super) fn finish(self) -> (String, bool, usize) {
        let text = self.out.trim_end().to_owned();
        (text, self.is_full, self.hidden_characters)
    }

    pub(super) fn text(&mut self, text: &str) {
        for character in text.chars() {
            // Checked for each character, so a single long text cannot go
            // far beyond the bound.
            if self.out.len() >= PAGE_BYTES_MAX {
                self.is_full = true;
                return;
            }
            let is_space = character.is_whitespace();
            if self.pre_depth > 0 && is_space {
                match character {
                    '\n' => self.line_in_pre(),
                    _ => self.put(' '),
                }
            } else if is_space {
                self.space = true;
            } else if model::text::is_hidden(character) {
                self.hidden_characters += 1;
            } else {
                self.put(character);
            }
        }
    }

    pub(super) fn enter(&mut self, name: &str, node: &HtmlNode<'_>) {
        if BLOCKS.contains(&name) || heading(name).is_some() {
            self.block();
        } else if LINES.contains(&name) {
            self.line();
        }
        match name {
            "br" => self.line(),
            "hr" => {
                self.block();
                self.plain("---");
                self.block();
            }
            "ul" => self.lists.push(List { next: None }),
            "ol" => {
                let start = node.attribute("start").and_then(|start| start.parse().ok());
                self.lists.push(List {
                    next: Some(start.unwrap_or(1)),
                });
            }
            "li" => self.item(),
            "table" => self.tables.push(Table::default()),
            "td" | "th" => self.cell(),
            "pre" => {
                self.plain_markdown("```");
                self.pre_depth += 1;
                self.breaks = self.breaks.max(1);
            }
            _ => {}
        }
        if self.form == PageForm::Markdown {
            self.enter_marked(name, node);
        }
    }

    fn enter_marked(&mut self, name: &str, node: &HtmlNode<'_>) {
        if let Some(level) = heading(name) {
            let hashes = "#".repeat(level);
            self.prefixes.push(Prefix {
                first: Some(format!("{hashes} ")),
                rest: String::new(),
            });
        }
        match name {
            // Its own first line: an empty line before it is not part of it.
            "blockquote" => self.prefixes.push(Prefix {
                first: Some("> ".to_owned()),
                rest: "> ".to_owned(),
            }),
            "strong" | "b" => self.mark("**", "**".to_owned()),
            "em" | "i" => self.mark("*", "*".to_owned()),
            "code" if self.pre_depth == 0 => self.mark("`", "`".to_owned()),
            "a" => {
                let close = match self.link(node) {
                    Some(link) => format!("]({link})"),
                    None => String::new(),
                };
                let open = if close.is_empty() { "" } else { "[" };
                self.mark(open, close);
            }
            _ => {}
        }
    }

    pub(super) fn leave(&mut self, name: &str) {
        match name {
            "ul" | "ol" => drop(self.lists.pop()),
            "li" => drop(self.prefixes.pop()),
            "td" | "th" => {
                if let Some(table) = self.tables.last_mut() {
                    table.in_cell = false;
                }
            }
            "tr" => self.end_row(),
            "table" => drop(self.tables.pop()),
            "pre" => {
                self.pre_depth = self.pre_depth.saturating_sub(1);
                self.breaks = 1;
                self.plain_markdown("```");
            }
            _ => {}
        }
        if self.form == PageForm::Markdown {
            match name {
                "blockquote" => drop(self.prefixes.pop()),
                "strong" | "b" | "em" | "i" | "a" => self.unmark(),
                "code" if self.pre_depth == 0 => self.unmark(),
                name if heading(name).is_some() => drop(self.prefixes.pop()),
                _ => {}
            }
        }
        if BLOCKS.contains(&name) || heading(name).is_some() {
            self.block();
        } else if LINES.contains(&name) || name == "li" {
            self.line();
        }
    }

    /// Only addresses a person could open; a script or a file is no link.
    fn link(&self, node: &HtmlNode<'_>) -> Option<String> {
        let href = node.attribute("href")?;
        let joined = match &self.base {
            Some(base) => base.join(href).ok()?,
            None => Url::parse(href).ok()?,
        };
        let is_web = matches!(joined.scheme(), "http" | "https");
        // A bracket in an address would end the link in Markdown.
        let text = String::from(joined).replace(['(', ')'], "");
        (is_web && text.len() <= PAGE_LINK_BYTES_MAX).then_some(text)
    }

    fn item(&mut self) {
        self.line();
        let mark = match self.lists.last_mut().and_then(|list| list.next.as_mut()) {
            Some(next) => {
                let mark = format!("{next}. ");
                *next = next.saturating_add(1);
                mark
            }
            None => "- ".to_owned(),
        };
        self.prefixes.push(Prefix {
            rest: " ".repeat(mark.len()),
            first: Some(mark),
        });
    }

    fn cell(&mut self) {
        let is_first = match self.tables.last_mut() {
            Some(table) => {
                table.cells += 1;
                table.in_cell = true;
                table.cells == 1
            }
            None => return,
        };
        match self.form {
            PageForm::Text => self.space = !is_first,
            PageForm::Markdown => {
                self.space = false;
                self.plain(if is_first { "| " } else { " | " });
            }
        }
        let start = self.out.len();
        if let Some(table) = self.tables.last_mut() {
            table.cell_start = start;
        }
    }

    fn end_row(&mut self) {
        let Some(table) = self.tables.last_mut() else {
            return;
        };
        let cells = std::mem::take(&mut table.cells);
        table.rows += 1;
        let is_head = table.rows == 1;
        if self.form == PageForm::Text || cells == 0 {
            return;
        }
        self.space = false;
        self.plain(" |");
        if is_head {
            self.line();
            let columns = cells.min(64);
            self.plain(&format!("|{}", " --- |".repeat(columns)));
        }
    }

    fn mark(&mut self, open: &'static str, close: String) {
        self.marks.push(Mark {
            open,
            close,
            is_written: false,
        });
    }

    fn unmark(&mut self) {
        if let Some(mark) = self.marks.pop()
            && mark.is_written
        {
            self.out.push_str(&mark.close);
        }
    }

    /// An empty line before what follows.
    fn block(&mut self) {
        if self.in_cell() {
            self.space |= self.cell_has_text();
            return;
        }
        self.end_marks();
        self.breaks = self.breaks.max(2);
        self.space = false;
    }

    /// A new line before what follows.
    fn line(&mut self) {
        if self.in_cell() {
            self.space |= self.cell_has_text();
            return;
        }
        self.end_marks();
        self.breaks = self.breaks.max(1);
        self.space = false;
    }

    /// Marks do not reach over lines; the next text opens them again.
    fn end_marks(&mut self) {
        for mark in self.marks.iter_mut().rev().filter(|mark| mark.is_written) {
            self.out.push_str(&mark.close);
            mark.is_written = false;
        }
    }

    fn line_in_pre(&mut self) {
        self.breaks = (self.breaks + 1).min(PRE_BREAKS_MAX);
    }

    fn in_cell(&self) -> bool {
        self.tables.last().is_some_and(|table| table.in_cell)
    }

    fn cell_has_text(&self) -> bool {
        let start = self.tables.last().map(|table| table.cell_start);
        start.is_some_and(|start| self.out.len() > start)
    }

    fn put(&mut self, character: char) {
        self.begin();
        for mark in self.marks.iter_mut().filter(|mark| !mark.is_written) {
            self.out.push_str(mark.open);
            mark.is_written = true;
        }
        // A bar in a cell would be taken for the end of the cell.
        if character == '|' && self.form == PageForm::Markdown && self.in_cell() {
            self.out.push('\\');
        }
        self.out.push(character);
    }

    /// Text of ours, without marks.
    fn plain(&mut self, text: &str) {
        self.begin();
        self.out.push_str(text);
    }

    fn plain_markdown(&mut self, text: &str) {
        if self.form == PageForm::Markdown {
            self.plain(text);
        }
    }

    /// What is due before the next character: line ends with what lines begin with, or a
    /// space.
    fn begin(&mut self) {
        let breaks = std::mem::take(&mut self.breaks);
        let space = std::mem::take(&mut self.space);
        if !self.out.is_empty() {
            if breaks == 0 {
                self.out.push_str(if space { " " } else { "" });
                return;
            }
            for _ in 1..breaks {
                self.out.push('\n');
                // An empty line inside a quote is part of it.
                let begun = self.prefixes.iter().take(PAGE_INDENTS_MAX);
                let begun = begun.filter(|prefix| prefix.first.is_none());
                let gap: String = begun.map(|prefix| prefix.rest.as_str()).collect();
                self.out.push_str(gap.trim_end());
            }
            self.out.push('\n');
        }
        // Attack: lists thousands deep, whose every line would begin with kilobytes of nothing.
        for (depth, prefix) in self.prefixes.iter_mut().enumerate() {
            match prefix.first.take() {
                Some(first) => self.out.push_str(&first),
                None if depth < PAGE_INDENTS_MAX => self.out.push_str(&prefix.rest),
                None => {}
            }
        }
    }
}

fn heading(name: &str) -> Option<usize> {
    match name {
        "h1" => Some(1),
        "h2" => Some(2),
        "h3" => Some(3),
        "h4" => Some(4),
        "h5" => Some(5),
        "h6" => Some(6),
        _ => None,
    }
}
