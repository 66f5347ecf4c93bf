/* Memory after the snapshot. Every call starts from one image and pays for each page
 * of it that it writes, so the engine is changed in two ways (the changes themselves
 * are in builder/src/patch.rs):
 *
 * What is in the image is sealed: it lives for ever, so its reference counts are
 * neither counted up nor down and the cycle collector passes it by. Using a builtin
 * then only reads it. What only sealed things refer to lives as long as they do.
 *
 * What is new is laid side by side in one region, whatever its size, before the
 * engine's own arenas begin, which take a page for each of 31 sizes. */

/* A count below zero is never changed, and is not 1, which stands for "mine alone". */
#define SEALED_COUNT (INT32_MIN / 2)

#define JS_REF_INC(p) ((void)(js_rc(p)->ref_count < 0 || js_rc(p)->ref_count++))
#define JS_REF_DEC(p) (js_rc(p)->ref_count < 0 ? 1 : --js_rc(p)->ref_count)

#define EARLY_BYTES (64 << 10)

static struct {
    uint32_t used;
    void *free[31]; /* for each of the arenas' sizes */
    _Alignas(8) char blocks[EARLY_BYTES];
} early;

/* Each block of the C library carries its size. The engine keeps count of its memory
 * by asking for the size of each block, when it gets it and when it gives it back; the
 * C library's own answer changes in between (a neighbour's slack is added to it), and
 * a count below zero aborts. */
struct block {
    uint32_t size;
    uint32_t sealed;
    _Alignas(8) char memory[];
};

static struct block *block_of(const void *memory)
{
    return (struct block *)((char *)memory - offsetof(struct block, memory));
}

/* Every block of the engine that the image has, until it is sealed. */
static void *built[4096];
static uint32_t built_count;
static int is_sealed;

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
    block = guest_alloc(NULL, sizeof *block + size);
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

/* A block of one of the arenas' sizes, or null. The arenas ask here first. A free block
 * keeps its link where a used one has its count. */
static inline void *early_alloc(int size_index, uint32_t size)
{
    void **block = early.free[size_index];

    if (block) {
        early.free[size_index] = block[1];
        return block;
    }
    if (!is_sealed || EARLY_BYTES - early.used < size)
        return NULL;
    block = (void **)(early.blocks + early.used);
    early.used += size;
    return block;
}

/* Takes a block back, if it is one of ours. */
static inline int early_free(void *block, int size_index)
{
    if ((char *)block < early.blocks || (char *)block >= early.blocks + EARLY_BYTES)
        return 0;
    ((void **)block)[1] = early.free[size_index];
    early.free[size_index] = block;
    return 1;
}

static inline int arena_is_sealed(const void *arena)
{
    return block_of(arena)->sealed;
}
