/* The engine's memory, and how the snapshot is sealed; heap.h says why.
 *
 * Each block carries its size: the engine keeps count of its memory by asking for the
 * size of each block, when it gets it and when it gives it back. The C library's own
 * answer changes in between (a neighbour's slack is added to it), and a count below
 * zero aborts. */

static struct block *block_of(const void *memory)
{
    return (struct block *)((char *)memory - offsetof(struct block, memory));
}

/* Every block of the engine that the image has, until it is sealed. */
static void *built[4096];
static uint32_t built_count;

static void built_add(void *memory)
{
    if (is_sealed)
        return;
    if (built_count == sizeof built / sizeof *built)
        __builtin_trap();
    built[built_count++] = memory;
}

static void built_remove(void *memory)
{
    uint32_t i;

    if (is_sealed)
        return;
    for (i = 0; i < built_count; i++)
        if (built[i] == memory) {
            built[i] = built[--built_count];
            return;
        }
}

/* No allocation fails: it succeeds, or the run is over. A script that could catch
 * "out of memory" could go on for ever at the edge. */
static void *guest_alloc(void *opaque, size_t size)
{
    void *memory = malloc(size);

    if (!memory)
        host_breach(BREACH_MEMORY);
    return memory;
}

static void *engine_alloc(void *opaque, size_t size)
{
    struct block *block;

    if (size > UINT32_MAX - sizeof *block)
        host_breach(BREACH_MEMORY);
    /* The runtime is asked for first, and once. */
    block = rt || hot.runtime.block.size ? guest_alloc(NULL, sizeof *block + size) : &hot.runtime.block;
    block->size = size;
    block->sealed = 0;
    built_add(block->memory);
    return block->memory;
}

static void *engine_calloc(void *opaque, size_t count, size_t size)
{
    /* The engine has checked the product. */
    return memset(engine_alloc(NULL, count * size), 0, count * size);
}

static void engine_free(void *opaque, void *memory)
{
    if (!memory || block_of(memory)->sealed)
        return;
    built_remove(memory);
    free(block_of(memory));
}

static void *engine_realloc(void *opaque, void *memory, size_t size)
{
    struct block *block;

    if (!memory)
        return engine_alloc(NULL, size);
    if (size > UINT32_MAX - sizeof *block)
        host_breach(BREACH_MEMORY);
    if (block_of(memory)->sealed) {
        uint32_t old = block_of(memory)->size;
        return memcpy(engine_alloc(NULL, size), memory, old < size ? old : size);
    }
    built_remove(memory);
    block = realloc(block_of(memory), sizeof *block + size);
    if (!block)
        host_breach(BREACH_MEMORY);
    block->size = size;
    built_add(block->memory);
    return block->memory;
}

static size_t engine_usable_size(const void *memory)
{
    return memory ? block_of(memory)->size : 0;
}

/* The one context's place. */
static void *context_memory(size_t size)
{
    hot.context.block.size = sizeof hot.context.header + size;
    hot.context.header.u.block_idx = JS_ARENA_FREE_NIL;
    hot.context.header.block_size_idx = 0xff;
    built_add(&hot.context.header);
    return memset(&hot.context.memory, 0, size);
}

static int arena_is_sealed(const void *arena)
{
    return block_of(arena)->sealed;
}

/* ---- At build time ---------------------------------------------------------- */

/* Moves one of the engine's tables to `*next`, and `*next` behind it. */
static void *place(void *table, char **next)
{
    JSMallocBlockHeader *header = container_of(table, JSMallocBlockHeader, user_data);
    struct block *block = (struct block *)*next;
    uint32_t size;

    if (header->u.block_idx != JS_ARENA_FREE_NIL)
        return table;
    size = block_of(header)->size;
    if (*next + sizeof *block + size > hot.bytes + HOT_BYTES / 4)
        return table;
    block->size = size;
    memcpy(block->memory, header, size);
    built_add(block->memory);
    engine_free(NULL, header);
    *next += (sizeof *block + size + 7) & ~7;
    return ((JSMallocBlockHeader *)block->memory)->user_data;
}

/* Moves what grows with the first names and shapes of a script; gives what is left. */
static char *place_tables(void)
{
    char *next = hot.bytes + HOT_TABLES;

    /* Room for the shapes of a small script: to make more writes to every shape. */
    while (rt->shape_hash_size < 4 * rt->shape_hash_count)
        resize_shape_hash(rt, rt->shape_hash_bits + 1);
    rt->atom_hash = place(rt->atom_hash, &next);
    rt->atom_array = place(rt->atom_array, &next);
    rt->shape_hash = place(rt->shape_hash, &next);
    return next;
}

/* Makes the properties that the engine would make on first use: what is made later is
 * not in the image, and could be changed. */
static void make_lazy_properties(void)
{
    struct list_head *link;
    int i;

    /* New objects join the end of the list, and have their turn. */
    list_for_each(link, &rt->gc_obj_list) {
        JSObject *p = list_entry(link, JSObject, header.link);
        if (JS_GC_TYPE(p) != JS_GC_OBJ_TYPE_JS_OBJECT)
            continue;
        for (i = 0; i < p->shape->prop_count; i++) {
            JSShapeProperty *prs = &get_shape_prop(p->shape)[i];
            if (prs->atom != JS_ATOM_NULL && (prs->flags & JS_PROP_TMASK) == JS_PROP_AUTOINIT
                && JS_AutoInitProperty(ctx, p, prs->atom, &p->prop[i], prs))
                __builtin_trap();
        }
    }
}

