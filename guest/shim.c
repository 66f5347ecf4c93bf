/* The sandbox guest: QuickJS and the few functions through which the host starts
 * a script, answers its calls and reads its result. One translation unit with the
 * engine, because budgets and positions live in its private structures.
 *
 * The host side is crates/sandbox/src/cell.rs; `struct mailbox` and the numbers of
 * the enums are known to both. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(name) __attribute__((import_module("host"), import_name(name)))

/* Ends the run for good: traps, and no `catch` or `finally` sees it. */
IMPORT("breach") extern _Noreturn void host_breach(uint32_t breach);
IMPORT("log") extern void host_log(uint32_t level, const char *text, uint32_t length);
/* Hands a request over; the answer comes later through `deliver`. */
IMPORT("queued") extern void host_queued(uint32_t id, const char *operation, uint32_t operation_length,
    const char *json, uint32_t json_length, const uint8_t *bytes, uint32_t bytes_length);
/* Returns when the answer is there; its sizes are in the mailbox. */
IMPORT("direct") extern void host_direct(uint32_t id, const char *operation, uint32_t operation_length,
    const char *json, uint32_t json_length, const uint8_t *bytes, uint32_t bytes_length);
/* Copies the current answer into the guest. */
IMPORT("take") extern void host_take(char *json, uint8_t *bytes);
/* Offers the compiled body to the host's cache. */
IMPORT("keep") extern void host_keep(const uint8_t *bytecode, uint32_t length);

/* As in `breach`, crates/sandbox/src/cell/imports.rs. */
enum {
    BREACH_WORK = 1,
    BREACH_MEMORY,
    BREACH_RESULT_BYTES,
    BREACH_RESULT_DEPTH,
    BREACH_CONSOLE_BYTES,
    BREACH_PAYLOAD_BYTES,
};

#include "heap.h"

/* The engine's own regex poll would not say who asked; ours, at the end, does. */
#define lre_check_timeout engine_lre_check_timeout
#include "quickjs.c"
#undef lre_check_timeout

/* What `run` and `deliver` return. */
enum { STATUS_VALUE, STATUS_UNDEFINED, STATUS_THREW, STATUS_PENDING, STATUS_DEADLOCK, STATUS_UNKNOWN_POWER };

/* The source is compiled, compiled and offered for the cache, or comes out of it. */
enum { BODY_SOURCE, BODY_SOURCE_KEEP, BODY_BYTECODE };

#define GC_DISTANCE_BYTES_MAX (12 << 20)
#define PAYLOAD_DEPTH_MAX 128
#define SCRIPT_NAME "script.js"
#define THROWN_CHARS_MAX 16384
/* Of a value that was thrown and is no error. */
#define CONTENTS_BYTES_MAX 2000

struct text {
    const char *start;
    uint32_t length;
};

/* In the author's own text, from 1; 0 when unknown. */
struct place {
    uint32_t line, column;
};

/* A value that was thrown, as the host reads it. */
struct thrown {
    struct text message, name, helper;
    struct place at;
};

/* Read and written by the host between calls. Little-endian, no padding. */
struct mailbox {
    /* Host to guest: the job. */
    uint64_t work_max;
    uint64_t seed;
    uint32_t body_kind;
    uint32_t body_length;
    uint32_t globals_length;
    uint32_t declared_count;
    uint32_t powers_count;
    uint32_t result_bytes_max;
    uint32_t result_depth_max;
    uint32_t console_bytes_max;
    uint32_t payload_bytes_max;
    /* Host to guest: an answer. */
    uint32_t answer_is_error;
    uint32_t answer_json_length;
    uint32_t answer_bytes_length;
    /* Guest to host: the end. Its message is the result as JSON, if nothing was thrown. */
    struct thrown end;
    /* Guest to host: used work is `work_granted` less what stands at `work_left`. */
    uint64_t work_granted;
    const int *work_left;
    /* Where the host puts the job's texts, if they fit. */
    char *input;
    uint32_t input_capacity;
    /* Guest to host: what whoever reads the result should know, a line for each. */
    struct text notes;
    /* Guest to host: promises that were rejected and that nothing handled. */
    const struct thrown *rejections;
    uint32_t rejections_told;
    uint32_t rejections_count;
    /* Guest to host: where the script was when it was last polled, and whether a
     * regular expression was at work there. */
    struct place polled_at;
    uint32_t polled_in_regex;
};

