/* Calls from the script to its host, of both kinds, and what the prelude is built
 * from. Nothing here is reachable by a script but through a face that closes over it. */

/* Errors made by a power, with the JSON they came from: an uncaught one is told
 * apart from whatever a script may dress up to look the same. */
static struct helper {
    JSValue error, json;
    struct place asked_at; /* where the call was made, for an error no script has met */
} *helpers;
static uint32_t helpers_count, helpers_capacity;

/* Globals of the host, which win over parameters of the same name. */
static JSAtom reserved[32];
static uint32_t reserved_count;

static int is_reserved(JSAtom name)
{
    uint32_t i;

    for (i = 0; i < reserved_count; i++)
        if (reserved[i] == name)
            return 1;
    return 0;
}

/* Makes room for one more in a growing list. */
static void *room_for_one(void *list, uint32_t count, uint32_t *capacity, size_t size)
{
    void *longer;

    if (count < *capacity)
        return list;
    *capacity = *capacity ? *capacity * 2 : 8;
    longer = guest_alloc(NULL, *capacity * size);
    if (count > 0)
        memcpy(longer, list, count * size);
    if (list != hot.first_calls)
        free(list);
    return longer;
}

/* What is known of an error that a power made; null for any other value. */
static const struct helper *helper_of(JSValueConst thrown)
{
    uint32_t i;

    for (i = 0; i < helpers_count; i++)
        if (JS_VALUE_GET_PTR(helpers[i].error) == JS_VALUE_GET_PTR(thrown))
            return &helpers[i];
    return NULL;
}

static void find_place(struct place *place);

/* An error of a power: `message` and, beside it, what the engine knows. One with a
 * `code` is a script's, and frozen. It gets no trace yet, so that it gets one where
 * the script first meets it. */
static JSValue helper_error(JSValue json, JSValue fields, struct place asked_at)
{
    static const char *const names[] = { "message", "kind", "reason", "helper", "code", "toolName" };
    JSValue error = JS_NewObjectClass(ctx, JS_CLASS_ERROR);
    int has_code = 0, flags = JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE;
    size_t i;

    if (JS_IsObject(fields)) {
        JSValue code = JS_GetPropertyStr(ctx, fields, "code");
        has_code = !JS_IsUndefined(code);
        JS_FreeValue(ctx, code);
    }
    if (has_code)
        flags = JS_PROP_ENUMERABLE;
    for (i = 0; i < countof(names) && JS_IsObject(fields); i++) {
        JSValue field = JS_GetPropertyStr(ctx, fields, names[i]);
        if (JS_IsUndefined(field))
            continue;
        JS_DefinePropertyValueStr(ctx, error, names[i], field, flags);
    }
    if (has_code)
        JS_PreventExtensions(ctx, error);
    helpers = room_for_one(helpers, helpers_count, &helpers_capacity, sizeof *helpers);
    helpers[helpers_count].error = js_dup(error);
    helpers[helpers_count].asked_at = asked_at;
    helpers[helpers_count++].json = json;
    JS_FreeValue(ctx, fields);
    return error;
}

/* Takes the answer out of the mailbox: the call's value, or JS_EXCEPTION. */
static JSValue take_answer(JSValueConst shape, struct place asked_at)
{
    uint32_t json_length = mailbox.answer_json_length, bytes_length = mailbox.answer_bytes_length;
    char *json = guest_alloc(NULL, json_length + 1);
    uint8_t *bytes = bytes_length ? js_malloc(ctx, bytes_length) : NULL;
    JSValue arguments[2], shaped;

    host_take(json, bytes);
    json[json_length] = 0;
    arguments[0] = JS_ParseJSON(ctx, json, json_length, "answer");
    if (JS_IsException(arguments[0])) {
        js_free(ctx, bytes);
        free(json);
        return JS_EXCEPTION;
    }
    if (mailbox.answer_is_error) {
        JSValue text = JS_NewStringLen(ctx, json, json_length);
        js_free(ctx, bytes);
        free(json);
        return JS_Throw(ctx, helper_error(text, arguments[0], asked_at));
    }
    free(json);
    if (JS_IsUndefined(shape)) {
        js_free(ctx, bytes);
        return arguments[0];
    }
    arguments[1] = bytes ? JS_NewUint8Array(ctx, bytes, bytes_length, js_array_buffer_realloc, NULL, false) : JS_UNDEFINED;
    shaped = JS_Call(ctx, shape, JS_UNDEFINED, 2, vc(arguments));
    JS_FreeValue(ctx, arguments[0]);
    JS_FreeValue(ctx, arguments[1]);
    return shaped;
}

