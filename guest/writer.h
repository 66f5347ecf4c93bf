/* Turns a JavaScript value into text: JSON for results and payloads, a display
 * form for `console`. Works on the engine's own structures, never through
 * globals or prototypes that a script may have replaced; what it does call of the
 * script (getters, `toJSON`, proxy traps) runs under the same budgets as before. */

enum mode { MODE_JSON, MODE_DISPLAY };

struct writer {
    char *text;
    size_t length, capacity;
    size_t bytes_max;
    uint32_t depth_max;
    uint32_t bytes_breach; /* what to report when `bytes_max` is passed */
    uint32_t depth_breach; /* 0: too deep is a RangeError */
    size_t cut_at; /* beyond so many bytes it leaves out what is to come */
    enum mode mode;
    int is_lenient; /* a circle is a word, an error keeps its code; see `script` */
    int is_quiet; /* runs no code of the script: a getter or proxy is a word */
    int is_cut;
    int has_half; /* half a character was met, and not yet told of */
    int told_half;
};

/* What became of a value. */
enum { WROTE_FAILED = -1, WROTE_NOTHING = 0, WROTE_TEXT = 1 };

#define DISPLAY_DEPTH_MAX 8

/* Most texts fit here, so that most calls allocate nothing for them. One writer
 * has it at a time: a `toJSON` may call `console.log` while a result is written. */
#define writer_first hot.first_text

static void writer_init(struct writer *w, enum mode mode, size_t bytes_max, uint32_t bytes_breach)
{
    memset(w, 0, sizeof *w);
    w->text = hot.first_text_taken ? guest_alloc(NULL, 256) : writer_first;
    w->capacity = hot.first_text_taken ? 256 : sizeof writer_first;
    hot.first_text_taken = 1;
    w->mode = mode;
    w->bytes_max = bytes_max;
    w->bytes_breach = bytes_breach;
    w->depth_max = DISPLAY_DEPTH_MAX;
    w->cut_at = SIZE_MAX;
}

static void writer_free(struct writer *w)
{
    if (w->text != writer_first)
        free(w->text);
    else
        hot.first_text_taken = 0;
}

static void writer_grow(struct writer *w, size_t more)
{
    size_t need = w->length + more, capacity = w->capacity;
    char *text;

    if (need < more || need > w->bytes_max)
        host_breach(w->bytes_breach);
    while (capacity < need)
        capacity *= 2;
    text = guest_alloc(NULL, capacity);
    memcpy(text, w->text, w->length);
    writer_free(w);
    w->text = text;
    w->capacity = capacity;
}

static inline void put_bytes(struct writer *w, const char *bytes, size_t length)
{
    if (w->length + length > w->capacity || w->length + length > w->bytes_max)
        writer_grow(w, length);
    memcpy(w->text + w->length, bytes, length);
    w->length += length;
}

static inline void put_char(struct writer *w, char c)
{
    put_bytes(w, &c, 1);
}

#define put_literal(w, literal) put_bytes(w, literal, sizeof(literal) - 1)

/* Where the writer of a lenient result begins to leave out: early enough that what is open can be
 * closed. */
static size_t cut_at(size_t bytes_max)
{
    return bytes_max > 16384 ? bytes_max - 8192 : bytes_max / 2;
}

/* Whether there is no room for more; says so once. */
static int is_full(struct writer *w, const struct inside *at)
{
    if (w->length <= w->cut_at)
        return 0;
    if (!w->is_cut && w->mode == MODE_JSON)
        note(at, "was cut: longer than a result may be");
    else if (!w->is_cut)
        put_literal(w, "\xe2\x80\xa6");
    w->is_cut = 1;
    return 1;
}

static void put_code_point(struct writer *w, uint32_t c)
{
    char utf8[4];
    size_t n = 0;

    if (c < 0x80) {
        utf8[n++] = c;
    } else if (c < 0x800) {
        utf8[n++] = 0xc0 | (c >> 6);
        utf8[n++] = 0x80 | (c & 0x3f);
    } else if (c < 0x10000) {
        utf8[n++] = 0xe0 | (c >> 12);
        utf8[n++] = 0x80 | ((c >> 6) & 0x3f);
        utf8[n++] = 0x80 | (c & 0x3f);
    } else {
        utf8[n++] = 0xf0 | (c >> 18);
        utf8[n++] = 0x80 | ((c >> 12) & 0x3f);
        utf8[n++] = 0x80 | ((c >> 6) & 0x3f);
        utf8[n++] = 0x80 | (c & 0x3f);
    }
    put_bytes(w, utf8, n);
}