/* A queued call that waits for its answer. */
struct call {
    uint32_t id;
    struct place asked_at;
    JSValue resolve, reject, shape;
};

/* Each block of the C library carries its size; see seal.h. */
struct block {
    uint32_t size;
    uint32_t sealed;
    _Alignas(8) char memory[];
};

/* What nearly every call writes, side by side, because a call pays for each page it
 * writes to: in the first page what has a fixed size, behind it the engine's tables,
 * which begin at the second page, and then the job's texts. */
#define HOT_BYTES (96 << 10)

static union {
    struct {
        struct mailbox box;
        JSValue finished; /* the promise of the body */
        struct call *calls;
        uint32_t calls_count, calls_capacity, calls_made;
        struct call first_calls[8];
        int first_text_taken;
        char first_text[1024]; /* see writer.h */
        struct {
            struct block block;
            JSRuntime memory;
        } runtime;
        struct {
            struct block block;
            JSMallocBlockHeader header;
            JSContext memory;
        } context;
    };
    char bytes[HOT_BYTES];
} hot __attribute__((aligned(4096)));

#define HOT_TABLES (4096 - sizeof(struct block) - sizeof(JSMallocBlockHeader))
_Static_assert(offsetof(__typeof__(hot), context) + sizeof hot.context <= HOT_TABLES, "the first page is full");

#define mailbox (hot.box)

static JSRuntime *rt;
static JSContext *ctx;
static JSValue faces; /* power -> function (global) that installs it */
static int results_are_lenient;

#include "seal.h"
#include "notes.h"
#include "member.h"
#include "writer.h"
#include "calls.h"
#include "text.h"
#include "ending.h"

/* ---- The work budget -------------------------------------------------------- */

/* To find a place takes time in a long function, so not every poll does. */
#define POLLS_PER_PLACE 16

/* Hands the engine its next portion of backward jumps and calls. A portion is what
 * the engine counts by itself between two polls, so counting costs nothing. */
static void work_grant(void)
{
    uint64_t left = mailbox.work_max - mailbox.work_granted;
    int portion = left < JS_INTERRUPT_COUNTER_INIT ? (int)left : JS_INTERRUPT_COUNTER_INIT;

    if (left == 0) {
        find_place(&mailbox.polled_at);
        host_breach(BREACH_WORK);
    }
    mailbox.work_granted += portion;
    ctx->interrupt_counter = portion;
}

static int on_poll(JSRuntime *runtime, void *opaque)
{
    static uint32_t polls;
    size_t next = runtime->malloc_state.malloc_size + GC_DISTANCE_BYTES_MAX;

    mailbox.polled_in_regex = 0;
    if (polls++ % POLLS_PER_PLACE == 0)
        find_place(&mailbox.polled_at);
    /* The engine waits for half as much again before it looks for circles, which
     * near the limit is past the limit. */
    if (runtime->malloc_gc_threshold > next)
        runtime->malloc_gc_threshold = next;
    work_grant();
    return 0;
}

/* Called by the regular expression engine each 10,000 of its own steps, which
 * count as much as the interpreter's. They come out of the interpreter's portion
 * where the budget has no more, so that a verdict depends on what was used and not
 * on how it was portioned. */
int lre_check_timeout(void *opaque)
{
    static const uint8_t *found_for;
    JSStackFrame *frame = rt->current_stack_frame;
    uint64_t over;

    /* The same call as at the last poll has the same place. */
    while (frame && !frame->cur_pc)
        frame = frame->prev_frame;
    if (!mailbox.polled_in_regex || !frame || found_for != frame->cur_pc) {
        find_place(&mailbox.polled_at);
        found_for = frame ? frame->cur_pc : NULL;
    }
    mailbox.polled_in_regex = 1;
    mailbox.work_granted += JS_INTERRUPT_COUNTER_INIT;
    if (mailbox.work_granted > mailbox.work_max) {
        over = mailbox.work_granted - mailbox.work_max;
        mailbox.work_granted = mailbox.work_max;
        if (over >= (uint64_t)ctx->interrupt_counter) {
            ctx->interrupt_counter = 0;
            host_breach(BREACH_WORK);
        }
        ctx->interrupt_counter -= over;
    }
    return 0;
}