static void settle(uint32_t id)
{
    struct call call;
    JSValue value, done;
    uint32_t i;
    int failed;

    for (i = 0; i < hot.calls_count && hot.calls[i].id != id; i++) {}
    if (i == hot.calls_count)
        return;
    call = hot.calls[i];
    hot.calls[i] = hot.calls[--hot.calls_count];
    value = take_answer(call.shape, call.asked_at);
    failed = JS_IsException(value);
    if (failed)
        value = JS_GetException(ctx);
    done = JS_Call(ctx, failed ? call.reject : call.resolve, JS_UNDEFINED, 1, vc(&value));
    JS_FreeValue(ctx, done);
    JS_FreeValue(ctx, value);
    JS_FreeValue(ctx, call.resolve);
    JS_FreeValue(ctx, call.reject);
    JS_FreeValue(ctx, call.shape);
}

enum { CALL_QUEUED, CALL_DIRECT };

/* Sends one request. Returns its id, or 0 with an exception. */
static uint32_t send_request(JSValueConst *argv, int kind)
{
    struct writer w;
    const char *operation;
    const uint8_t *bytes = NULL;
    size_t operation_length, bytes_length = 0;

    operation = JS_ToCStringLen(ctx, &operation_length, argv[0]);
    if (!operation)
        return 0;
    writer_init(&w, MODE_JSON, mailbox.payload_bytes_max, BREACH_PAYLOAD_BYTES);
    w.depth_max = PAYLOAD_DEPTH_MAX;
    switch (put_value(&w, argv[1], NULL)) {
    case WROTE_FAILED:
        writer_free(&w);
        JS_FreeCString(ctx, operation);
        return 0;
    case WROTE_NOTHING:
        put_literal(&w, "null");
    }
    /* Looked up last: a `toJSON` above could have detached the buffer. */
    if (!JS_IsUndefined(argv[2])) {
        bytes = JS_GetUint8Array(ctx, &bytes_length, argv[2]);
        if (!bytes && JS_HasException(ctx)) {
            writer_free(&w);
            JS_FreeCString(ctx, operation);
            return 0;
        }
    }
    hot.calls_made++;
    (kind == CALL_QUEUED ? host_queued : host_direct)(hot.calls_made, operation, operation_length,
                                                      w.text, w.length, bytes, bytes_length);
    writer_free(&w);
    JS_FreeCString(ctx, operation);
    return hot.calls_made;
}

/* queued(operation, value, bytes?, shape?) -> Promise. `shape(value, bytes)` makes
 * of the answer what the promise settles with; without it that is the value. */
static JSValue js_queued(JSContext *context, JSValueConst this, int argc, JSValueConst *argv)
{
    JSValue functions[2], promise;
    struct place asked_at;
    uint32_t id;

    promise = JS_NewPromiseCapability(ctx, functions);
    if (JS_IsException(promise))
        return promise;
    id = send_request(argv, CALL_QUEUED);
    if (id == 0) {
        JS_FreeValue(ctx, functions[0]);
        JS_FreeValue(ctx, functions[1]);
        JS_FreeValue(ctx, promise);
        return JS_EXCEPTION;
    }
    hot.calls = room_for_one(hot.calls, hot.calls_count, &hot.calls_capacity, sizeof *hot.calls);
    find_place(&asked_at);
    hot.calls[hot.calls_count++] = (struct call){ id, asked_at, functions[0], functions[1], js_dup(argv[3]) };
    return promise;
}

/* direct(operation, value, bytes?, shape?) -> value. The script stands still. */
static JSValue js_direct(JSContext *context, JSValueConst this, int argc, JSValueConst *argv)
{
    struct place asked_at = { 0, 0 }; /* the error is thrown there, and has a trace */

    if (send_request(argv, CALL_DIRECT) == 0)
        return JS_EXCEPTION;
    return take_answer(argv[3], asked_at);
}

/* console.log and its four siblings. */
static JSValue js_console(JSContext *context, JSValueConst this, int argc, JSValueConst *argv, int level)
{
    struct writer w;
    int i;

    writer_init(&w, MODE_DISPLAY, mailbox.console_bytes_max, BREACH_CONSOLE_BYTES);
    for (i = 0; i < argc; i++) {
        if (i > 0)
            put_char(&w, ' ');
        put_owned(&w, js_dup(argv[i]), NULL);
    }
    host_log(level, w.text, w.length);
    writer_free(&w);
    return JS_UNDEFINED;
}

/* face(power, install): what `install(global)` adds when a job has the power. */
static JSValue js_face(JSContext *context, JSValueConst this, int argc, JSValueConst *argv)
{
    JSAtom name = JS_ValueToAtom(ctx, argv[0]);

    JS_SetProperty(ctx, faces, name, js_dup(argv[1]));
    JS_FreeAtom(ctx, name);
    return JS_UNDEFINED;
}

/* reserve(name, value?): a global every script has; parameters cannot replace it. */
static JSValue js_reserve(JSContext *context, JSValueConst this, int argc, JSValueConst *argv)
{
    JSAtom name = JS_ValueToAtom(ctx, argv[0]);

    if (reserved_count == countof(reserved))
        return JS_ThrowRangeError(ctx, "too many reserved globals");
    reserved[reserved_count++] = name;
    if (argc > 1)
        JS_DefinePropertyValue(ctx, ctx->global_obj, name, js_dup(argv[1]),
                               JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
    return JS_UNDEFINED;
}
