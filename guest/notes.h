/* What the reader of a result should know beside it: lines with the place of each. */

/* The objects we are inside of, innermost first, each with the place we are at; finds
 * circles, and says where something is. */
struct inside {
    JSObject *object;
    const struct inside *outer;
    uint32_t depth;
    int64_t index; /* -1: it is `key` */
    JSValueConst key;
};

/* What the reader of a result should know, beside it. */
#define NOTES_MAX 8
#define NOTE_PATH_BYTES_MAX 120

static struct {
    char text[NOTES_MAX * 256];
    uint32_t length, count;
} notes;

static void add_text(char *text, uint32_t *length, uint32_t length_max, const char *more)
{
    while (*more && *length < length_max)
        text[(*length)++] = *more++;
}

/* One step of a path. A name is cut, and what does not show is a mark: it comes from a
 * script, and goes to a person. */
static void add_step(char *text, uint32_t *length, const struct inside *at)
{
    char digits[24];
    JSString *key;
    uint32_t i, c;

    if (at->index >= 0) {
        add_text(text, length, NOTE_PATH_BYTES_MAX, "[");
        digits[u64toa(digits, at->index)] = 0;
        add_text(text, length, NOTE_PATH_BYTES_MAX, digits);
        add_text(text, length, NOTE_PATH_BYTES_MAX, "]");
        return;
    }
    if (JS_VALUE_GET_TAG(at->key) != JS_TAG_STRING)
        return;
    if (*length > 0)
        add_text(text, length, NOTE_PATH_BYTES_MAX, ".");
    key = JS_VALUE_GET_STRING(at->key);
    for (i = 0; i < key->len && i < 40; i++) {
        c = key->is_wide_char ? str16(key)[i] : str8(key)[i];
        digits[0] = c > 0x20 && c < 0x7f && c != '`' ? c : '?';
        digits[1] = 0;
        add_text(text, length, NOTE_PATH_BYTES_MAX, digits);
    }
}

static void add_path(char *text, uint32_t *length, const struct inside *at)
{
    if (!at)
        return;
    add_path(text, length, at->outer);
    add_step(text, length, at);
}

/* "`a.b[3]` is …", or "the result is …" where there is no path. Ends in NUL. */
static void describe(char line[256], const struct inside *at, const char *what)
{
    char path[NOTE_PATH_BYTES_MAX];
    uint32_t length = 0, path_length = 0;

    add_path(path, &path_length, at);
    if (path_length > 0) {
        line[length++] = '`';
        memcpy(line + length, path, path_length);
        length += path_length;
        line[length++] = '`';
    } else {
        add_text(line, &length, 255, "the result");
    }
    add_text(line, &length, 255, " ");
    add_text(line, &length, 255, what);
    line[length] = 0;
}

static void note(const struct inside *at, const char *what)
{
    char line[256];

    if (notes.count == NOTES_MAX)
        return;
    describe(line, at, what);
    if (notes.count++ > 0)
        add_text(notes.text, &notes.length, sizeof notes.text, "\n");
    add_text(notes.text, &notes.length, sizeof notes.text, line);
    mailbox.notes.start = notes.text;
    mailbox.notes.length = notes.length;
}
