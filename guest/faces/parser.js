// The face of `safety.parser`: plain data, and for HTML the calls that tool
// authors know from jsoup. The host parses; what follows happens here, on plain
// objects, so that no object of the host is ever in reach of a script.
//
// `call(operation, arguments)` gives `{value}` or throws a helper error.
(call) => {
  'use strict';

  const text = (raw) => (raw === undefined || raw === null ? null : String(raw).toWellFormed());

  // -- Nodes -----------------------------------------------------------------

  const TEXT = 0;
  const COMMENT = 1;
  const DOCTYPE = 2;

  const BLOCKS = new Set(('html head body frameset script noscript style meta link title frame noframes section nav ' +
    'aside hgroup header footer p h1 h2 h3 h4 h5 h6 ul ol pre div blockquote hr address figure figcaption form ' +
    'fieldset ins del dl dt dd li table caption thead tfoot tbody colgroup col tr th td video audio canvas details ' +
    'menu plaintext template article main svg math center dir applet marquee listing').split(' '));
  // Blocks that are written in a line.
  const INLINE_BLOCKS = new Set('title a p h1 h2 h3 h4 h5 h6 pre address li th td script style ins del s button'.split(' '));
  const VERBATIM = new Set('pre plaintext title textarea'.split(' '));
  // What is in these is not text.
  const DATA = new Set('script style'.split(' '));
  const RAW = new Set('script style xmp iframe noembed noframes plaintext'.split(' '));
  const VOID = new Set('area base br col embed hr img input link meta param source track wbr'.split(' '));

  // Where a node hangs and what hangs on it; kept beside the objects that
  // scripts see, so that those show `tag`, `attrs`, `text` and `children` only.
  const parents = new WeakMap();
  const contents = new WeakMap();

  const isElement = (node) => node instanceof Element;
  const nodesOf = (element) => contents.get(element) ?? [];
  const elementsOf = (element) => nodesOf(element).filter(isElement);
  const siblingsOf = (element) => {
    const parent = parents.get(element);
    return parent ? elementsOf(parent) : [element];
  };

  const detach = (node) => {
    const parent = parents.get(node);
    if (!parent) return;
    const siblings = nodesOf(parent);
    const place = siblings.indexOf(node);
    if (place >= 0) siblings.splice(place, 1);
    parents.delete(node);
  };

  const attach = (parent, place, nodes) => {
    for (const node of nodes) parents.set(node, parent);
    nodesOf(parent).splice(place, 0, ...nodes);
  };

  // Visits a node and all below it, in order, without recursion: a page may be
  // deeper than the stack of a sandbox. `leave` also gets the next sibling.
  const traverse = (root, enter, leave) => {
    const open = [{ node: root, inner: isElement(root) ? nodesOf(root) : [], at: 0 }];
    enter(root);
    while (open.length) {
      const top = open[open.length - 1];
      if (top.at < top.inner.length) {
        const node = top.inner[top.at++];
        enter(node);
        open.push({ node, inner: isElement(node) ? nodesOf(node) : [], at: 0 });
      } else {
        open.pop();
        const above = open[open.length - 1];
        if (leave) leave(top.node, above ? above.inner[above.at] : undefined);
      }
    }
  };

  // A flat list, each node with the index of its parent, becomes a tree.
  const build = (list, root) => {
    const made = [];
    for (const [parent, kind, rest] of list) {
      const node = typeof kind === 'string' ? new Element(kind, rest) : { kind, text: rest };
      made.push(node);
      const above = parent < 0 ? root : made[parent];
      parents.set(node, above);
      nodesOf(above).push(node);
    }
    return root;
  };

  const fragment = (raw, context) => {
    const holder = new Element('#fragment');
    build(call('parser.html', { text: text(raw) ?? '', context: context.tag }).value.nodes, holder);
    return nodesOf(holder);
  };

  // -- Text ------------------------------------------------------------------

  const WHITE = /[ \t\n\f\r\u00a0]+/g;
  const UNSEEN = /[\u200b\u00ad]/g;

  const ends = (parts) => parts.length === 0 || /[ \t\n\f\r\u00a0]$/.test(parts[parts.length - 1]);
  const isInVerbatim = (node) => {
    for (let at = parents.get(node), i = 0; at && i < 6; at = parents.get(at), i++) if (VERBATIM.has(at.tag)) return true;
    return false;
  };

  const addText = (parts, node) => {
    let own = node.text;
    if (!isInVerbatim(node)) {
      own = own.replace(UNSEEN, '').replace(WHITE, ' ');
      if (parts.length > 0 && ends(parts) && own.startsWith(' ')) own = own.slice(1);
    }
    if (own) parts.push(own);
  };

  const trim = (raw) => raw.replace(/^[\0- ]+|[\0- ]+$/g, '');
  const normal = (raw) => trim(raw.replace(WHITE, ' '));

  // As jsoup: white space folded, a space where a block begins or ends.
  const textOf = (element) => {
    const parts = [];
    const space = () => parts.length > 0 && !ends(parts) && parts.push(' ');
    const enter = (node) => {
      if (isElement(node)) { if (BLOCKS.has(node.tag) || node.tag === 'br') space(); return; }
      if (node.kind === TEXT && !DATA.has(parents.get(node)?.tag)) addText(parts, node);
    };
    const leave = (node, next) => {
      if (!next || !isElement(node) || !BLOCKS.has(node.tag)) return;
      const isBlock = isElement(next) && BLOCKS.has(next.tag) && !INLINE_BLOCKS.has(next.tag);
      if (next.kind === TEXT || (isElement(next) && !isBlock)) space();
    };
    traverse(element, enter, leave);
    return trim(parts.join(''));
  };

  const ownTextOf = (element) => {
    const parts = [];
    for (const node of nodesOf(element)) {
      if (node.kind === TEXT) addText(parts, node);
      else if (node.tag === 'br' && parts.length > 0 && !ends(parts)) parts.push(' ');
    }
    return trim(parts.join(''));
  };

  const wholeTextOf = (element) => {
    let all = '';
    traverse(element, (node) => { if (node.kind === TEXT) all += node.text; });
    return all;
  };

  // -- Writing ---------------------------------------------------------------

  const escapeText = (raw) => raw.replace(/[&<>\u00a0]/g, (mark) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '\u00a0': '&nbsp;' })[mark]);
  const escapeAttr = (raw) => raw.replace(/[&"\u00a0]/g, (mark) => ({ '&': '&amp;', '"': '&quot;', '\u00a0': '&nbsp;' })[mark]);

  const leaf = (node) => {
    if (node.kind === COMMENT) return `<!--${node.text}-->`;
    if (node.kind === DOCTYPE) return `<!doctype ${node.text}>`;
    return RAW.has(parents.get(node)?.tag) ? node.text : escapeText(node.text);
  };
  const begin = (element) => {
    const attrs = Object.entries(element.attrs).map(([name, value]) => ` ${name}="${escapeAttr(String(value))}"`).join('');
    return `<${element.tag}${attrs}>`;
  };
  const write = (root, isInner) => {
    const out = [];
    const isSilent = (node) => (isInner && node === root) || node.tag.startsWith('#');
    const enter = (node) => {
      if (!isElement(node)) out.push(leaf(node));
      else if (!isSilent(node)) out.push(begin(node));
    };
    const leave = (node) => {
      if (isElement(node) && !isSilent(node) && !VOID.has(node.tag)) out.push(`</${node.tag}>`);
    };
    traverse(root, enter, leave);
    return out.join('');
  };
  const writeInner = (element) => write(element, true);

  // -- Selectors -------------------------------------------------------------

  const bad = (selector) => {
    const error = new SyntaxError(`could not read the selector \`${selector}\``);
    return Object.assign(error, { kind: 'INVALID_INPUT', reason: 'invalid-selector', helper: 'safety.parser.html' });
  };

  const NAME = /^(?:[\w\u0080-\uffff-]|\\.)+/;
  const unescape = (name) => name.replace(/\\(.)/g, '$1');

  // `2n+1`, `odd`, `3` as a function of the position, from one.
  const nth = (raw, selector) => {
    const formula = raw.trim().toLowerCase().replace(/\s+/g, '');
    const named = { odd: [2, 1], even: [2, 0] }[formula];
    const found = /^([+-]?\d*)n([+-]\d+)?$/.exec(formula);
    let step, start;
    if (named) [step, start] = named;
    else if (found) {
      step = found[1] === '' || found[1] === '+' ? 1 : found[1] === '-' ? -1 : Number(found[1]);
      start = Number(found[2] ?? 0);
    } else if (/^[+-]?\d+$/.test(formula)) [step, start] = [0, Number(formula)];
    else throw bad(selector);
    return (at) => (step === 0 ? at === start : (at - start) % step === 0 && (at - start) / step >= 0);
  };

  const place = (element, ofType, fromEnd) => {
    let all = siblingsOf(element);
    if (ofType) all = all.filter((other) => other.tag === element.tag);
    const index = all.indexOf(element);
    return fromEnd ? all.length - index : index + 1;
  };

  const pseudo = (name, inner, selector) => {
    const number = () => {
      const count = Number(inner);
      if (!Number.isInteger(count)) throw bad(selector);
      return count;
    };
    const quoted = () => normal((inner ?? '').replace(/^(['"])([\s\S]*)\1$/, '$2')).toLowerCase();
    const index = (element) => siblingsOf(element).indexOf(element);
    switch (name) {
      case 'first-child': return (element) => place(element) === 1;
      case 'last-child': return (element) => place(element, false, true) === 1;
      case 'only-child': return (element) => siblingsOf(element).length === 1;
      case 'first-of-type': return (element) => place(element, true) === 1;
      case 'last-of-type': return (element) => place(element, true, true) === 1;
      case 'only-of-type': return (element) => place(element, true) === 1 && place(element, true, true) === 1;
      case 'nth-child': { const fits = nth(inner ?? '', selector); return (element) => fits(place(element)); }
      case 'nth-last-child': { const fits = nth(inner ?? '', selector); return (element) => fits(place(element, false, true)); }
      case 'nth-of-type': { const fits = nth(inner ?? '', selector); return (element) => fits(place(element, true)); }
      case 'nth-last-of-type': { const fits = nth(inner ?? '', selector); return (element) => fits(place(element, true, true)); }
      case 'empty': return (element) => nodesOf(element).every((node) => node.kind === COMMENT);
      case 'root': return (element) => parents.get(element)?.tag === '#root';
      case 'not': { const list = read(inner ?? ''); return (element) => !matches(element, list); }
      case 'is': { const list = read(inner ?? ''); return (element) => matches(element, list); }
      case 'has': { const list = read(inner ?? '', true); return (element) => find(element, list, element).length > 0; }
      case 'contains': { const wanted = quoted(); return (element) => textOf(element).toLowerCase().includes(wanted); }
      case 'containsown': { const wanted = quoted(); return (element) => ownTextOf(element).toLowerCase().includes(wanted); }
      // jsoup's own, which count from nought among the siblings.
      case 'eq': { const wanted = number(); return (element) => index(element) === wanted; }
      case 'lt': { const wanted = number(); return (element) => index(element) < wanted; }
      case 'gt': { const wanted = number(); return (element) => index(element) > wanted; }
      default: throw bad(selector);
    }
  };

  const attribute = (inner, selector) => {
    const found = /^\s*([^\s=~^$*!|]+|\^[^\s=]+)\s*(?:([~^$*!]?=)\s*(?:"([^"]*)"|'([^']*)'|([^\s"']*))\s*[iIsS]?)?\s*$/.exec(inner);
    if (!found) throw bad(selector);
    const name = unescape(found[1]).toLowerCase();
    const operator = found[2];
    const wanted = found[3] ?? found[4] ?? found[5] ?? '';
    if (name.startsWith('^')) return (element) => Object.keys(element.attrs).some((own) => own.startsWith(name.slice(1)));
    const own = (element) => (name.startsWith('abs:') ? element.attr(name) || undefined : element.attrs[name]);
    const folded = wanted.toLowerCase();
    // As in jsoup, values are compared without regard to case.
    const test = {
      undefined: () => true,
      '=': (value) => value.trim().toLowerCase() === folded.trim(),
      '!=': (value) => value.toLowerCase() !== folded,
      '^=': (value) => folded !== '' && value.toLowerCase().startsWith(folded),
      '$=': (value) => folded !== '' && value.toLowerCase().endsWith(folded),
      '*=': (value) => folded !== '' && value.toLowerCase().includes(folded),
      '~=': (value) => {
        if (/^[\w-]+$/.test(wanted)) return value.split(/\s+/).includes(wanted) || value.includes(wanted);
        try { return new RegExp(wanted).test(value); } catch { throw bad(selector); }
      },
    }[operator];
    return (element) => {
      const value = own(element);
      return value === undefined ? operator === '!=' : test(String(value));
    };
  };

  // The text up to the bracket that closes the one at the start.
  const bracket = (raw, open, close, selector) => {
    let depth = 0;
    let quote = '';
    for (let i = 0; i < raw.length; i++) {
      const mark = raw[i];
      if (mark === '\\') i++;
      else if (quote) quote = mark === quote ? '' : quote;
      else if (mark === '"' || mark === "'") quote = mark;
      else if (mark === open) depth++;
      else if (mark === close && --depth === 0) return raw.slice(1, i);
    }
    throw bad(selector);
  };

  // A selector is a list of chains; a chain is a list of steps, the last one
  // first: each a test and how it hangs on the step before.
  const read = (selector, isRelative = false, depth = 0) => {
    let rest = String(selector).trim();
    if (!rest || rest.length > 4096 || depth > 16) throw bad(selector);
    const chains = [];
    let steps = [];
    let tests = [];
    let link = ' ';
    const end = () => {
      if (!tests.length) throw bad(selector);
      const own = tests;
      steps.unshift({ test: (element) => own.every((test) => test(element)), link });
      tests = [];
    };
    const take = (length) => { rest = rest.slice(length); };
    if (isRelative && /^[>+~]/.test(rest)) { link = rest[0]; rest = rest.slice(1).trimStart(); }
    while (rest) {
      const mark = rest[0];
      const combinator = /^\s*([>+~,])\s*|^\s+/.exec(rest);
      if (combinator) {
        end();
        take(combinator[0].length);
        link = combinator[1] ?? ' ';
        if (link === ',') { chains.push(steps); steps = []; link = ' '; }
        if (!rest) throw bad(selector);
      } else if (mark === '*') { tests.push(() => true); take(1); }
      else if (mark === '[') {
        const inner = bracket(rest, '[', ']', selector);
        tests.push(attribute(inner, selector));
        take(inner.length + 2);
      } else if (mark === '#' || mark === '.') {
        const found = NAME.exec(rest.slice(1));
        if (!found) throw bad(selector);
        const name = unescape(found[0]);
        tests.push(mark === '#' ? (element) => element.attrs.id === name : (element) => element.hasClass(name));
        take(found[0].length + 1);
      } else if (mark === ':') {
        const found = /^::?([\w-]+)/.exec(rest);
        if (!found) throw bad(selector);
        take(found[0].length);
        const inner = rest[0] === '(' ? bracket(rest, '(', ')', selector) : undefined;
        if (inner !== undefined) take(inner.length + 2);
        tests.push(pseudo(found[1].toLowerCase(), inner, selector));
      } else {
        const found = NAME.exec(rest);
        if (!found || tests.length) throw bad(selector);
        const name = unescape(found[0]).toLowerCase().replace('|', ':');
        tests.push((element) => element.tag.toLowerCase() === name);
        take(found[0].length);
      }
    }
    end();
    chains.push(steps);
    return chains;
  };

  const fits = (element, steps, at, scope) => {
    const step = steps[at];
    if (!step.test(element)) return false;
    const isFirst = at === steps.length - 1;
    if (isFirst && !scope) return true;
    const before = (other) => (isFirst ? other === scope : fits(other, steps, at + 1, scope));
    const parent = parents.get(element);
    if (step.link === ' ') {
      for (let above = parent; above; above = parents.get(above)) if (before(above)) return true;
      return false;
    }
    if (step.link === '>') return parent !== undefined && before(parent);
    const siblings = siblingsOf(element);
    const index = siblings.indexOf(element);
    if (step.link === '+') return index > 0 && before(siblings[index - 1]);
    return siblings.slice(0, index).some(before);
  };

  const matches = (element, chains, scope) => chains.some((steps) => fits(element, steps, 0, scope));

  // Everything below an element that fits, in the order of the document; the
  // element itself too, as jsoup does, unless only its relatives are asked for.
  const find = (root, chains, scope) => {
    const found = new Elements();
    const start = scope && chains.some((steps) => /[+~]/.test(steps[steps.length - 1].link)) ? parents.get(root) ?? root : root;
    traverse(start, (node) => {
      if (!isElement(node) || (node === root && scope) || node.tag.startsWith('#')) return;
      if (matches(node, chains, scope)) found.push(node);
    });
    return found;
  };

  // -- What scripts hold -----------------------------------------------------

  // `element.text` is read as a string by some and called by others. This is a
  // function that answers as the string would wherever a string is wanted.
  const textLike = Object.create(Function.prototype);
  for (const name of Object.getOwnPropertyNames(String.prototype)) {
    const method = String.prototype[name];
    if (name === 'constructor' || name === 'length' || typeof method !== 'function') continue;
    Object.defineProperty(textLike, name, { value(...rest) { return method.apply(this(), rest); } });
  }
  Object.defineProperty(textLike, 'toJSON', { value() { return this(); } });
  Object.defineProperty(textLike, Symbol.toPrimitive, { value() { return this(); } });
  Object.defineProperty(textLike, Symbol.iterator, { value() { return this()[Symbol.iterator](); } });

  const callableText = (element) => {
    const read = (raw) => (raw === undefined ? textOf(element) : replaceText(element, raw));
    Object.defineProperty(read, 'length', { get: () => textOf(element).length });
    return Object.setPrototypeOf(read, textLike);
  };

  const replaceText = (element, raw) => {
    element.empty();
    attach(element, 0, [{ kind: TEXT, text: String(raw) }]);
    return element;
  };

  // `element.children` the same: a list to most, a call that gives the list to
  // those who know jsoup.
  const listLike = Object.create(Array.prototype);
  Object.defineProperty(listLike, Symbol.isConcatSpreadable, { value: true });
  Object.defineProperty(listLike, 'toJSON', { value() { return Array.from(this()); } });

  const callableList = (elements) => {
    const read = () => Elements.from(elements);
    Object.defineProperty(read, 'name', { value: 'children', enumerable: false });
    Object.defineProperty(read, 'length', { value: elements.length, enumerable: false });
    elements.forEach((element, index) => { read[index] = element; });
    return Object.setPrototypeOf(read, listLike);
  };

  const visible = (object, name, value) => Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true });

  class Element {
    constructor(tag, attrs) {
      visible(this, 'tag', tag);
      visible(this, 'attrs', attrs ?? {});
      contents.set(this, []);
    }
    get text() { return callableText(this); }
    get children() { return callableList(elementsOf(this)); }
    select(selector) { return find(this, read(selector)); }
    selectFirst(selector) { return this.select(selector).first(); }
    is(selector) { return matches(this, read(selector)); }
    closest(selector) {
      const chains = read(selector);
      for (let at = this; at && !at.tag.startsWith('#'); at = parents.get(at)) if (matches(at, chains)) return at;
      return null;
    }
    attr(name, value) {
      const key = String(name).toLowerCase();
      if (value !== undefined) { this.attrs[key] = String(value); return this; }
      if (!key.startsWith('abs:')) return this.hasAttr(key) ? String(this.attrs[key]) : '';
      return this.absUrl(key.slice(4));
    }
    absUrl(name) {
      const raw = this.attr(name);
      if (!this.hasAttr(name)) return '';
      const answer = call('url.parse', { input: raw.toWellFormed(), base: this.baseUri() || null }).value;
      return answer === null ? '' : answer.href;
    }
    baseUri() {
      let top = this;
      while (parents.get(top)) top = parents.get(top);
      return bases.get(top) ?? '';
    }
    hasAttr(name) { return Object.hasOwn(this.attrs, String(name).toLowerCase()); }
    removeAttr(name) { delete this.attrs[String(name).toLowerCase()]; return this; }
    attributes() { return { ...this.attrs }; }
    id() { return this.attr('id'); }
    className() { return this.attr('class').trim(); }
    classNames() { return this.className() ? [...new Set(this.className().split(/\s+/))] : []; }
    hasClass(name) { return this.classNames().some((own) => own.toLowerCase() === String(name).toLowerCase()); }
    tagName() { return this.tag; }
    nodeName() { return this.tag; }
    ownText() { return ownTextOf(this); }
    wholeText() { return wholeTextOf(this); }
    hasText() { return textOf(this) !== ''; }
    data() { return nodesOf(this).map((node) => (DATA.has(this.tag) && node.kind === TEXT ? node.text : node.kind === COMMENT ? node.text : '')).join(''); }
    val(value) {
      if (value !== undefined) return this.attr('value', value);
      return this.tag === 'textarea' ? textOf(this) : this.attr('value');
    }
    html(raw) { return raw === undefined ? writeInner(this).trim() : this.empty().append(raw); }
    outerHtml() { return write(this); }
    toString() { return this.outerHtml(); }
    toJSON() { return plainOf(this); }
    child(index) { return elementsOf(this)[index] ?? null; }
    childrenSize() { return elementsOf(this).length; }
    parent() { const above = parents.get(this); return above && above.tag !== '#fragment' ? above : null; }
    parents() {
      const all = new Elements();
      for (let at = parents.get(this); at && !at.tag.startsWith('#'); at = parents.get(at)) all.push(at);
      return all;
    }
    siblingElements() { return Elements.from(parents.get(this) ? siblingsOf(this).filter((other) => other !== this) : []); }
    elementSiblingIndex() { return siblingsOf(this).indexOf(this); }
    nextElementSibling() { const all = siblingsOf(this); return all[all.indexOf(this) + 1] ?? null; }
    previousElementSibling() { const all = siblingsOf(this); return all[all.indexOf(this) - 1] ?? null; }
    getElementById(id) { return walkFirst(this, (element) => element.attrs.id === String(id)); }
    getElementsByTag(tag) { const name = String(tag).toLowerCase(); return find(this, [[{ test: (element) => element.tag === name, link: ' ' }]]); }
    getElementsByClass(name) { return find(this, [[{ test: (element) => element.hasClass(name), link: ' ' }]]); }
    getElementsByAttribute(name) { return find(this, [[{ test: (element) => element.hasAttr(name), link: ' ' }]]); }
    getAllElements() { return find(this, [[{ test: () => true, link: ' ' }]]); }
    append(raw) { attach(this, nodesOf(this).length, fragment(raw, this)); return this; }
    prepend(raw) { attach(this, 0, fragment(raw, this)); return this; }
    appendText(raw) { attach(this, nodesOf(this).length, [{ kind: TEXT, text: String(raw) }]); return this; }
    after(raw) { return beside(this, 1, raw); }
    before(raw) { return beside(this, 0, raw); }
    empty() { for (const node of [...nodesOf(this)]) detach(node); return this; }
    remove() { detach(this); }
  }
  Object.defineProperty(Element.prototype, 'text', { enumerable: true });
  Object.defineProperty(Element.prototype, 'children', { enumerable: true });

  const walkFirst = (element, test) => {
    let first = null;
    traverse(element, (node) => { if (first === null && isElement(node) && test(node)) first = node; });
    return first;
  };

  // The tree as objects with nothing but data in them.
  const plainOf = (root) => {
    const made = new Map();
    traverse(root, (node) => {
      if (!isElement(node)) return;
      const plain = { tag: node.tag, attrs: { ...node.attrs }, text: textOf(node), children: [] };
      made.set(node, plain);
      if (node !== root) made.get(parents.get(node)).children.push(plain);
    });
    return made.get(root);
  };

  const beside = (element, offset, raw) => {
    const parent = parents.get(element);
    if (!parent) return element;
    attach(parent, nodesOf(parent).indexOf(element) + offset, fragment(raw, parent.tag.startsWith('#') ? { tag: 'body' } : parent));
    return element;
  };

  // The address against which a document's links are read.
  const bases = new WeakMap();

  const top = (self) => elementsOf(self).find((child) => child.tag === 'html') ?? null;

  class Document extends Element {
    constructor() {
      super('#root');
      // Plain readers start at the `html` element; so does the tree they see.
      Object.defineProperty(this, 'attrs', { enumerable: true, get: () => top(this)?.attrs ?? {} });
    }
    get children() { const html = top(this); return callableList(html ? elementsOf(html) : []); }
    title() { const title = this.select('title').first(); return title ? normal(wholeTextOf(title)) : ''; }
    head() { return top(this)?.child(0) ?? null; }
    body() { const html = top(this); return html ? elementsOf(html).find((child) => child.tag === 'body' || child.tag === 'frameset') ?? null : null; }
    html() { return writeInner(this); }
    location() { return bases.get(this) ?? ''; }
    documentElement() { return top(this); }
    toJSON() { return top(this)?.toJSON() ?? { tag: 'html', attrs: {}, text: '', children: [] }; }
  }

  // A list of elements: an array that knows jsoup's calls.
  class Elements extends Array {
    static get [Symbol.species]() { return Array; }
    static from(elements) { const list = new Elements(); for (const element of elements) list.push(element); return list; }
    size() { return this.length; }
    isEmpty() { return this.length === 0; }
    get(index) {
      if (!Number.isInteger(index) || index < 0 || index >= this.length) throw new RangeError(`no element ${index} in a list of ${this.length}`);
      return this[index];
    }
    first() { return this[0] ?? null; }
    last() { return this[this.length - 1] ?? null; }
    eq(index) { return Elements.from(this[index] ? [this[index]] : []); }
    text() { return this.map((element) => textOf(element)).join(' '); }
    hasText() { return this.some((element) => element.hasText()); }
    eachText() { return this.map((element) => textOf(element)).filter((own) => own !== ''); }
    eachAttr(name) { return this.filter((element) => element.attr(name) !== '').map((element) => element.attr(name)); }
    attr(name, value) {
      if (value !== undefined) { for (const element of this) element.attr(name, value); return this; }
      return this.find((element) => element.attr(name) !== '')?.attr(name) ?? '';
    }
    hasAttr(name) { return this.some((element) => element.hasAttr(name)); }
    removeAttr(name) { for (const element of this) element.removeAttr(name); return this; }
    hasClass(name) { return this.some((element) => element.hasClass(name)); }
    html() { return this.map((element) => element.html()).join('\n'); }
    outerHtml() { return this.map((element) => element.outerHtml()).join('\n'); }
    toString() { return this.outerHtml(); }
    is(selector) { const chains = read(selector); return this.some((element) => matches(element, chains)); }
    not(selector) { const chains = read(selector); return Elements.from(this.filter((element) => !matches(element, chains))); }
    select(selector) {
      const chains = read(selector);
      return Elements.from(new Set(this.flatMap((element) => Array.from(find(element, chains)))));
    }
    parents() { return Elements.from(new Set(this.flatMap((element) => Array.from(element.parents())))); }
    next() { return Elements.from(this.map((element) => element.nextElementSibling()).filter(Boolean)); }
    prev() { return Elements.from(this.map((element) => element.previousElementSibling()).filter(Boolean)); }
    append(raw) { for (const element of this) element.append(raw); return this; }
    prepend(raw) { for (const element of this) element.prepend(raw); return this; }
    after(raw) { for (const element of this) element.after(raw); return this; }
    before(raw) { for (const element of this) element.before(raw); return this; }
    empty() { for (const element of this) element.empty(); return this; }
    remove() { for (const element of this) element.remove(); return this; }
  }

  for (const name of ['size', 'isEmpty', 'get', 'first', 'last', 'eq', 'select', 'eachText', 'eachAttr', 'text', 'attr', 'remove']) {
    Object.defineProperty(listLike, name, { value(...rest) { return this()[name](...rest); } });
  }

  // -- The four parsers ------------------------------------------------------

  const html = (raw, base) => {
    const document = new Document();
    build(call('parser.html', { text: text(raw) }).value.nodes, document);
    const stated = text(base) ?? '';
    const written = find(document, read('base[href]')).first()?.attrs.href;
    const own = written === undefined ? null : call('url.parse', { input: written.toWellFormed(), base: stated || null }).value;
    bases.set(document, own?.href ?? stated);
    return document;
  };

  const xml = (raw) => {
    const made = [];
    for (const [parent, tag, attrs, own] of call('parser.xml', { text: text(raw) }).value.nodes) {
      const element = { tag, attrs, text: own, children: [] };
      if (parent >= 0) made[parent].children.push(element);
      made.push(element);
    }
    return made[0];
  };

  const csv = (raw, options) => {
    const header = Boolean(options?.header);
    const { columns, rows } = call('parser.csv', { text: text(raw), header, delimiter: text(options?.delimiter) }).value;
    if (!header) return rows;
    return rows.map((row) => Object.fromEntries(columns.slice(0, row.length).map((name, index) => [name, row[index]])));
  };

  const yaml = (raw) => {
    const { value, odd } = call('parser.yaml', { text: text(raw) }).value;
    const holder = { value };
    for (const [path, word] of odd) {
      const last = path.length ? path[path.length - 1] : 'value';
      const target = path.length ? path.slice(0, -1).reduce((at, key) => at[key], value) : holder;
      Object.defineProperty(target, last, { value: Number(word), enumerable: true, writable: true, configurable: true });
    }
    return holder.value;
  };

  return { parser: Object.freeze({ html, xml, csv, yaml }) };
}
