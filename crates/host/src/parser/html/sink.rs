//! The arena html5ever writes into. It never refuses, for the parser does not
//! listen; the code that feeds the parser asks it how large it is.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::{Attribute, ExpandedName, QualName, local_name, ns};

/// Where the document itself lies.
pub(super) const ROOT: usize = 0;

/// What a node is.
#[derive(Debug)]
pub(super) enum NodeKind {
    Document,
    /// Attributes by their written name. Values are shared with the parser:
    /// formatting elements are opened again and again with the same ones.
    Element(QualName, Vec<(String, StrTendril)>),
    Text(StrTendril),
    Comment(StrTendril),
    Doctype(StrTendril),
}

#[derive(Debug)]
struct Node {
    kind: NodeKind,
    parent: Option<usize>,
    children: Vec<usize>,
    /// As it was when the node was put in; moving a branch does not change it.
    depth: usize,
}

/// All nodes ever made, in the order of their making.
#[derive(Debug, Default)]
pub(super) struct Arena {
    nodes: Vec<Node>,
}

impl Arena {
    pub(super) fn kind(&self, index: usize) -> Option<&NodeKind> {
        self.nodes.get(index).map(|node| &node.kind)
    }

    pub(super) fn children(&self, index: usize) -> &[usize] {
        match self.nodes.get(index) {
            Some(node) => &node.children,
            None => &[],
        }
    }

    fn push(&mut self, kind: NodeKind) -> usize {
        self.nodes.push(Node {
            kind,
            parent: None,
            children: Vec::new(),
            depth: 0,
        });
        self.nodes.len() - 1
    }

    /// Where a node stands among its siblings. Parsers work at the end of the
    /// text, so the search starts there.
    fn place(&self, index: usize) -> Option<(usize, usize)> {
        let parent = self.nodes.get(index)?.parent?;
        let place = self
            .children(parent)
            .iter()
            .rposition(|child| *child == index)?;
        Some((parent, place))
    }

    fn detach(&mut self, index: usize) {
        let Some((parent, place)) = self.place(index) else {
            return;
        };
        if let Some(parent) = self.nodes.get_mut(parent) {
            parent.children.remove(place);
        }
        if let Some(node) = self.nodes.get_mut(index) {
            node.parent = None;
        }
    }

    /// Puts a node at a place among the children; gives back its depth.
    fn attach(&mut self, index: usize, parent: usize, place: usize) -> usize {
        self.detach(index);
        let depth = match self.nodes.get_mut(parent) {
            Some(node) => {
                let place = place.min(node.children.len());
                node.children.insert(place, index);
                node.depth + 1
            }
            None => 0,
        };
        if let Some(node) = self.nodes.get_mut(index) {
            node.parent = Some(parent);
            node.depth = depth;
        }
        depth
    }

    /// Text beside text is one text.
    fn merge(&mut self, parent: usize, place: usize, text: &StrTendril) -> bool {
        let Some(before) = place
            .checked_sub(1)
            .and_then(|place| self.children(parent).get(place).copied())
        else {
            return false;
        };
        match self.nodes.get_mut(before).map(|node| &mut node.kind) {
            Some(NodeKind::Text(own)) => {
                // Otherwise a text of a million entities would be a million nodes.
                own.push_tendril(text);
                true
            }
            Some(_) | None => false,
        }
    }
}

/// What html5ever holds of a node.
#[derive(Debug)]
pub(super) struct Ticket {
    index: usize,
    name: QualName,
    is_integration_point: bool,
}

/// The arena, as html5ever wants to see it.
#[derive(Debug)]
pub(super) struct Sink {
    arena: RefCell<Arena>,
    depth_max: Cell<usize>,
    changes_count: Cell<usize>,
}

impl Default for Sink {
    fn default() -> Sink {
        let mut arena = Arena::default();
        arena.push(NodeKind::Document);
        Sink {
            arena: RefCell::new(arena),
            depth_max: Cell::new(0),
            changes_count: Cell::new(0),
        }
    }
}

impl Sink {
    pub(super) fn depth_max(&self) -> usize {
        self.depth_max.get()
    }

    pub(super) fn nodes_count(&self) -> usize {
        self.arena.borrow().nodes.len()
    }

    /// Grows whenever the tree does anything.
    pub(super) fn changes_count(&self) -> usize {
        self.changes_count.get()
    }

    fn changed(&self) {
        self.changes_count.set(self.changes_count.get() + 1);
    }

    fn make(&self, kind: NodeKind, name: QualName, is_integration_point: bool) -> Rc<Ticket> {
        self.changed();
        let index = self.arena.borrow_mut().push(kind);
        Rc::new(Ticket {
            index,
            name,
            is_integration_point,
        })
    }

