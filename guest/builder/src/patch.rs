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

/// No hook of the engine's own hands a script the functions on the stack: `CallSite` had
/// `getFunction`, and through it the raw calls to the host were in reach. The trace is
/// text, of a length scripts cannot set.
const TRACES: [Patch; 4] = [
    (
        1,
        "    JS_CGETSET_DEF(\"stackTraceLimit\", js_error_get_stackTraceLimit, js_error_set_stackTraceLimit ),
",
        "",
    ),
    (
        1,
        "    JS_CGETSET_DEF(\"prepareStackTrace\", js_error_get_prepareStackTrace, js_error_set_prepareStackTrace ),
",
        "",
    ),
    (
        1,
        "    JS_CFUNC_MAGIC_DEF(\"getFunction\", 0, js_callsite_getfield, offsetof(JSCallSiteData, func)),
",
        "",
    ),
    (
        1,
        "        has_prepare = JS_IsFunction(ctx, prepare);
",
        "        has_prepare = false;
",
    ),
];

/// What is in the image is frozen (guest/seal.h). An object that inherits from it may
/// still have a property of the same name: `this.name = …` in a class of errors must
/// work. To change the image itself is an error in sloppy code too, because a change
/// that does nothing is harder to find than one that throws.
const FROZEN: [Patch; 3] = [
    (
        1,
        "            } else if (!(prs->flags & JS_PROP_WRITABLE)) {
                goto read_only_prop;
            } else {
                break;
",
        "            } else if (!(prs->flags & JS_PROP_WRITABLE) && !IS_IMAGE(p1)) {
                goto read_only_prop;
            } else {
                break;
",
    ),
    (
        1,
        "        read_only_prop:
            ret = JS_ThrowTypeErrorReadOnly(ctx, flags, prop);
",
        "        read_only_prop:
            ret = JS_ThrowTypeErrorReadOnly(ctx, p && IS_FROZEN_IMAGE(p) ? JS_PROP_THROW : flags, prop);
",
    ),
    (
        2,
        "            ret = JS_ThrowTypeErrorOrFalse(ctx, flags, \"object is not extensible\");
            goto done;
",
        "            ret = JS_ThrowTypeErrorOrFalse(ctx, IS_FROZEN_IMAGE(p) ? JS_PROP_THROW : flags,
                                           IS_FROZEN_IMAGE(p) ? \"built-in objects cannot be changed\"
                                                       : \"object is not extensible\");
            goto done;
",
    ),
];

/// A script of code mode has the clock it is given; see `clock` in guest/calls.h.
const CLOCK: [Patch; 1] = [(
    1,
    "    return js__gettimeofday_us() / 1000;
",
    "    return given_clock.is_set ? given_clock.now_ms : js__gettimeofday_us() / 1000;
",
)];

