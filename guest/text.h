/* UTF-8 both ways for the prelude, the reading of positions, and the object the
 * prelude is given. */

/* Reads `line:column`. */
static int read_position(const char *at, unsigned *line, unsigned *column)
{
    unsigned *field = line;
    int digits = 0;

    for (;; at++) {
        if (*at >= '0' && *at <= '9' && *field < 100000000) {
            *field = *field * 10 + (*at - '0');
            digits++;
        } else if (*at == ':' && field == line && digits) {
            field = column;
            digits = 0;
        } else {
            return field == column && digits;
        }
    }
}

/* encode(string) -> Uint8Array */
static JSValue js_encode(JSContext *context, JSValueConst this, int argc, JSValueConst *argv)
{
    struct writer w;
    JSValue bytes;

    writer_init(&w, MODE_DISPLAY, UINT32_MAX, BREACH_MEMORY);
    if (put_string(&w, argv[0], 0) == WROTE_FAILED) {
        writer_free(&w);
        return JS_EXCEPTION;
    }
    bytes = JS_NewUint8ArrayCopy(ctx, (uint8_t *)w.text, w.length);
    writer_free(&w);
    return bytes;
}

/* How many bytes at the start of `in` are one well-formed character, or, negated,
 * how many stand for one U+FFFD, by the rule of the Encoding standard. */
static int utf8_step(const uint8_t *in, size_t left)
{
    int need, i;
    uint8_t low = 0x80, high = 0xbf;

    if (in[0] < 0x80)
        return 1;
    if (in[0] >= 0xc2 && in[0] <= 0xdf)
        need = 1;
    else if (in[0] >= 0xe0 && in[0] <= 0xef)
        need = 2;
    else if (in[0] >= 0xf0 && in[0] <= 0xf4)
        need = 3;
    else
        return -1;
    if (in[0] == 0xe0)
        low = 0xa0;
    if (in[0] == 0xed)
        high = 0x9f;
    if (in[0] == 0xf0)
        low = 0x90;
    if (in[0] == 0xf4)
        high = 0x8f;
    for (i = 1; i <= need; i++) {
        if ((size_t)i >= left || in[i] < low || in[i] > high)
            return -i;
        low = 0x80;
        high = 0xbf;
    }
    return need + 1;
}

/* decode(bytes, fatal) -> string, or `null` when it is fatal and malformed. */
static JSValue js_decode(JSContext *context, JSValueConst this, int argc, JSValueConst *argv)
{
    size_t length, at = 0;
    const uint8_t *bytes = JS_GetUint8Array(ctx, &length, argv[0]);
    int fatal = JS_ToBool(ctx, argv[1]), step;
    struct writer w;
    JSValue text;

    if (!bytes)
        return length == 0 && !JS_HasException(ctx) ? JS_NewString(ctx, "") : JS_EXCEPTION;
    writer_init(&w, MODE_DISPLAY, UINT32_MAX, BREACH_MEMORY);
    while (at < length) {
        step = utf8_step(bytes + at, length - at);
        if (step > 0) {
            put_bytes(&w, (const char *)bytes + at, step);
            at += step;
        } else if (fatal) {
            writer_free(&w);
            return JS_NULL;
        } else {
            put_literal(&w, "\xef\xbf\xbd");
            at += -step;
        }
    }
    text = JS_NewStringLen(ctx, w.text, w.length);
    writer_free(&w);
    return text;
}

/* The globals a script of code mode keeps. */
static JSAtom kept[64];
static uint32_t kept_count;

/* keep(names): at build time, the names `script` leaves. */
static JSValue js_keep(JSContext *context, JSValueConst this, int argc, JSValueConst *argv)
{
    int64_t length, i;

    if (js_get_length64(ctx, &length, argv[0]))
        return JS_EXCEPTION;
    for (i = 0; i < length; i++) {
        JSValue name = JS_GetPropertyInt64(ctx, argv[0], i);
        if (kept_count == countof(kept))
            return JS_ThrowRangeError(ctx, "too many kept globals");
        kept[kept_count++] = JS_ValueToAtom(ctx, name);
        JS_FreeValue(ctx, name);
    }
    return JS_UNDEFINED;
}

