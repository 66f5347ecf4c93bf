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

/* lenient(): a result that contains itself, or an error, is told instead of refused. */
static JSValue js_lenient(JSContext *context, JSValueConst this, int argc, JSValueConst *argv)
{
    results_are_lenient = 1;
    return JS_UNDEFINED;
}

static JSValue host_object(void)
{
    static const JSCFunctionListEntry functions[] = {
        JS_CFUNC_DEF("queued", 4, js_queued),
        JS_CFUNC_DEF("direct", 4, js_direct),
        JS_CFUNC_DEF("face", 2, js_face),
        JS_CFUNC_DEF("reserve", 1, js_reserve),
        JS_CFUNC_DEF("encode", 1, js_encode),
        JS_CFUNC_DEF("decode", 2, js_decode),
        JS_CFUNC_DEF("lenient", 0, js_lenient),
    };
    static const char *const levels[] = { "log", "info", "warn", "error", "debug" };
    JSValue host = JS_NewObject(ctx), console = JS_NewObject(ctx);
    size_t i;

    JS_SetPropertyFunctionList(ctx, host, functions, countof(functions));
    for (i = 0; i < countof(levels); i++)
        JS_SetPropertyStr(ctx, console, levels[i],
                          JS_NewCFunctionMagic(ctx, js_console, levels[i], 0, JS_CFUNC_generic_magic, i));
    JS_SetPropertyStr(ctx, host, "console", console);
    return host;
}
