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
} early __attribute__((aligned(4096)));

static int is_sealed;

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

/* Whether an object or shape is in the image. */
#define IS_IMAGE(p) (JS_REF_COUNT(p) < 0)
/* The global object is in it too, and belongs to the script. */
#define IS_FROZEN_IMAGE(p) (IS_IMAGE(p) && !(p)->extensible)

/* What `Date` says the time is, where a face has set it. */
static struct {
    int is_set;
    int64_t now_ms;
} given_clock;

static void *context_memory(size_t size);
static int arena_is_sealed(const void *arena);
