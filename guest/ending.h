/* What the host is told about values that were thrown, promises that were rejected, and
 * the place where a run was stopped. Nothing here runs code of the script. */

/* ---- Places ----------------------------------------------------------------- */

static JSAtom script_name;

/* The innermost line of the script that is being executed. The engine notes where a
 * function is before each call; see POLLS in builder/src/patch.rs for loops. */
static void find_place(struct place *place)
{
    JSStackFrame *frame;
    JSFunctionBytecode *b;
    JSObject *p;
    int column;

    place->line = place->column = 0;
    for (frame = rt->current_stack_frame; frame; frame = frame->prev_frame) {
        p = JS_VALUE_GET_OBJ(frame->cur_func);
        if (!js_class_has_bytecode(p->class_id))
            continue;
        b = p->u.func.function_bytecode;
        if (b->filename != script_name || !frame->cur_pc)
            continue;
        place->line = find_line_num(ctx, b, frame->cur_pc - b->byte_code_buf - 1, &column);
        place->column = column;
        return;
    }
}

/* The first frame of a trace that is in the script. The trace of an error is kept where
 * scripts cannot write. */
static void read_trace(struct place *place, JSValueConst trace)
{
    const char *text, *at;
    unsigned line = 0, column = 0;

    place->line = place->column = 0;
    if (!JS_IsString(trace))
        return;
    text = JS_ToCString(ctx, trace);
    if (!text)
        return;
    at = strstr(text, SCRIPT_NAME ":");
    if (at && read_position(at + sizeof(SCRIPT_NAME), &line, &column)) {
        place->line = line;
        place->column = column;
    }
    JS_FreeCString(ctx, text);
}

/* Where a value that is no error was thrown, if it was the last. */
static int find_throw(struct place *place, JSValueConst thrown)
{
    place->line = place->column = 0;
    if (last_thrown != thrown || JS_IsUndefined(ctx->error_back_trace))
        return 0;
    read_trace(place, ctx->error_back_trace);
    return 1;
}

/* ---- What was thrown -------------------------------------------------------- */

static void set_text(struct text *text, JSValueConst string, uint32_t chars_max)
{
    struct writer w;

    /* Cut here already, so that an enormous message costs no second copy; the
     * host cuts again at a character. */
    writer_init(&w, MODE_DISPLAY, UINT32_MAX, BREACH_MEMORY);
    if (JS_VALUE_GET_STRING(string)->len > chars_max) {
        JSValue head = js_sub_string(ctx, JS_VALUE_GET_STRING(string), 0, chars_max);
        put_plain(&w, JS_VALUE_GET_STRING(head));
        JS_FreeValue(ctx, head);
    } else {
        put_plain(&w, JS_VALUE_GET_STRING(string));
    }
    text->start = w.text;
    text->length = w.length;
    hot.first_text_taken = 1; /* the host reads it after we return */
}

/* A value as its contents: `{"code":5}`, `[1,2]`, `undefined`. */
static JSValue contents_of(JSValueConst value)
{
    struct writer w;
    JSValue text;

    writer_init(&w, MODE_DISPLAY, UINT32_MAX, BREACH_MEMORY);
    w.is_quiet = 1;
    w.cut_at = CONTENTS_BYTES_MAX;
    put_owned(&w, js_dup(value), NULL);
    text = JS_NewStringLen(ctx, w.text, w.length);
    writer_free(&w);
    return text;
}

static int is_error(JSValueConst value)
{
    JSClassID class_id = JS_VALUE_GET_OBJ(value)->class_id;

    return class_id == JS_CLASS_ERROR || class_id == JS_CLASS_DOM_EXCEPTION;
}

/* Whether an object has only what an error has: then its message says it all. */
static int is_like_error(JSValueConst object)
{
    JSPropertyEnum *names;
    uint32_t count, i;
    int is_like = 1;

    if (JS_VALUE_GET_OBJ(object)->class_id == JS_CLASS_PROXY)
        return 0;
    if (JS_GetOwnPropertyNames(ctx, &names, &count, object, JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY)) {
        JS_FreeValue(ctx, JS_GetException(ctx));
        return 0;
    }
    for (i = 0; i < count; i++)
        is_like &= names[i].atom == JS_ATOM_name || names[i].atom == JS_ATOM_message || names[i].atom == JS_ATOM_stack;
    JS_FreePropertyEnum(ctx, names, count);
    return is_like;
}

/* The message of what was thrown: an error's own, else the contents. */
static JSValue message_of(JSValueConst thrown, int is_quiet)
{
    JSValue message;

    if (!JS_IsObject(thrown))
        return contents_of(thrown);
    if (is_error(thrown))
        return error_text(thrown, JS_ATOM_message, "", is_quiet);
    message = error_text(thrown, JS_ATOM_message, "", 1);
    if (JS_VALUE_GET_STRING(message)->len > 0 && is_like_error(thrown))
        return message;
    JS_FreeValue(ctx, message);
    return contents_of(thrown);
}