    fn put(&self, parent: usize, place: usize, child: NodeOrText<Rc<Ticket>>) {
        self.changed();
        let mut arena = self.arena.borrow_mut();
        let index = match child {
            NodeOrText::AppendNode(ticket) => ticket.index,
            NodeOrText::AppendText(text) => {
                if arena.merge(parent, place, &text) {
                    return;
                }
                arena.push(NodeKind::Text(text))
            }
        };
        let depth = arena.attach(index, parent, place);
        self.depth_max.set(self.depth_max.get().max(depth));
    }
}

/// The name of what has no name.
fn nameless() -> QualName {
    QualName::new(None, ns!(), local_name!(""))
}

fn attributes(attributes: Vec<Attribute>) -> Vec<(String, StrTendril)> {
    attributes
        .into_iter()
        .map(|attribute| {
            let local = &attribute.name.local;
            let name = match &attribute.name.prefix {
                Some(prefix) => format!("{prefix}:{local}"),
                None => local.to_string(),
            };
            (name, attribute.value)
        })
        .collect()
}

impl TreeSink for Sink {
    type Handle = Rc<Ticket>;
    type Output = Arena;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Arena {
        self.arena.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Rc<Ticket> {
        Rc::new(Ticket {
            index: ROOT,
            name: nameless(),
            is_integration_point: false,
        })
    }

    fn elem_name<'a>(&'a self, target: &'a Rc<Ticket>) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(
        &self,
        name: QualName,
        attrs: Vec<Attribute>,
        flags: ElementFlags,
    ) -> Rc<Ticket> {
        let is_integration_point = flags.mathml_annotation_xml_integration_point;
        let kind = NodeKind::Element(name.clone(), attributes(attrs));
        self.make(kind, name, is_integration_point)
    }

    fn create_comment(&self, text: StrTendril) -> Rc<Ticket> {
        self.make(NodeKind::Comment(text), nameless(), false)
    }

    fn create_pi(&self, _: StrTendril, data: StrTendril) -> Rc<Ticket> {
        self.make(NodeKind::Comment(data), nameless(), false)
    }

    fn append(&self, parent: &Rc<Ticket>, child: NodeOrText<Rc<Ticket>>) {
        let place = self.arena.borrow().children(parent.index).len();
        self.put(parent.index, place, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Rc<Ticket>,
        prev_element: &Rc<Ticket>,
        child: NodeOrText<Rc<Ticket>>,
    ) {
        let has_parent = self.arena.borrow().place(element.index).is_some();
        match has_parent {
            // As the standard has it: what does not belong into a table
            // goes in front of it.
            true => self.append_before_sibling(element, child),
            false => self.append(prev_element, child),
        }
    }

    fn append_doctype_to_document(&self, name: StrTendril, _: StrTendril, _: StrTendril) {
        let ticket = self.make(NodeKind::Doctype(name), nameless(), false);
        self.append(&self.get_document(), NodeOrText::AppendNode(ticket));
    }

    fn pop(&self, _: &Rc<Ticket>) {
        self.changed();
    }

    /// What a template holds are its children here.
    fn get_template_contents(&self, target: &Rc<Ticket>) -> Rc<Ticket> {
        Rc::clone(target)
    }

    fn same_node(&self, x: &Rc<Ticket>, y: &Rc<Ticket>) -> bool {
        x.index == y.index
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Rc<Ticket>, new_node: NodeOrText<Rc<Ticket>>) {
        if let NodeOrText::AppendNode(ticket) = &new_node {
            // First, because it may be an earlier sibling, and then the place moves.
            self.arena.borrow_mut().detach(ticket.index);
        }
        let place = self.arena.borrow().place(sibling.index);
        if let Some((parent, place)) = place {
            self.put(parent, place, new_node);
        }
    }

    fn add_attrs_if_missing(&self, target: &Rc<Ticket>, attrs: Vec<Attribute>) {
        let mut arena = self.arena.borrow_mut();
        if let Some(NodeKind::Element(_, own)) =
            arena.nodes.get_mut(target.index).map(|node| &mut node.kind)
        {
            for (name, value) in attributes(attrs) {
                if own.iter().all(|(known, _)| *known != name) {
                    own.push((name, value));
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &Rc<Ticket>) {
        self.arena.borrow_mut().detach(target.index);
    }

    fn reparent_children(&self, node: &Rc<Ticket>, new_parent: &Rc<Ticket>) {
        let mut arena = self.arena.borrow_mut();
        let Some(children) = arena
            .nodes
            .get_mut(node.index)
            .map(|node| std::mem::take(&mut node.children))
        else {
            return;
        };
        for child in &children {
            if let Some(child) = arena.nodes.get_mut(*child) {
                child.parent = Some(new_parent.index);
            }
        }
        if let Some(parent) = arena.nodes.get_mut(new_parent.index) {
            // Appended as they are. Their depths stay, so `flatten` counts for itself.
            parent.children.extend(children);
        }
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &Rc<Ticket>) -> bool {
        handle.is_integration_point
    }
}