/// Errors are placed where an author looks for them: at the name of the property that
/// could not be read, at the name of the function that was called and not inside its
/// arguments, at the target of an assignment, and otherwise in their own statement.
const PLACES: [Patch; 11] = [
    (
        1,
        "    call_type = FUNC_CALL_NORMAL;
    switch(s->token.val) {
    case TOK_NUMBER:
",
        "    int call_line = s->token.line_num, call_col = s->token.col_num;
    call_type = FUNC_CALL_NORMAL;
    switch(s->token.val) {
    case TOK_NUMBER:
",
    ),
    (
        1,
        "        } else {
            emit_source_loc(s);
            if (js_parse_postfix_expr(s, 0))
                return -1;
            accept_lparen = true;
            if (s->token.val != '(') {
",
        "        } else {
            call_line = s->token.line_num;
            call_col = s->token.col_num;
            emit_source_loc(s);
            if (js_parse_postfix_expr(s, 0))
                return -1;
            accept_lparen = true;
            if (s->token.val != '(') {
",
    ),
    (
        1,
        "            parse_func_call2:
                emit_source_loc(s);
",
        "            parse_func_call2:
                emit_source_loc_at(s, call_line, call_col);
",
    ),
    (
        1,
        "                /* drop the index */
                emit_op(s, OP_drop);

                /* apply function call */
",
        "                /* drop the index */
                emit_op(s, OP_drop);

                emit_source_loc_at(s, call_line, call_col);
                /* apply function call */
",
    ),
    (
        1,
        "            emit_func_call:
                switch(opcode) {
",
        "            emit_func_call:
                emit_source_loc_at(s, call_line, call_col);
                switch(opcode) {
",
    ),
    (
        1,
        "        parse_property:
            if (s->token.val == TOK_PRIVATE_NAME) {
",
        "        parse_property:
            call_line = s->token.line_num;
            call_col = s->token.col_num;
            if (s->token.val == TOK_PRIVATE_NAME) {
",
    ),
    (
        1,
        "                    emit_op(s, OP_get_field);
                    emit_atom(s, s->token.u.ident.atom);
                }
            }
            if (next_token(s))
                return -1;
        } else if (s->token.val == '[') {
            int prev_op;

        parse_array_access:
",
        "                    emit_source_loc_at(s, call_line, call_col);
                    emit_op(s, OP_get_field);
                    emit_atom(s, s->token.u.ident.atom);
                }
            }
            if (next_token(s))
                return -1;
        } else if (s->token.val == '[') {
            int prev_op;

        parse_array_access:
            call_line = s->token.line_num;
            call_col = s->token.col_num;
",
    ),
    (
        1,
        "                emit_op(s, OP_get_super_value);
            } else {
                emit_op(s, OP_get_array_el);
            }
",
        "                emit_op(s, OP_get_super_value);
            } else {
                emit_source_loc_at(s, call_line, call_col);
                emit_op(s, OP_get_array_el);
            }
",
    ),
    (
        1,
        " next:
    if (s->token.val == TOK_IDENT) {
        /* name0 is used",
        " next: ;
    int target_line = s->token.line_num, target_col = s->token.col_num;
    if (s->token.val == TOK_IDENT) {
        /* name0 is used",
    ),
    (
        1,
        "        put_lvalue(s, opcode, scope, name, label, PUT_LVALUE_KEEP_TOP, false);
",
        "        emit_source_loc_at(s, target_line, target_col);
        put_lvalue(s, opcode, scope, name, label, PUT_LVALUE_KEEP_TOP, false);
",
    ),
    (
        1,
        "    switch(tok = s->token.val) {
    case '{':
        if (js_parse_block(s))
",
        "    emit_source_loc(s);
    switch(tok = s->token.val) {
    case '{':
        if (js_parse_block(s))
",
    ),
];

/// What is thrown and is no error has no trace of its own, so the context keeps the last
/// one. It is made anew for each value: one that was caught must not lend its place to
/// the next. A value that is thrown on keeps the place it was first thrown at.
const THROWS: [Patch; 2] = [
    (
        1,
        "    if (needs_backtrace(rt->current_exception)
    || JS_IsUndefined(ctx->error_back_trace)) {
",
        "    if (needs_backtrace(rt->current_exception)
    || is_new_throw(ctx, rt->current_exception)) {
",
    ),
    (
        1,
        "static void JS_ThrowInterrupted(JSContext *ctx)
",
        "/* Held, so that its address is not given to another value. Nothing was thrown yet, which
 * is not the same as `undefined`. */
static JSValue last_thrown = JS_UNINITIALIZED;

static bool is_new_throw(JSContext *ctx, JSValueConst thrown)
{
    if (JS_VALUE_GET_TAG(thrown) == JS_TAG_OBJECT && JS_VALUE_GET_OBJ(thrown)->class_id == JS_CLASS_ERROR)
        return JS_IsUndefined(ctx->error_back_trace);
    if (last_thrown == thrown && !JS_IsUndefined(ctx->error_back_trace))
        return false;
    JS_FreeValue(ctx, last_thrown);
    last_thrown = js_dup(thrown);
    JS_FreeValue(ctx, ctx->error_back_trace);
    ctx->error_back_trace = JS_UNDEFINED;
    return true;
}

static void JS_ThrowInterrupted(JSContext *ctx)
",
    ),
];

/// A loop notes where it is when it is polled, so that a run that is stopped there has a
/// place. The position is read one byte back, as after a call.
const POLLS: [Patch; 2] = [
    (
        7,
        "if (unlikely(js_poll_interrupts(ctx)))",
        "if (unlikely(js_poll_interrupts_at(ctx, sf, pc + 1)))",
    ),
    (
        1,
        "        return __js_poll_interrupts(ctx);
    } else {
        return 0;
    }
}
",
        "        return __js_poll_interrupts(ctx);
    } else {
        return 0;
    }
}

static inline __exception int js_poll_interrupts_at(JSContext *ctx, JSStackFrame *sf, uint8_t *pc)
{
    if (likely(--ctx->interrupt_counter > 0))
        return 0;
    sf->cur_pc = pc;
    return __js_poll_interrupts(ctx);
}
",
    ),
];

/// Changes the engine's source in place.
pub(crate) fn apply(path: &Path) -> Result<()> {
    let mut text = fs::read_to_string(path).context("could not read quickjs.c")?;
    let patches = STACK.iter().chain(&BLOCKS).chain(&COLLECTOR).chain(&COUNTS);
    let patches = patches.chain(&TRACES).chain(&FROZEN).chain(&CLOCK).chain(&PLACES);
    let patches = patches.chain(&THROWS).chain(&POLLS);
    for (count, before, after) in patches {
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