/* ---- How a run ends --------------------------------------------------------- */

static int ended_threw(JSValue thrown)
{
    struct place at;

    find_end(&at, thrown);
    describe_thrown(&mailbox.end, thrown, &at, THROWN_CHARS_MAX, 0);
    return STATUS_THREW;
}

static int ended_value(JSValue value)
{
    struct writer w;
    int wrote;

    if (JS_IsUndefined(value))
        return STATUS_UNDEFINED;
    writer_init(&w, MODE_JSON, mailbox.result_bytes_max, BREACH_RESULT_BYTES);
    w.depth_max = mailbox.result_depth_max;
    w.depth_breach = BREACH_RESULT_DEPTH;
    w.is_lenient = results_are_lenient;
    w.cut_at = results_are_lenient ? cut_at(mailbox.result_bytes_max) : UINT32_MAX;
    wrote = put_value(&w, value, NULL);
    if (wrote == WROTE_FAILED) {
        writer_free(&w);
        return ended_threw(JS_GetException(ctx));
    }
    mailbox.end.message.start = w.text;
    mailbox.end.message.length = w.length;
    return wrote == WROTE_TEXT ? STATUS_VALUE : STATUS_UNDEFINED;
}

/* Says where the body stands. */
static int body_status(void)
{
    switch (JS_PromiseState(ctx, hot.finished)) {
    case JS_PROMISE_FULFILLED:
        return ended_value(JS_PromiseResult(ctx, hot.finished));
    case JS_PROMISE_REJECTED:
        return ended_threw(JS_PromiseResult(ctx, hot.finished));
    default:
        return hot.calls_count > 0 ? STATUS_PENDING : STATUS_DEADLOCK;
    }
}

/* Runs what can run. */
static int pump(void)
{
    JSContext *context;
    int ran, status;

    do {
        ran = JS_ExecutePendingJob(rt, &context);
    } while (ran > 0);
    status = ran < 0 ? ended_threw(JS_GetException(ctx)) : body_status();
    if (status != STATUS_PENDING)
        tell_rejections();
    return status;
}

/* ---- How a run starts ------------------------------------------------------- */

/* Reads the next length-prefixed name behind the job's texts. */
static JSAtom next_name(const char **at)
{
    uint32_t length;
    JSAtom atom;

    memcpy(&length, *at, sizeof length);
    atom = JS_NewAtomLen(ctx, *at + sizeof length, length);
    *at += sizeof length + length;
    return atom;
}

/* Attack: wrapper-breakout. A body such as `}); other(() => {` parses inside the
 * wrapper but is no function body: then the program is more than one function that
 * spans the whole text between the parentheses. */
static int is_one_function(JSValueConst program, uint32_t length)
{
    JSFunctionBytecode *outer = JS_VALUE_GET_PTR(program), *inner = NULL;
    int i;

    for (i = 0; i < outer->cpool_count; i++) {
        if (JS_VALUE_GET_TAG(outer->cpool[i]) != JS_TAG_FUNCTION_BYTECODE)
            continue;
        if (inner)
            return 0;
        inner = JS_VALUE_GET_PTR(outer->cpool[i]);
    }
    return inner && inner->source_len == length - 2;
}

static JSValue compile(const char *source, uint32_t length)
{
    /* The wrapper's own line is 0, the author's begin at 1. */
    JSValue program = JS_EvalInternal(ctx, ctx->global_obj, source, length, SCRIPT_NAME, 0,
                                      JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY, -1);

    if (JS_IsException(program))
        return program;
    if (!is_one_function(program, length)) {
        JS_FreeValue(ctx, program);
        return JS_ThrowSyntaxError(ctx, "unexpected end of the function body");
    }
    return program;
}

static JSValue load_body(const char *body)
{
    JSValue program;
    uint8_t *bytecode;
    size_t length;

    if (mailbox.body_kind == BODY_BYTECODE) {
        program = JS_ReadObject(ctx, (const uint8_t *)body, mailbox.body_length, JS_READ_OBJ_BYTECODE);
    } else {
        program = compile(body, mailbox.body_length);
        if (mailbox.body_kind == BODY_SOURCE_KEEP && !JS_IsException(program)) {
            bytecode = JS_WriteObject(ctx, &length, program, JS_WRITE_OBJ_BYTECODE);
            if (bytecode) {
                host_keep(bytecode, length);
                js_free(ctx, bytecode);
            } else {
                JS_FreeValue(ctx, JS_GetException(ctx));
            }
        }
    }
    if (JS_IsException(program))
        return program;
    return JS_EvalFunction(ctx, program);
}

