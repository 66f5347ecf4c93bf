/* How properties are read for the writer. Quietly, no code of the script runs: a getter is
 * a word, and a proxy is not asked. */

/* A property without running code of the script: a value of the object or of those it
 * inherits from, up to the first proxy or getter. */
static JSValue quiet_property(JSValueConst object, JSAtom which)
{
    JSObject *p;
    JSProperty *found;
    JSShapeProperty *about;

    for (p = JS_VALUE_GET_OBJ(object); p && p->class_id != JS_CLASS_PROXY; p = p->shape->proto) {
        about = find_own_property(&found, p, which);
        if (about)
            return (about->flags & JS_PROP_TMASK) == JS_PROP_NORMAL ? js_dup(found->u.value) : JS_UNDEFINED;
    }
    return JS_UNDEFINED;
}

/* `name` or `message` of an error, as a string value. The fallback stands in when
 * it is missing, no string, or its getter throws. */
static JSValue error_text(JSValueConst error, JSAtom which, const char *fallback, int is_quiet)
{
    JSValue text = is_quiet ? quiet_property(error, which) : JS_GetProperty(ctx, error, which);

    if (JS_IsException(text)) {
        JS_FreeValue(ctx, JS_GetException(ctx));
    } else if (JS_IsString(text)) {
        JSValue flat = JS_ToString(ctx, text);
        JS_FreeValue(ctx, text);
        if (!JS_IsException(flat))
            return flat;
        JS_FreeValue(ctx, JS_GetException(ctx));
    } else {
        JS_FreeValue(ctx, text);
    }
    return JS_NewString(ctx, fallback);
}

/* A property of the object itself. */
static JSValue own_member(JSValueConst object, JSAtom which, int is_quiet)
{
    JSPropertyDescriptor about;
    int found;

    if (!is_quiet)
        return JS_GetProperty(ctx, object, which);
    found = JS_GetOwnProperty(ctx, &about, object, which);
    if (found < 0)
        return JS_EXCEPTION;
    if (!found)
        return JS_UNDEFINED;
    if (!(about.flags & JS_PROP_GETSET))
        return about.value;
    js_free_desc(ctx, &about);
    return JS_NewString(ctx, "[getter]");
}

static JSValue slow_element(JSValueConst array, int64_t index, int is_quiet)
{
    JSAtom which;
    JSValue element;

    if (!is_quiet)
        return JS_GetPropertyInt64(ctx, array, index);
    which = JS_NewAtomInt64(ctx, index);
    element = own_member(array, which, is_quiet);
    JS_FreeAtom(ctx, which);
    return element;
}