static void freeze_shape(JSShape *sh)
{
    JSShapeProperty *prs = get_shape_prop(sh);
    uint32_t hash = shape_initial_hash(sh->proto);
    int i;

    for (i = 0; i < sh->prop_count; i++) {
        prs[i].flags &= ~JS_PROP_CONFIGURABLE;
        if ((prs[i].flags & JS_PROP_TMASK) == JS_PROP_NORMAL)
            prs[i].flags &= ~JS_PROP_WRITABLE;
        hash = shape_hash(shape_hash(hash, prs[i].atom), prs[i].flags);
    }
    sh->hash = hash;
}

/* What stays as it is: the global object and its variables, which belong to the script;
 * `console`, which tool code may replace the functions of, for itself; regular
 * expressions of the prelude, which no script can reach and whose `lastIndex` moves. */
static int stays_open(const JSObject *p, const JSObject *console)
{
    return p == JS_VALUE_GET_OBJ(ctx->global_obj) || p == JS_VALUE_GET_OBJ(ctx->global_var_obj)
        || p == console || p->class_id == JS_CLASS_REGEXP;
}

/* Freezes every object of the image. The prelude works with the built-in methods of
 * arrays, texts and promises; what a script cannot replace it cannot listen in with.
 *
 * Objects with one shape keep one shape, a frozen one in its place. */
static void freeze_image(void)
{
    static struct { JSShape *open, *frozen; } pairs[1024];
    JSValue console = JS_GetPropertyStr(ctx, ctx->global_obj, "console");
    struct list_head *link;
    uint32_t count = 0, i;

    list_for_each(link, &rt->gc_obj_list) {
        JSObject *p = list_entry(link, JSObject, header.link);
        if (JS_GC_TYPE(p) != JS_GC_OBJ_TYPE_JS_OBJECT || stays_open(p, JS_VALUE_GET_OBJ(console)))
            continue;
        p->extensible = 0;
        if (!p->shape->is_hashed) {
            freeze_shape(p->shape);
            continue;
        }
        for (i = 0; i < count && pairs[i].open != p->shape; i++) {}
        if (i == count) {
            if (count == countof(pairs))
                __builtin_trap();
            pairs[count].open = js_dup_shape(p->shape);
            pairs[count].frozen = js_clone_shape(ctx, p->shape);
            freeze_shape(pairs[count].frozen);
            pairs[count].frozen->is_hashed = 1;
            js_shape_hash_link(rt, pairs[count].frozen);
            count++;
        }
        js_free_shape(rt, p->shape);
        p->shape = js_dup_shape(pairs[i].frozen);
    }
    for (i = 0; i < count; i++) {
        js_free_shape(rt, pairs[i].open);
        js_free_shape(rt, pairs[i].frozen);
    }
    memset(pairs, 0, sizeof pairs);
    JS_FreeValue(ctx, console);
}

/* Marks every block the engine has as sealed; see heap.h. */
static void seal_blocks(void)
{
    JSMallocBlockHeader *header;
    struct list_head *link;
    uint32_t i, size, k;

    for (i = 0; i < JS_ARENA_BLOCK_SIZE_COUNT; i++) {
        size = arena_block_sizes[i];
        list_for_each(link, &rt->arena_state.arena_list[i]) {
            JSArena *arena = list_entry(link, JSArena, link);
            for (k = 0; k < arena->n_blocks; k++) {
                header = arena_get_block(arena, k, size);
                header->ref_count = SEALED_COUNT;
            }
        }
        /* What is free in them stays so. */
        init_list_head(&rt->arena_state.arena_list[i]);
        init_list_head(&rt->arena_state.free_arena_list[i]);
    }
    for (i = 0; i < built_count; i++) {
        block_of(built[i])->sealed = 1;
        header = built[i];
        /* An arena begins with an address instead, which is even. */
        if (header->u.block_idx == JS_ARENA_FREE_NIL)
            header->ref_count = SEALED_COUNT;
    }
    memset(built, 0, sizeof built);
    is_sealed = 1;
}

/* Takes what is sealed off the collector's list; each is left linked to itself,
 * because a shape may be taken off its list again. */
static void seal_list(void)
{
    struct list_head *link, *next;

    list_for_each_safe(link, next, &rt->gc_obj_list)
        init_list_head(link);
    init_list_head(&rt->gc_obj_list);
}

/* Fills the holes that building has left between blocks, so that what a call asks of
 * the C library lies side by side. */
static void fill_holes(uint32_t spare)
{
    char *top = guest_alloc(NULL, spare), *filler;
    uint32_t size = 64 << 10;

    free(top);
    while (size > 0) {
        filler = guest_alloc(NULL, size);
        if (filler >= top) {
            free(filler);
            size = size > 128 ? size - size / 8 / 8 * 8 : size - 8;
        } else {
            memset(filler, 0, size);
        }
    }
}