static void define_global(JSAtom name, JSValue value)
{
    if (is_reserved(name)) {
        JS_FreeValue(ctx, value);
        return;
    }
    /* `NaN` and its like cannot be replaced; then they stay. */
    if (JS_DefinePropertyValue(ctx, ctx->global_obj, name, value, JS_PROP_C_W_E) < 0)
        JS_FreeValue(ctx, JS_GetException(ctx));
}

static int define_globals(const char *json, const char **names)
{
    JSValue globals = JS_ParseJSON(ctx, json, mailbox.globals_length, "globals");
    JSPropertyEnum *keys;
    uint32_t count, i;

    if (JS_IsException(globals) || !JS_IsObject(globals))
        return -1;
    for (i = 0; i < mailbox.declared_count; i++) {
        JSAtom name = next_name(names);
        define_global(name, JS_UNDEFINED);
        JS_FreeAtom(ctx, name);
    }
    if (JS_GetOwnPropertyNames(ctx, &keys, &count, globals, JS_GPN_STRING_MASK))
        return -1;
    for (i = 0; i < count; i++)
        define_global(keys[i].atom, JS_GetProperty(ctx, globals, keys[i].atom));
    JS_FreePropertyEnum(ctx, keys, count);
    JS_FreeValue(ctx, globals);
    return 0;
}

static int install_powers(const char **names)
{
    uint32_t i;

    for (i = 0; i < mailbox.powers_count; i++) {
        JSAtom name = next_name(names);
        JSValue install = JS_GetProperty(ctx, faces, name), done;

        JS_FreeAtom(ctx, name);
        if (!JS_IsFunction(ctx, install))
            return -1;
        done = JS_Call(ctx, install, JS_UNDEFINED, 1, vc(&ctx->global_obj));
        JS_FreeValue(ctx, install);
        if (JS_IsException(done))
            return -1;
        JS_FreeValue(ctx, done);
    }
    return 0;
}

/* A place for the job's texts: the standing one, or a larger one. */
EXPORT("reserve") char *guest_reserve(uint32_t size)
{
    return guest_alloc(NULL, size);
}

EXPORT("mailbox") void *guest_mailbox(void)
{
    return &mailbox;
}

/* The texts lie behind each other: body, NUL, globals, NUL, then the declared
 * names and the powers, each with its length before it. */
EXPORT("run") uint32_t guest_run(const char *texts)
{
    const char *globals = texts + mailbox.body_length + 1;
    const char *names = globals + mailbox.globals_length + 1;
    JSValue body;

    JS_UpdateStackTop(rt);
    /* A snapshot must not repeat itself. */
    ctx->random_state = mailbox.seed ? mailbox.seed : 1;
    /* Compiling polls nothing, so a body out of the cache counts the same. */
    mailbox.work_granted = 0;
    ctx->interrupt_counter = JS_INTERRUPT_COUNTER_INIT;
    body = load_body(texts);
    if (JS_IsException(body))
        return ended_threw(JS_GetException(ctx));
    if (define_globals(globals, &names) || install_powers(&names))
        return STATUS_UNKNOWN_POWER;
    mailbox.work_granted = 0;
    work_grant();
    hot.finished = JS_Call(ctx, body, JS_UNDEFINED, 0, NULL);
    JS_FreeValue(ctx, body);
    if (JS_IsException(hot.finished))
        return ended_threw(JS_GetException(ctx));
    return pump();
}

/* The answer to one queued call is in the mailbox. */
EXPORT("deliver") uint32_t guest_deliver(uint32_t id)
{
    JS_UpdateStackTop(rt);
    settle(id);
    return pump();
}

/* ---- At build time, before the snapshot ------------------------------------- */

