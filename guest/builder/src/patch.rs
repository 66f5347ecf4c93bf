//! What is changed in `quickjs.c`: by text, so that an update of the engine that moves
//! one of these places is refused instead of half changed.

use std::fs;
use std::path::Path;

use wasmtime::error::Context as _;
use wasmtime::{Result, ensure};

/// How often a text is there, the text, and what takes its place; in this order.
type Patch = (usize, &'static str, &'static str);

/// Under WASI the engine switches its stack check off, and then deep recursion would
/// trap where it should throw.
const STACK: [Patch; 2] = [
    (1, "#ifdef __wasi__\n    rt->stack_size = 0;\n#endif\n", ""),
    (
        1,
        "#if defined(__wasi__)\n    rt->stack_limit = 0; /* no limit */\n#else\n",
        "#if 0\n#else\n",
    ),
];

/// The context lies where the runtime does, small blocks come from one region first, and
/// blocks of the image are never given back. See guest/heap.h.
const BLOCKS: [Patch; 3] = [
    (
        1,
        "ctx = js_mallocz_rt(rt, sizeof(JSContext));",
        "ctx = context_memory(sizeof(JSContext));",
    ),
    (
        1,
        "        head = &rt->arena_state.free_arena_list[block_size_idx];
        el = head->next;
",
        "        b = early_alloc(block_size_idx, block_size);
        if (likely(b)) {
            b->u.block_idx = 0;
            b->block_size_idx = block_size_idx;
            return b->user_data;
        }
        head = &rt->arena_state.free_arena_list[block_size_idx];
        el = head->next;
",
    ),
    (
        1,
        "                                  sizeof(JSArena));
        b->u.free_next = ar->first_free_block;
",
        "                                  sizeof(JSArena));
        if (early_free(b, block_size_idx) || arena_is_sealed(ar))
            return;
        b->u.free_next = ar->first_free_block;
",
    ),
];

/// The collector passes by what is sealed: a count below zero.
const COLLECTOR: [Patch; 2] = [
    (
        1,
        "    assert(JS_REF_COUNT(p) > 0);
    JS_REF_COUNT(p)--;
",
        "    if (JS_REF_COUNT(p) < 0)
        return;
    JS_REF_COUNT(p) -= 1;
",
    ),
    (
        1,
        "    JS_REF_COUNT(p)++;
    if (JS_REF_COUNT(p) == 1) {
        /* ref_count was 0",
        "    if (JS_REF_COUNT(p) < 0)
        return;
    JS_REF_COUNT(p) += 1;
    if (JS_REF_COUNT(p) == 1) {
        /* ref_count was 0",
    ),
];

/// Every other place that counts references leaves alone what is sealed.
const COUNTS: [Patch; 14] = [
    (7, "JS_REF_COUNT(p)++", "JS_REF_INC(p)"),
    (1, "JS_REF_COUNT(ctx)++", "JS_REF_INC(ctx)"),
    (1, "JS_REF_COUNT(sh)++", "JS_REF_INC(sh)"),
    (6, "JS_REF_COUNT(var_ref)++", "JS_REF_INC(var_ref)"),
    (1, "JS_REF_COUNT(sf->cur_gc_obj)++", "JS_REF_INC(sf->cur_gc_obj)"),
    (1, "JS_REF_COUNT(s)++", "JS_REF_INC(s)"),
    (1, "JS_REF_COUNT(b)++", "JS_REF_INC(b)"),
    (1, "JS_REF_COUNT(str)--", "JS_REF_DEC(str)"),
    (1, "--JS_REF_COUNT(str)", "JS_REF_DEC(str)"),
    (1, "--JS_REF_COUNT(ctx)", "JS_REF_DEC(ctx)"),
    (2, "--JS_REF_COUNT(p)", "JS_REF_DEC(p)"),
    (1, "--JS_REF_COUNT(s)", "JS_REF_DEC(s)"),
    (1, "--JS_REF_COUNT(sh)", "JS_REF_DEC(sh)"),
    (1, "--JS_REF_COUNT(var_ref)", "JS_REF_DEC(var_ref)"),
];

/// Changes the engine's source in place.
pub(crate) fn apply(path: &Path) -> Result<()> {
    let mut text = fs::read_to_string(path).context("could not read quickjs.c")?;
    for (count, before, after) in STACK.iter().chain(&BLOCKS).chain(&COLLECTOR).chain(&COUNTS) {
        let found = text.matches(before).count();
        ensure!(
            found == *count,
            "quickjs.c is not the one the patch was made for; it has {found} times: {before}"
        );
        text = text.replace(before, after);
    }
    // A count that nobody looked at would free what is sealed, or write to it.
    let uncounted = text.lines().find(|line| {
        line.contains("JS_REF_COUNT(") && (line.contains("++") || line.contains("--"))
    });
    ensure!(
        uncounted.is_none(),
        "quickjs.c counts references where no patch is: {}",
        uncounted.unwrap_or_default()
    );
    fs::write(path, text).context("could not write quickjs.c")
}