static int is_kept(JSAtom name)
{
    uint32_t i;

    for (i = 0; i < kept_count && kept[i] != name; i++) {}
    return i < kept_count;
}

/* script(): this run is a script of code mode. A result that contains itself, an error,
 * a promise or too much is told instead of refused; no text becomes code any more; and
 * of the globals those stay that the language of scripts has. */
static JSValue js_script(JSContext *context, JSValueConst this, int argc, JSValueConst *argv)
{
    JSPropertyEnum *names;
    uint32_t count, i;

    results_are_lenient = 1;
    ctx->eval_internal = NULL;
    if (JS_GetOwnPropertyNames(ctx, &names, &count, ctx->global_obj, JS_GPN_STRING_MASK | JS_GPN_SYMBOL_MASK))
        return JS_EXCEPTION;
    for (i = 0; i < count; i++)
        if (!is_kept(names[i].atom))
            JS_DeleteProperty(ctx, ctx->global_obj, names[i].atom, 0);
    JS_FreePropertyEnum(ctx, names, count);
    return JS_UNDEFINED;
}

/* clock(now): from here on the time is what we are told. */
static JSValue js_clock(JSContext *context, JSValueConst this, int argc, JSValueConst *argv)
{
    int64_t now;

    if (JS_ToInt64(ctx, &now, argv[0]))
        return JS_EXCEPTION;
    given_clock.is_set = 1;
    given_clock.now_ms = now;
    return JS_UNDEFINED;
}

static JSValue js_kind(JSContext *context, JSValueConst this, int argc, JSValueConst *argv);

static const JSCFunctionListEntry host_functions[] = {
    JS_CFUNC_DEF("queued", 4, js_queued),
    JS_CFUNC_DEF("direct", 4, js_direct),
    JS_CFUNC_DEF("face", 2, js_face),
    JS_CFUNC_DEF("reserve", 1, js_reserve),
    JS_CFUNC_DEF("encode", 1, js_encode),
    JS_CFUNC_DEF("decode", 2, js_decode),
    JS_CFUNC_DEF("keep", 1, js_keep),
    JS_CFUNC_DEF("script", 0, js_script),
    JS_CFUNC_DEF("clock", 1, js_clock),
    JS_CFUNC_DEF("kind", 1, js_kind),
};

/* kind(value): what a value is, for the test that walks everything a script can reach:
 * one of the functions above, a function of the engine or of `console`, one that was
 * compiled from text, or anything else; with `image` if it was there before the script. */
static JSValue js_kind(JSContext *context, JSValueConst this, int argc, JSValueConst *argv)
{
    const char *kind = "object";
    JSObject *p;
    size_t i;

    if (!JS_IsObject(argv[0]))
        return JS_NewString(ctx, "plain");
    p = JS_VALUE_GET_OBJ(argv[0]);
    if (JS_IsFunction(ctx, argv[0]))
        kind = js_class_has_bytecode(p->class_id) ? "code" : "native";
    if (p->class_id == JS_CLASS_C_FUNCTION)
        for (i = 0; i < countof(host_functions); i++)
            if (p->u.cfunc.c_function.generic == host_functions[i].u.func.cfunc.generic)
                return JS_NewString(ctx, "host");
    return JS_NewString(ctx, IS_IMAGE(p) ? (*kind == 'c' ? "image code" : *kind == 'n' ? "image native" : "image object")
                                         : kind);
}

static JSValue host_object(void)
{
    static const char *const levels[] = { "log", "info", "warn", "error", "debug" };
    JSValue host = JS_NewObject(ctx), console = JS_NewObject(ctx);
    size_t i;

    JS_SetPropertyFunctionList(ctx, host, host_functions, countof(host_functions));
    for (i = 0; i < countof(levels); i++)
        JS_SetPropertyStr(ctx, console, levels[i],
                          JS_NewCFunctionMagic(ctx, js_console, levels[i], 0, JS_CFUNC_generic_magic, i));
    JS_SetPropertyStr(ctx, host, "console", console);
    return host;
}