EXPORT("init") void guest_init(void)
{
    static const JSMallocFunctions memory = {
        engine_calloc, engine_alloc, engine_free, engine_realloc, engine_usable_size,
    };

    rt = JS_NewRuntime2(&memory, NULL);
    JS_SetMaxStackSize(rt, STACK_BYTES_MAX);
    JS_UpdateStackTop(rt);
    ctx = JS_NewContext(rt);
    faces = JS_NewObjectProto(ctx, JS_NULL);
    hot.finished = JS_UNDEFINED;
    script_name = JS_NewAtom(ctx, SCRIPT_NAME);
    JS_SetHostPromiseRejectionTracker(rt, on_rejection, NULL);
    JS_SetInterruptHandler(rt, on_poll, NULL);
    mailbox.work_max = UINT64_MAX;
    mailbox.work_left = &ctx->interrupt_counter;
    hot.calls = hot.first_calls;
    hot.calls_capacity = countof(hot.first_calls);
}

/* Attack: a script that replaces a global. Code of the prelude keeps what it needs in
 * variables of its own: the wrapper around each file (builder/src/inputs.rs) takes them
 * from the global object, and no function inside reads or writes a global by name. Gives
 * the first name that one does, or JS_ATOM_NULL. */
static JSAtom global_read_by(JSFunctionBytecode *b, int depth)
{
    int i, op;
    JSAtom read;

    for (i = 0; depth >= 2 && i < b->byte_code_len; i += short_opcode_info(op).size) {
        op = b->byte_code_buf[i];
        if (op != OP_get_var && op != OP_get_var_undef && op != OP_put_var && op != OP_make_var_ref)
            continue;
        read = get_u32(b->byte_code_buf + i + 1);
        /* This one no script can replace. */
        if (read != JS_ATOM_undefined)
            return read;
    }
    for (i = 0; i < b->cpool_count; i++) {
        if (JS_VALUE_GET_TAG(b->cpool[i]) != JS_TAG_FUNCTION_BYTECODE)
            continue;
        read = global_read_by(JS_VALUE_GET_PTR(b->cpool[i]), depth + 1);
        if (read != JS_ATOM_NULL)
            return read;
    }
    return JS_ATOM_NULL;
}

/* Evaluates one file of the prelude: an expression, a function of `host`. Stripped
 * of its source, so that `toString` shows nothing and the image stays small. */
EXPORT("prelude") uint32_t guest_prelude(char *source, uint32_t length)
{
    JSValue program, install, host, done;
    JSAtom read;
    uint8_t *bytecode;
    size_t bytecode_length;

    JS_UpdateStackTop(rt);
    program = JS_Eval(ctx, source, length, "prelude", JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY);
    free(source);
    if (JS_IsException(program))
        return ended_threw(JS_GetException(ctx));
    read = global_read_by(JS_VALUE_GET_PTR(program), 0);
    if (read != JS_ATOM_NULL) {
        JS_ThrowReferenceErrorNotDefined(ctx, read);
        return ended_threw(JS_GetException(ctx));
    }
    bytecode = JS_WriteObject(ctx, &bytecode_length, program,
                              JS_WRITE_OBJ_BYTECODE | JS_WRITE_OBJ_STRIP_SOURCE | JS_WRITE_OBJ_STRIP_DEBUG);
    JS_FreeValue(ctx, program);
    program = JS_ReadObject(ctx, bytecode, bytecode_length, JS_READ_OBJ_BYTECODE);
    js_free(ctx, bytecode);
    install = JS_EvalFunction(ctx, program);
    host = host_object();
    done = JS_Call(ctx, install, JS_UNDEFINED, 1, vc(&host));
    JS_FreeValue(ctx, install);
    JS_FreeValue(ctx, host);
    if (JS_IsException(done))
        return ended_threw(JS_GetException(ctx));
    JS_FreeValue(ctx, done);
    return STATUS_VALUE;
}

/* Compacts, then leaves `spare` bytes of free heap inside the image, so that small
 * calls never grow the memory. */
EXPORT("seal") void guest_seal(uint32_t spare)
{
    char *input;

    make_lazy_properties();
    freeze_image();
    JS_RunGC(rt);
    input = place_tables();
    mailbox.input = input;
    mailbox.input_capacity = hot.bytes + HOT_BYTES - input;
    fill_holes(spare);
    seal_blocks();
    seal_list();
    JS_SetGCThreshold(rt, GC_THRESHOLD_BYTES);
    mailbox.work_granted = 0;
    hot.first_text_taken = 0;
}