/* One code point of a string. A surrogate without its other half becomes U+FFFD, and a
 * note says so: half a character has no UTF-8, and its JSON escape is refused by strict
 * readers. */
static uint32_t next_code_point(struct writer *w, JSString *s, uint32_t *index)
{
    uint32_t c, low;

    if (!s->is_wide_char)
        return str8(s)[(*index)++];
    c = str16(s)[(*index)++];
    if (c < 0xd800 || c > 0xdfff)
        return c;
    if (c < 0xdc00 && *index < s->len) {
        low = str16(s)[*index];
        if (low >= 0xdc00 && low <= 0xdfff) {
            (*index)++;
            return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    w->has_half = 1;
    return 0xfffd;
}

static void put_plain(struct writer *w, JSString *s)
{
    uint32_t i = 0;

    while (i < s->len && w->length <= w->cut_at)
        put_code_point(w, next_code_point(w, s, &i));
}

static void put_escaped(struct writer *w, uint32_t c)
{
    char escape[8];

    switch (c) {
    case '"': put_literal(w, "\\\""); return;
    case '\\': put_literal(w, "\\\\"); return;
    case '\n': put_literal(w, "\\n"); return;
    case '\r': put_literal(w, "\\r"); return;
    case '\t': put_literal(w, "\\t"); return;
    case '\b': put_literal(w, "\\b"); return;
    case '\f': put_literal(w, "\\f"); return;
    }
    if (c >= 0x20) {
        put_code_point(w, c);
        return;
    }
    memcpy(escape, "\\u0000", 6);
    escape[4] = '0' + (c >> 4);
    escape[5] = "0123456789abcdef"[c & 15];
    put_bytes(w, escape, 6);
}

static void put_quoted(struct writer *w, JSString *s)
{
    uint32_t i = 0, start;
    const uint8_t *narrow = s->is_wide_char ? NULL : str8(s);

    put_char(w, '"');
    while (i < s->len) {
        if (w->length > w->cut_at) {
            put_literal(w, "\xe2\x80\xa6");
            break;
        }
        /* Runs of plain ASCII, nearly all text there is, are copied whole. */
        start = i;
        while (narrow && i < s->len && i - start < 4096 && narrow[i] >= 0x20 && narrow[i] < 0x7f
               && narrow[i] != '"' && narrow[i] != '\\')
            i++;
        if (i > start)
            put_bytes(w, (const char *)narrow + start, i - start);
        else
            put_escaped(w, next_code_point(w, s, &i));
    }
    put_char(w, '"');
}

/* A string, rope or not, quoted or as it is. */
static int put_string(struct writer *w, JSValueConst value, int quoted)
{
    JSValue flat = JS_ToString(ctx, value);

    if (JS_IsException(flat))
        return WROTE_FAILED;
    if (quoted)
        put_quoted(w, JS_VALUE_GET_STRING(flat));
    else
        put_plain(w, JS_VALUE_GET_STRING(flat));
    JS_FreeValue(ctx, flat);
    return WROTE_TEXT;
}

static int put_double(struct writer *w, double d)
{
    char digits[64];
    JSDTOATempMem scratch;

    if (!isfinite(d) && w->mode == MODE_JSON) {
        put_literal(w, "null");
        return WROTE_TEXT;
    }
    if (!isfinite(d)) {
        if (isnan(d))
            put_literal(w, "NaN");
        else if (d < 0)
            put_literal(w, "-Infinity");
        else
            put_literal(w, "Infinity");
        return WROTE_TEXT;
    }
    if (d == trunc(d) && fabs(d) < 9007199254740992.0)
        put_bytes(w, digits, i64toa(digits, (int64_t)d));
    else
        put_bytes(w, digits, js_dtoa(digits, d, 10, 0, JS_DTOA_FORMAT_FREE, &scratch));
    return WROTE_TEXT;
}

/* A number up to 2^53, else text: readers in JavaScript would round what is larger. */
static int put_bigint(struct writer *w, JSValueConst value)
{
    JSValue text = js_bigint_to_string(ctx, value);
    const char *digits;
    size_t length, sign;
    int wide;

    if (JS_IsException(text))
        return WROTE_FAILED;
    length = JS_VALUE_GET_STRING(text)->len;
    digits = (const char *)str8(JS_VALUE_GET_STRING(text));
    sign = digits[0] == '-';
    wide = length - sign > 16 || (length - sign == 16 && memcmp(digits + sign, "9007199254740991", 16) > 0);
    wide = wide && w->mode == MODE_JSON;
    if (wide)
        put_char(w, '"');
    put_bytes(w, digits, length);
    if (wide)
        put_char(w, '"');
    if (w->mode == MODE_DISPLAY)
        put_char(w, 'n');
    JS_FreeValue(ctx, text);
    return WROTE_TEXT;
}

static int put_value(struct writer *w, JSValueConst value, const struct inside *outer);

static int put_error_code(struct writer *w, JSValueConst error)
{
    JSValue code = JS_GetPropertyStr(ctx, error, "code");

    if (JS_IsException(code))
        return WROTE_FAILED;
    if (JS_IsString(code)) {
        put_literal(w, ",\"code\":");
        put_string(w, code, 1);
    }
    JS_FreeValue(ctx, code);
    return WROTE_TEXT;
}

static int put_error(struct writer *w, JSValueConst error)
{
    JSValue name = error_text(error, JS_ATOM_name, "Error", w->is_quiet);
    JSValue message = error_text(error, JS_ATOM_message, "", w->is_quiet);

    if (JS_IsException(name) || JS_IsException(message))
        return WROTE_FAILED;
    if (w->mode == MODE_JSON) {
        put_literal(w, "{\"name\":");
        put_string(w, name, 1);
        put_literal(w, ",\"message\":");
        put_string(w, message, 1);
        if (w->is_lenient && put_error_code(w, error) == WROTE_FAILED)
            goto failed;
        put_char(w, '}');
    } else {
        put_string(w, name, 0);
        if (JS_VALUE_GET_STRING(message)->len > 0) {
            put_literal(w, ": ");
            put_string(w, message, 0);
        }
    }
    JS_FreeValue(ctx, name);
    JS_FreeValue(ctx, message);
    return WROTE_TEXT;
failed:
    JS_FreeValue(ctx, name);
    JS_FreeValue(ctx, message);
    return WROTE_FAILED;
}

/* A value that may be an exception already, and is freed. Displaying never fails:
 * a hostile getter or proxy costs its own place in the line and no more. */
static int put_owned(struct writer *w, JSValue owned, const struct inside *here)
{
    size_t before = w->length;
    int wrote = JS_IsException(owned) ? WROTE_FAILED : put_value(w, owned, here);

    JS_FreeValue(ctx, owned);
    if (wrote == WROTE_FAILED && w->mode == MODE_DISPLAY) {
        JS_FreeValue(ctx, JS_GetException(ctx));
        w->length = before;
        put_literal(w, "[unreadable]");
        wrote = WROTE_TEXT;
    }
    return wrote;
}

/* An element: what JSON leaves out is `null` in an array. */
static int put_element(struct writer *w, JSValue owned, const struct inside *here)
{
    int wrote = put_owned(w, owned, here);

    if (wrote == WROTE_NOTHING) {
        put_literal(w, "null");
        wrote = WROTE_TEXT;
    }
    return wrote;
}

static int put_array(struct writer *w, JSValueConst array, struct inside *here)
{
    int64_t length, i;
    JSObject *p = JS_VALUE_GET_OBJ(array);
    JSValue element;

    if (js_get_length64(ctx, &length, array))
        return WROTE_FAILED;
    put_char(w, '[');
    for (i = 0; i < length; i++) {
        here->index = i;
        if (is_full(w, here))
            break;
        if (i > 0)
            put_char(w, ',');
        /* Asked again each time: a getter or `toJSON` may have changed the array. */
        if (p->class_id == JS_CLASS_ARRAY && p->fast_array && i < p->u.array.count)
            element = js_dup(p->u.array.u.values[i]);
        else
            element = slow_element(array, i, w->is_quiet);
        if (put_element(w, element, here) < 0)
            return WROTE_FAILED;
    }
    put_char(w, ']');
    return WROTE_TEXT;
}

static int put_typed_array(struct writer *w, JSObject *p, struct inside *here)
{
    uint32_t i;
    JSValue element;

    put_char(w, '[');
    for (i = 0; i < p->u.array.count; i++) {
        here->index = i;
        if (is_full(w, here))
            break;
        if (i > 0)
            put_char(w, ',');
        if (!js_get_fast_array_element(ctx, p, i, &element))
            element = JS_NULL;
        if (put_element(w, element, here) < 0)
            return WROTE_FAILED;
    }
    put_char(w, ']');
    return WROTE_TEXT;
}

static int put_array_buffer(struct writer *w, JSValueConst buffer, struct inside *here)
{
    size_t size, i;
    const uint8_t *bytes = JS_GetArrayBuffer(ctx, &size, buffer);
    char digits[8];

    if (!bytes)
        return WROTE_FAILED;
    put_char(w, '[');
    for (i = 0; i < size; i++) {
        here->index = i;
        if (is_full(w, here))
            break;
        if (i > 0)
            put_char(w, ',');
        put_bytes(w, digits, u32toa(digits, bytes[i]));
    }
    put_char(w, ']');
    return WROTE_TEXT;
}

/* A set, or a map whose keys are not all strings: a list of values, or of pairs. */
static int put_records(struct writer *w, JSMapState *map, int pairs, struct inside *here)
{
    struct list_head *link = map->records.next;
    JSMapRecord *record;
    int failed = 0, first = 1;

    put_char(w, '[');
    here->index = -1;
    while (link != &map->records && !failed) {
        record = list_entry(link, JSMapRecord, link);
        if (record->empty) {
            link = link->next;
            continue;
        }
        here->index++;
        if (is_full(w, here))
            break;
        record->ref_count++; /* what we call may delete it from under us */
        if (!first)
            put_char(w, ',');
        first = 0;
        if (pairs)
            put_char(w, '[');
        failed = put_element(w, js_dup(record->key), here) < 0;
        if (pairs && !failed) {
            put_char(w, ',');
            failed = put_element(w, js_dup(record->value), here) < 0;
            put_char(w, ']');
        }
        link = link->next;
        map_decref_record(ctx->rt, record);
    }
    put_char(w, ']');
    return failed ? WROTE_FAILED : WROTE_TEXT;
}

static int has_only_string_keys(JSMapState *map)
{
    struct list_head *link;

    list_for_each(link, &map->records) {
        JSMapRecord *record = list_entry(link, JSMapRecord, link);
        if (!record->empty && !JS_IsString(record->key))
            return 0;
    }
    return 1;
}

/* One `"key":value`; leaves no trace when the value is one JSON leaves out. */
static int put_member(struct writer *w, JSValueConst key, JSValue owned, int *first,
                      struct inside *here)
{
    size_t before = w->length;
    int wrote;

    here->index = -1;
    here->key = key;
    if (!*first)
        put_char(w, ',');
    if (put_string(w, key, 1) == WROTE_FAILED) {
        here->key = JS_UNDEFINED;
        return WROTE_FAILED;
    }
    put_char(w, ':');
    wrote = put_owned(w, owned, here);
    here->key = JS_UNDEFINED; /* it is not ours to keep */
    if (wrote == WROTE_NOTHING)
        w->length = before;
    else
        *first = 0;
    return wrote;
}

static int put_map(struct writer *w, JSMapState *map, struct inside *here)
{
    struct list_head *link = map->records.next;
    JSMapRecord *record;
    int failed = 0, first = 1;

    if (!has_only_string_keys(map))
        return put_records(w, map, 1, here);
    put_char(w, '{');
    while (link != &map->records && !failed && !is_full(w, here)) {
        record = list_entry(link, JSMapRecord, link);
        if (record->empty || !JS_IsString(record->key)) {
            link = link->next;
            continue;
        }
        record->ref_count++;
        failed = put_member(w, record->key, js_dup(record->value), &first, here) < 0;
        link = link->next;
        map_decref_record(ctx->rt, record);
    }
    put_char(w, '}');
    return failed ? WROTE_FAILED : WROTE_TEXT;
}

static int put_object(struct writer *w, JSValueConst object, struct inside *here)
{
    JSPropertyEnum *names;
    uint32_t count, i;
    int first = 1, wrote = WROTE_TEXT;

    if (JS_GetOwnPropertyNames(ctx, &names, &count, object, JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY))
        return WROTE_FAILED;
    put_char(w, '{');
    for (i = 0; i < count && wrote >= 0 && !is_full(w, here); i++) {
        JSValue key = JS_AtomToString(ctx, names[i].atom);
        if (JS_IsException(key))
            wrote = WROTE_FAILED;
        else
            wrote = put_member(w, key, own_member(object, names[i].atom, w->is_quiet), &first, here);
        JS_FreeValue(ctx, key);
    }
    put_char(w, '}');
    JS_FreePropertyEnum(ctx, names, count);
    return wrote < 0 ? WROTE_FAILED : WROTE_TEXT;
}

/* The value an object's own `toJSON` gives in its place. JS_UNINITIALIZED: it has none. */
static JSValue to_json(JSValueConst object)
{
    JSValue method = JS_GetProperty(ctx, object, JS_ATOM_toJSON), value;

    if (JS_IsException(method))
        return method;
    if (!JS_IsFunction(ctx, method)) {
        JS_FreeValue(ctx, method);
        return JS_UNINITIALIZED;
    }
    value = JS_Call(ctx, method, object, 0, NULL);
    JS_FreeValue(ctx, method);
    return value;
}

static int put_function(struct writer *w, JSValueConst function)
{
    if (w->mode == MODE_JSON)
        return WROTE_NOTHING;
    put_literal(w, "[function]");
    return WROTE_TEXT;
}

static int put_date(struct writer *w, JSValueConst date)
{
    JSValue text;
    int wrote;
    double time;

    if (JS_ThisTimeValue(ctx, &time, date))
        return WROTE_FAILED;
    if (!isfinite(time)) {
        put_literal(w, "null");
        return WROTE_TEXT;
    }
    text = get_date_string(ctx, date, 0, NULL, 0x23);
    if (JS_IsException(text))
        return WROTE_FAILED;
    wrote = put_string(w, text, 1);
    JS_FreeValue(ctx, text);
    return wrote;
}

static int put_by_class(struct writer *w, JSValueConst value, struct inside *here)
{
    JSObject *p = JS_VALUE_GET_OBJ(value);
    int is_array;

    switch (p->class_id) {
    case JS_CLASS_NUMBER:
    case JS_CLASS_STRING:
    case JS_CLASS_BOOLEAN:
    case JS_CLASS_BIG_INT:
        return put_value(w, p->u.object_data, here);
    case JS_CLASS_MAP:
        return put_map(w, p->u.map_state, here);
    case JS_CLASS_SET:
        return put_records(w, p->u.map_state, 0, here);
    case JS_CLASS_ARRAY_BUFFER:
        return put_array_buffer(w, value, here);
    }
    if (p->class_id >= JS_CLASS_UINT8C_ARRAY && p->class_id <= JS_CLASS_FLOAT64_ARRAY)
        return put_typed_array(w, p, here);
    is_array = js_is_array(ctx, value);
    if (is_array < 0)
        return WROTE_FAILED;
    return is_array ? put_array(w, value, here) : put_object(w, value, here);
}

static int too_deep(struct writer *w, const struct inside *outer)
{
    if (w->mode == MODE_DISPLAY) {
        put_literal(w, "[...]");
        return WROTE_TEXT;
    }
    if (w->is_lenient) {
        note(outer, "is nested too deep and was left out");
        put_literal(w, "\"[too deep]\"");
        return WROTE_TEXT;
    }
    if (w->depth_breach)
        host_breach(w->depth_breach);
    JS_ThrowRangeError(ctx, "value is nested more than %u deep", w->depth_max);
    return WROTE_FAILED;
}

/* A promise nobody waited for, which JSON would turn into `{}`. */
static int put_promise(struct writer *w, const struct inside *outer)
{
    char line[256];

    if (w->mode == MODE_DISPLAY) {
        put_literal(w, "[promise]");
        return WROTE_TEXT;
    }
    if (w->is_lenient) {
        note(outer, "is a promise; write `await`");
        put_literal(w, "\"[promise]\"");
        return WROTE_TEXT;
    }
    describe(line, outer, "is a promise; write `await`");
    JS_ThrowTypeError(ctx, "%s", line);
    return WROTE_FAILED;
}

static int put_as_it_is(struct writer *w, JSValueConst value, const struct inside *outer)
{
    struct inside here = { JS_VALUE_GET_OBJ(value), outer, outer ? outer->depth + 1 : 1, -1, JS_UNDEFINED };
    const struct inside *at;

    if (w->is_quiet && here.object->class_id == JS_CLASS_PROXY) {
        put_literal(w, "[proxy]");
        return WROTE_TEXT;
    }
    if (JS_IsFunction(ctx, value))
        return put_function(w, value);
    if (here.object->class_id == JS_CLASS_DATE)
        return put_date(w, value);
    if (here.object->class_id == JS_CLASS_ERROR || here.object->class_id == JS_CLASS_DOM_EXCEPTION)
        return put_error(w, value);
    if (here.object->class_id == JS_CLASS_PROMISE)
        return put_promise(w, outer);
    for (at = outer; at; at = at->outer) {
        if (at->object != here.object)
            continue;
        if (w->mode == MODE_DISPLAY) {
            put_literal(w, "[circular]");
            return WROTE_TEXT;
        }
        if (w->is_lenient) {
            put_literal(w, "\"[Circular]\"");
            return WROTE_TEXT;
        }
        JS_ThrowTypeError(ctx, "circular value cannot be copied");
        return WROTE_FAILED;
    }
    if (here.depth > w->depth_max)
        return too_deep(w, outer);
    if (js_check_stack_overflow(ctx->rt, 0)) {
        JS_ThrowStackOverflow(ctx);
        return WROTE_FAILED;
    }
    return put_by_class(w, value, &here);
}

static int put_reference(struct writer *w, JSValueConst value, const struct inside *outer)
{
    JSValue replaced;
    int wrote;

    if (w->mode == MODE_DISPLAY || JS_VALUE_GET_OBJ(value)->class_id == JS_CLASS_DATE)
        return put_as_it_is(w, value, outer);
    replaced = to_json(value);
    if (JS_IsException(replaced))
        return WROTE_FAILED;
    if (JS_IsUninitialized(replaced))
        return put_as_it_is(w, value, outer);
    /* Asked once, as JSON does: what `toJSON` gave is not asked again. */
    wrote = JS_IsObject(replaced) ? put_as_it_is(w, replaced, outer)
                                  : put_value(w, replaced, outer);
    JS_FreeValue(ctx, replaced);
    return wrote;
}

static int put_value(struct writer *w, JSValueConst value, const struct inside *outer)
{
    char digits[16];
    int wrote;

    switch (JS_VALUE_GET_NORM_TAG(value)) {
    case JS_TAG_INT:
        put_bytes(w, digits, i32toa(digits, JS_VALUE_GET_INT(value)));
        return WROTE_TEXT;
    case JS_TAG_FLOAT64:
        return put_double(w, JS_VALUE_GET_FLOAT64(value));
    case JS_TAG_BOOL:
        if (JS_VALUE_GET_BOOL(value))
            put_literal(w, "true");
        else
            put_literal(w, "false");
        return WROTE_TEXT;
    case JS_TAG_NULL:
        put_literal(w, "null");
        return WROTE_TEXT;
    case JS_TAG_STRING:
    case JS_TAG_STRING_ROPE:
        wrote = put_string(w, value, w->mode == MODE_JSON || outer != NULL);
        if (w->has_half && !w->told_half && w->mode == MODE_JSON) {
            note(outer, "has half a character (a lone surrogate); it came out as U+FFFD");
            w->told_half = 1;
        }
        is_full(w, outer); /* a text alone may be too long */
        return wrote;
    case JS_TAG_BIG_INT:
    case JS_TAG_SHORT_BIG_INT:
        return put_bigint(w, value);
    case JS_TAG_OBJECT:
        return put_reference(w, value, outer);
    }
    if (w->mode == MODE_JSON)
        return WROTE_NOTHING;
    if (JS_IsSymbol(value))
        put_literal(w, "[symbol]");
    else
        put_literal(w, "undefined");
    return WROTE_TEXT;
}
