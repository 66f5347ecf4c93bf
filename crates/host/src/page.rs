//! A web page as text for a model: what a person would see of it, and nothing else.
//!
//! Attack: instructions that a page shows to models and hides from people, by markup, by
//! styles, by colour, or by characters that draw nothing. All of that is left out, and
//! what was left out is counted. Styles of other files and scripts are not fetched, so a
//! page that hides by them keeps its text.

use url::Url;

use crate::compute::Turn;
use crate::message::PowerFault;
use crate::page::hidden::{Seen, Visibility};
use crate::page::render::Writer;
use crate::page::style::Styles;
use crate::parser::html::{self, HtmlNode};

mod hidden;
mod render;
mod style;

model::limits! {
    /// Bytes of the text of a page.
    PAGE_BYTES_MAX: usize = 1 << 20;
    /// Bytes of the styles of a page that are looked at.
    PAGE_STYLE_BYTES_MAX: usize = 256 << 10;
    /// Rules of the styles of a page that can hide something.
    PAGE_STYLE_RULES_MAX: usize = 256;
    /// Quotes and list items around each other that lines behind the first are indented for.
    PAGE_INDENTS_MAX: usize = 32;
    /// Bytes of the address of a link.
    PAGE_LINK_BYTES_MAX: usize = 2_048;
}

/// How the text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageForm {
    /// With headings, lists, tables and links.
    Markdown,
    /// Words alone.
    Text,
}

/// A page as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageText {
    /// The title, on one line.
    pub title: Option<String>,
    /// The text.
    pub text: String,
    /// Whether there is more than the bound lets through.
    pub truncated: bool,
    /// Elements with text that a person would not see; they were left out.
    pub hidden_elements: usize,
    /// Characters that draw nothing; they were left out.
    pub hidden_characters: usize,
}

/// Reads a page. `base` is its address, for links.
///
/// # Errors
/// It is too large or nested too deep.
pub fn read_page(
    text: &str,
    base: Option<&Url>,
    form: PageForm,
    turn: &Turn,
) -> Result<PageText, PowerFault> {
    let nodes = html::parse(text, None, turn).map_err(|error| error.into_fault(HELPER))?;
    let nodes: Vec<HtmlNode<'_>> = nodes.iter().filter_map(html::node).collect();
    let base = base_of(&nodes, base);
    let styles = Styles::read(&nodes);
    let mut page = Page {
        writer: Writer::new(form, base),
        title: String::new(),
        open: Vec::new(),
        nodes: &nodes,
        hidden_elements: 0,
    };
    let mut visibility = Visibility::new(&styles);
    for (index, node) in nodes.iter().enumerate() {
        if index.is_multiple_of(NODES_AT_ONCE) {
            turn.check().map_err(|stopped| stopped.into_fault(HELPER))?;
        }
        // The rest would be cut anyway. What is hidden in it is not counted.
        if page.writer.is_full() {
            break;
        }
        page.close_to(node.parent(), &mut visibility);
        page.open(index, node, &mut visibility);
    }
    page.close_to(None, &mut visibility);
    let words: Vec<_> = page.title.split_whitespace().collect();
    let title = model::text::one_line(&words.join(" "));
    let (text, truncated, hidden_characters) = page.writer.finish();
    Ok(PageText {
        title: (!title.is_empty()).then_some(title),
        text,
        truncated,
        hidden_elements: page.hidden_elements,
        hidden_characters,
    })
}

const HELPER: &str = "page";
const NODES_AT_ONCE: usize = 256;

/// The walk over a page.
struct Page<'a> {
    writer: Writer,
    title: String,
    /// The elements around the next node, by index, with whether they were written.
    open: Vec<(usize, Seen)>,
    nodes: &'a [HtmlNode<'a>],
    hidden_elements: usize,
}

impl<'a> Page<'a> {
    fn open(&mut self, index: usize, node: &'a HtmlNode<'a>, visibility: &mut Visibility<'a>) {
        let around = self.open.last().map_or(Seen::Yes, |(_, seen)| *seen);
        match node {
            HtmlNode::Element { name, .. } => {
                let own = visibility.enter(node);
                let seen = match around {
                    Seen::Yes => own,
                    // Nothing inside a hidden element is seen, whatever its own style says.
                    Seen::No | Seen::Counted => around,
                };
                if seen == Seen::Yes {
                    self.writer.enter(name, node);
                }
                self.open.push((index, seen));
            }
            HtmlNode::Text { text, .. } => match around {
                Seen::Yes => self.writer.text(text),
                Seen::Counted => {}
                Seen::No => self.leave_out(text),
            },
        }
    }

    /// Text that is not shown. The title stands in the head, scripts and styles are no text;
    /// anything else is counted once for each element that hides it.
    fn leave_out(&mut self, text: &str) {
        let names = self
            .open
            .iter()
            .filter_map(|(index, _)| self.nodes.get(*index));
        let mut names = names.filter_map(HtmlNode::name);
        let innermost = names.next_back();
        if innermost == Some("title") && self.title.is_empty() {
            self.title.push_str(text);
            return;
        }
        let is_code = innermost.is_some_and(|name| hidden::CODE.contains(&name));
        if is_code || text.trim().is_empty() {
            return;
        }
        self.hidden_elements += 1;
        for (_, seen) in &mut self.open {
            if *seen == Seen::No {
                *seen = Seen::Counted;
            }
        }
    }

    /// Leaves every element that the next node is not in.
    fn close_to(&mut self, parent: Option<usize>, visibility: &mut Visibility<'_>) {
        while let Some((index, seen)) = self.open.last().copied() {
            if Some(index) == parent {
                return;
            }
            self.open.pop();
            visibility.leave();
            let name = self.nodes.get(index).and_then(HtmlNode::name);
            if let (Seen::Yes, Some(name)) = (seen, name) {
                self.writer.leave(name);
            }
        }
    }
}

/// What relative links are relative to.
fn base_of(nodes: &[HtmlNode<'_>], own: Option<&Url>) -> Option<Url> {
    let named = nodes.iter().find(|node| node.name() == Some("base"));
    let named = named.and_then(|node| node.attribute("href"));
    match (own, named) {
        // A page's own `base` moves its links, and only them.
        (Some(own), Some(named)) => own.join(named).ok().or_else(|| Some(own.clone())),
        (own, _) => own.cloned(),
    }
}

/// The fuzz target and its seeds call this. Whatever the page, its text keeps to its bound
/// and holds no character that draws nothing.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let turn = Turn::endless();
    for form in [PageForm::Markdown, PageForm::Text] {
        if let Ok(page) = read_page(&text, None, form, &turn) {
            assert!(page.text.len() <= PAGE_BYTES_MAX + 1024);
            let hidden = |c: char| c != '\n' && model::text::is_hidden(c);
            assert!(!page.text.contains(hidden), "{:?}", page.text);
        }
    }
}

#[cfg(test)]
mod tests;