static JSValue name_of(JSValueConst thrown, int is_quiet)
{
    /* A function's name is not that of an error. */
    if (!JS_IsObject(thrown) || JS_IsFunction(ctx, thrown))
        return JS_NewString(ctx, "Error");
    return error_text(thrown, JS_ATOM_name, "Error", is_quiet || !is_error(thrown));
}

/* Of a rejection nobody handled; see `Rejections` in crates/sandbox/src/job.rs. */
#define REJECTIONS_TOLD_MAX 8
#define REJECTION_CHARS_MAX 500
#define REJECTION_HELPER_CHARS_MAX 3072

/* `else_at` is the place if the value knows none of its own. */
static void describe_thrown(struct thrown *out, JSValueConst thrown, const struct place *else_at, uint32_t chars_max,
                            int is_quiet)
{
    const struct helper *helper = JS_IsObject(thrown) ? helper_of(thrown) : NULL;
    JSValue empty = JS_AtomToString(ctx, JS_ATOM_empty_string);

    out->at.line = out->at.column = 0;
    if (JS_IsObject(thrown) && JS_VALUE_GET_OBJ(thrown)->class_id == JS_CLASS_ERROR)
        read_trace(&out->at, JS_VALUE_GET_OBJ(thrown)->u.object_data);
    else
        out->at = *else_at;
    if (helper && out->at.line == 0)
        out->at = helper->asked_at;
    set_text(&out->name, name_of(thrown, is_quiet), THROWN_CHARS_MAX);
    set_text(&out->message, message_of(thrown, is_quiet), chars_max);
    /* Whole or not at all: the host reads it as JSON. */
    if (is_quiet && helper && JS_VALUE_GET_STRING(helper->json)->len > REJECTION_HELPER_CHARS_MAX)
        helper = NULL;
    set_text(&out->helper, helper ? helper->json : empty, UINT32_MAX);
}

/* ---- Promises that were rejected and that nothing handled --------------------- */

/* So many are known one by one; of the rest there is the number. */
#define REJECTED_MAX 32

static struct {
    struct { JSValue promise, reason; struct place at; } known[REJECTED_MAX];
    uint32_t known_count;
    int64_t count; /* all that are not handled now */
    struct thrown told[REJECTIONS_TOLD_MAX];
} rejected;

/* The engine's word about a promise: rejected without a handler, or handled after all. */
static void on_rejection(JSContext *context, JSValueConst promise, JSValueConst reason, bool is_handled, void *opaque)
{
    uint32_t i;

    if (!is_handled) {
        rejected.count++;
        if (rejected.known_count == REJECTED_MAX)
            return;
        i = rejected.known_count++;
        rejected.known[i].promise = js_dup(promise);
        rejected.known[i].reason = js_dup(reason);
        /* Thrown by an async function, or handed to `reject`. */
        if (!find_throw(&rejected.known[i].at, reason))
            find_place(&rejected.known[i].at);
        return;
    }
    rejected.count--;
    for (i = 0; i < rejected.known_count; i++) {
        if (rejected.known[i].promise != promise)
            continue;
        JS_FreeValue(ctx, rejected.known[i].promise);
        JS_FreeValue(ctx, rejected.known[i].reason);
        rejected.known_count--;
        memmove(&rejected.known[i], &rejected.known[i + 1], (rejected.known_count - i) * sizeof rejected.known[0]);
        return;
    }
}

/* Where the promise of the body was rejected, or what ended the run was thrown. */
static void find_end(struct place *place, JSValueConst thrown)
{
    uint32_t i;

    for (i = 0; i < rejected.known_count; i++)
        if (rejected.known[i].promise == hot.finished) {
            *place = rejected.known[i].at;
            return;
        }
    find_throw(place, thrown);
}

/* Tells the host, at the end. The promise of the body itself is the end, and no news. */
static void tell_rejections(void)
{
    uint32_t i;

    mailbox.rejections = rejected.told;
    mailbox.rejections_told = 0;
    if (JS_PromiseState(ctx, hot.finished) == JS_PROMISE_REJECTED)
        rejected.count--;
    for (i = 0; i < rejected.known_count && mailbox.rejections_told < REJECTIONS_TOLD_MAX; i++) {
        if (rejected.known[i].promise == hot.finished)
            continue;
        describe_thrown(&rejected.told[mailbox.rejections_told++], rejected.known[i].reason, &rejected.known[i].at,
                        REJECTION_CHARS_MAX, 1);
    }
    mailbox.rejections_count = rejected.count;
}
