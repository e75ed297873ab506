/* dflash.h - the boundary of the DFlash engine, and its manual. What is not in here is not public.
 *
 * The engine runs a *target* model (whose output is exact) and, beside it, a DFlash *draft* that proposes tokens.
 * One step: the draft fills a block, the block becomes a tree, the target verifies the whole tree in one pass, the
 * accepted path is committed together with the target's own next token (the bonus). Plain decoding is the same step
 * with an empty tree. Whatever the draft proposes, the tokens are the target's own.
 *
 * Objects
 *   dflash_file     a checked, memory-mapped model file: metadata only, nothing is computed
 *   dflash_target   read-only weights on a device; dflash_draft likewise, bound to its target
 *   dflash_session  one timeline: KV cache, draft context, sampler
 *   dflash_scorer   rates the tokens of a long prompt with a target's attention; needs no session
 * Open a file, a target, a draft, a session in this order and close them in the reverse order; nothing may outlive what it
 * was opened with.
 *
 * Threads    Any thread may call the functions without an object, and use different objects at the same time. One
 *            object is used by one thread at a time. The only exceptions are dflash_session_cancel and dflash_scorer_cancel.
 * Pull only  No function calls back. A load, a prefill, a scoring and a reply advance by one piece per call; not calling again
 *            is how to stop. Progress is what the calls return. Log lines are fetched with dflash_log_next.
 * Errors     Every function returns a dflash_status. Below zero something failed, and dflash_last_error() gives a
 *            sentence for the person (file, field, value) until this thread's next call; dflash_last_failure() the numbers
 *            of memory that could not be had. A failed call changes nothing, except that a session whose step or prefill
 *            failed may only be begun again or closed.
 *            A bad file, a bad argument or a full device is an error, never an abort.
 * Strings    UTF-8, NUL-terminated, never NULL unless said so. Paths too, on every system. Pointers handed out live as
 *            long as the object they came from.
 * Structs    `size` is the first member of each. The caller sets it to sizeof(struct), for inputs and for outputs; the
 *            engine refuses a size it does not know. Zero in any other input member means its default.
 * Units      _bytes, _us (microseconds), _tokens; counts n_...; token ids are int32_t; -1 is "none".
 */
#ifndef DFLASH_H
#define DFLASH_H

#include <stdint.h>

#if defined(_WIN32)
#  if defined(DFLASH_BUILD)
#    define DFLASH_API __declspec(dllexport)
#  else
#    define DFLASH_API __declspec(dllimport)
#  endif
#else
#  define DFLASH_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a struct or a meaning changes; the Python mirror refuses another number. */
#define DFLASH_ABI_VERSION 5

/* Rows of the largest verify: the root and up to 63 nodes. */
#define DFLASH_MAX_ROWS 64

typedef enum dflash_status {
    DFLASH_OK = 0,
    DFLASH_END = 1,                /* nothing follows: the reply, or the log, has ended */
    DFLASH_MORE = 2,               /* call again: the load or the prefill is not finished */
    DFLASH_BAD_ARGUMENT = -1,      /* the caller asked for something that makes no sense */
    DFLASH_BAD_FILE = -2,          /* unreadable, truncated, malformed or inconsistent file */
    DFLASH_UNSUPPORTED = -3,       /* a sound file or setting that this engine or device cannot run */
    DFLASH_OUT_OF_MEMORY = -4,
    DFLASH_DEVICE_FAILED = -5,     /* the backend reported an error while computing */
    DFLASH_CANCELLED = -6,         /* dflash_session_cancel or dflash_scorer_cancel was called */
    DFLASH_BAD_STATE = -7,         /* right call, wrong moment */
    DFLASH_INTERNAL = -8           /* a bug in the engine */
} dflash_status;

DFLASH_API int32_t dflash_abi_version(void);
/* The size this library gives the struct of that name ("dflash_step" ...); 0 when it has no such struct. */
DFLASH_API uint32_t dflash_struct_size(const char * name);
/* Why this thread's last call failed; "" when it did not. */
DFLASH_API const char * dflash_last_error(void);

/* What there was no memory for. */
typedef enum dflash_part {
    DFLASH_PART_UNKNOWN = 0,
    DFLASH_PART_WEIGHTS = 1,       /* of a target */
    DFLASH_PART_KV_CACHE = 2,      /* of a session, with its recurrent state */
    DFLASH_PART_COMPUTE = 3,       /* what a session computes in */
    DFLASH_PART_DRAFT = 4,         /* a draft's weights, KV cache and passes */
    DFLASH_PART_SCORER = 5         /* all of a scorer but the weights */
} dflash_part;

typedef struct dflash_failure {
    uint32_t size;
    int32_t status;                /* dflash_status below zero; DFLASH_OK when this thread's last call did not fail */
    /* of DFLASH_OUT_OF_MEMORY */
    int32_t device;                /* dflash_device.index; the CPU's for memory of the computer; -1: not known */
    int32_t part;                  /* dflash_part */
    uint64_t needed_bytes;         /* the piece of memory that could not be had; 0: not known */
    uint64_t free_bytes;           /* on the device at that moment; 0: not known. Where it is more than was needed, there was
                                    * no piece of that size, or something else sets a limit. */
} dflash_failure;

/* The same failure in numbers. Asking changes nothing. */
DFLASH_API int32_t dflash_last_failure(dflash_failure * out);

/* The version of ggml that computes, "0.25.3 (commit)". */
DFLASH_API const char * dflash_ggml_version(void);

/* ---- start, devices, log -------------------------------------------------------------------------------------- */

/* Load the compute backends found in `backend_dir` (the folder of this library). Call once, before all else; further
 * calls do nothing. A backend whose driver is missing is skipped. Fails only when no CPU backend is found. */
DFLASH_API int32_t dflash_start(const char * backend_dir);

typedef enum dflash_log_level { DFLASH_LOG_DEBUG = 0, DFLASH_LOG_INFO = 1, DFLASH_LOG_WARNING = 2, DFLASH_LOG_ERROR = 3 } dflash_log_level;

typedef struct dflash_log_line {
    uint32_t size;
    int32_t level;                 /* dflash_log_level */
    char text[1016];               /* one line, cut when longer */
} dflash_log_line;

/* Take the oldest waiting log line (ours and ggml's). DFLASH_END when none waits. The last 1000 are kept. */
DFLASH_API int32_t dflash_log_next(dflash_log_line * out);
/* ggml ends the process where a check of its own fails. Its last words then go to stderr and to the end of this file
 * (UTF-8 path, at most 1023 bytes; "": to stderr only). */
DFLASH_API int32_t dflash_log_aborts_to(const char * path);

typedef enum dflash_device_kind { DFLASH_DEVICE_CPU = 0, DFLASH_DEVICE_GPU = 1, DFLASH_DEVICE_INTEGRATED_GPU = 2, DFLASH_DEVICE_OTHER = 3 } dflash_device_kind;

typedef struct dflash_device {
    uint32_t size;
    int32_t index;                 /* what load parameters take; may change between starts */
    int32_t kind;                  /* dflash_device_kind */
    int32_t reserved;
    uint64_t total_bytes;
    uint64_t free_bytes;           /* now; other programs count */
    char name[64];                 /* "CPU", "CUDA0", "Vulkan1": what people type */
    char backend[64];              /* "CPU", "CUDA", "Vulkan" */
    char description[256];         /* the maker's name of it */
    char id[128];                  /* the same after a reboot: PCI address where there is one, else name */
} dflash_device;

DFLASH_API int32_t dflash_device_count(int32_t * out);
DFLASH_API int32_t dflash_device_get(int32_t index, dflash_device * out);

/* ---- model files ---------------------------------------------------------------------------------------------- */

typedef struct dflash_file dflash_file;

typedef enum dflash_role { DFLASH_ROLE_OTHER = 0, DFLASH_ROLE_TARGET = 1, DFLASH_ROLE_DRAFT = 2 } dflash_role;

typedef struct dflash_file_info {
    uint32_t size;
    int32_t role;                  /* dflash_role */
    int32_t can_run;               /* 1 when this engine runs it; else `reason` says why not */
    int32_t n_layers;
    int32_t n_embd;
    int32_t n_vocab;               /* 0 for a draft that has no vocabulary of its own */
    int32_t context_tokens;        /* the context it was trained for */
    int32_t block_size;            /* drafts: the root and the tokens drafted after it in one pass */
    int32_t mask_token;            /* drafts; -1 when the file does not say */
    int32_t n_feature_layers;      /* drafts: target layers whose output is read */
    int32_t feature_layers[32];    /* their 0-based numbers */
    uint64_t file_bytes;
    uint64_t n_parameters;
    char architecture[64];
    char name[256];                /* general.name, "" when absent */
    char quantization[64];         /* commonest tensor type by bytes, "Q4_K" */
    char reason[512];
} dflash_file_info;

typedef enum dflash_value_kind {
    DFLASH_VALUE_INTEGER = 1,
    DFLASH_VALUE_REAL = 2,
    DFLASH_VALUE_BOOLEAN = 3,
    DFLASH_VALUE_STRING = 4,
    DFLASH_VALUE_INTEGERS = 5,
    DFLASH_VALUE_REALS = 6,
    DFLASH_VALUE_BOOLEANS = 7,
    DFLASH_VALUE_STRINGS = 8
} dflash_value_kind;

/* One metadata value. Arrays and strings point into the mapped file. */
typedef struct dflash_value {
    uint32_t size;
    int32_t kind;                  /* dflash_value_kind */
    int64_t integer;               /* INTEGER, BOOLEAN; unsigned values above 2^63-1 are refused at open */
    double real;                   /* REAL */
    uint64_t count;                /* elements of an array; bytes of a STRING */
    const void * data;             /* STRING: bytes. Numbers: little-endian elements. STRINGS: each a u64 length and its bytes */
    uint64_t n_bytes;              /* bytes at `data` */
    int32_t element_bytes;         /* size of one number; 0 for strings */
    int32_t is_signed;             /* INTEGERS: whether elements are signed */
} dflash_value;

/* Map a GGUF file, or a draft's .safetensors with its config.json, and check all of it: header, metadata, every tensor's
 * type, shape, offset and extent. */
DFLASH_API int32_t dflash_file_open(const char * path, dflash_file ** out);
DFLASH_API void dflash_file_close(dflash_file * file);
DFLASH_API int32_t dflash_file_describe(const dflash_file * file, dflash_file_info * out);
/* DFLASH_END when the file has no such key. */
DFLASH_API int32_t dflash_file_value(const dflash_file * file, const char * key, dflash_value * out);
/* DFLASH_OK when `draft` was made for a target like `target`; DFLASH_UNSUPPORTED with the reason when not. */
DFLASH_API int32_t dflash_file_pair(const dflash_file * target, const dflash_file * draft);

/* ---- loading -------------------------------------------------------------------------------------------------- */

typedef struct dflash_target dflash_target;
typedef struct dflash_draft dflash_draft;

typedef struct dflash_load_params {
    uint32_t size;
    int32_t device;                /* dflash_device.index */
    int32_t n_threads;             /* CPU threads; 0: physical cores */
    int32_t is_apart;              /* drafts: 1 for a stream and copies of its own even on the target's device. On another
                                    * device a draft always has them. */
} dflash_load_params;

typedef struct dflash_progress {
    uint32_t size;
    int32_t reserved;
    uint64_t n_done;               /* load: bytes; prefill and scoring: tokens */
    uint64_t n_total;
} dflash_progress;

/* Check the file and prepare to load it; no weights move yet. */
DFLASH_API int32_t dflash_target_open(const char * path, const dflash_load_params * params, dflash_target ** out);
/* Move the next piece of the weights. DFLASH_MORE until all are there, then DFLASH_OK. */
DFLASH_API int32_t dflash_target_load(dflash_target * target, dflash_progress * out);
DFLASH_API void dflash_target_close(dflash_target * target);
/* The tokens after which a reply ends (end of sequence, turn or message). Fills up to `capacity` ids; *n is how many there are. */
DFLASH_API int32_t dflash_target_stop_tokens(const dflash_target * target, int32_t capacity, int32_t * ids, int32_t * n);

/* A draft for a loaded target; refused, with the reason, when the two do not fit. On a device other than the target's it
 * loads copies of the embeddings and the head that it borrows, and gets features of committed rows through the host. */
DFLASH_API int32_t dflash_draft_open(const char * path, dflash_target * target, const dflash_load_params * params, dflash_draft ** out);
DFLASH_API int32_t dflash_draft_load(dflash_draft * draft, dflash_progress * out);
DFLASH_API void dflash_draft_close(dflash_draft * draft);

/* ---- sessions ------------------------------------------------------------------------------------------------- */

typedef struct dflash_session dflash_session;

typedef enum dflash_kv_type {
    DFLASH_KV_AUTO = 0,
    DFLASH_KV_F32 = 1,
    DFLASH_KV_F16 = 2,
    DFLASH_KV_BF16 = 3,
    DFLASH_KV_Q8_0 = 4,
    DFLASH_KV_Q5_1 = 5,
    DFLASH_KV_Q5_0 = 6,
    DFLASH_KV_Q4_1 = 7,
    DFLASH_KV_Q4_0 = 8
} dflash_kv_type;

typedef struct dflash_session_params {
    uint32_t size;
    int32_t context_tokens;        /* capacity: prompt + reply; 0: what the model was trained for, at most 8192 */
    int32_t kv_k;                  /* dflash_kv_type of the keys; AUTO: F32 on the CPU, F16 elsewhere */
    int32_t kv_v;
    int32_t prefill_chunk;         /* rows per prefill pass; 0: chosen for the device */
    int32_t max_nodes;             /* largest tree this session may verify, 1..63; 0: 63 with a draft */
    int32_t window;                /* positions that the target's attention looks back over, a row's own included; 0: all.
                                    * Replies are then those of the target with that window. Recurrent layers forget nothing,
                                    * and the KV cache keeps its size: what is saved is time at long contexts. */
    int32_t n_tuning;              /* numbers at `tuning` */
    const double * tuning;         /* what dflash_session_tuning gave for the same target, draft, device and threads, or
                                    * NULL. Checked; numbers that are unsound or of another kind of device are ignored. */
    int64_t prefix_bytes;          /* most that the prefix cache may take of the computer's memory; 0: a quarter of what is
                                    * free, at most 8 GiB and four full contexts; -1: no prefix cache */
} dflash_session_params;

/* Bytes by part, on the target's device; a draft's on the draft's. */
typedef struct dflash_memory {
    uint32_t size;
    int32_t context_tokens;
    uint64_t target_weights_bytes; /* on the CPU mostly the mapped file itself */
    uint64_t draft_weights_bytes;
    uint64_t kv_cache_bytes;
    uint64_t recurrent_bytes;
    uint64_t draft_kv_bytes;
    uint64_t compute_bytes;
    uint64_t draft_compute_bytes;  /* of a draft that is apart; otherwise part of compute_bytes */
    uint64_t prefix_bytes;         /* in the prefix cache now: in the computer's memory, not on the device, and not reserved */
} dflash_memory;

/* `draft` may be NULL. Reserves everything a full context needs, so that memory runs out here or never. */
DFLASH_API int32_t dflash_session_open(dflash_target * target, dflash_draft * draft, const dflash_session_params * params, dflash_session ** out);
DFLASH_API void dflash_session_close(dflash_session * session);
DFLASH_API int32_t dflash_session_memory(const dflash_session * session, dflash_memory * out);

/* The prefix cache. The KV cache holds one conversation. When a prompt parts from it, its rows (of target and draft, in
 * their own types) and recurrent states are copied to the computer's memory in blocks, conversations with a common start
 * sharing theirs; a later prompt gets back the longest start that is there. Recurrent state cannot be cut back to any token,
 * so it is kept at some places of each prompt: ends of messages (told by stop tokens in the prompt), ends of prompts, and
 * every so many tokens. What was not asked for the longest makes room. Nothing of it changes what is generated: it goes on
 * from rows that were computed, as in a conversation that goes on. No room means no reuse, never an error. */
typedef struct dflash_prefixes {
    uint32_t size;
    uint32_t reserved;
    uint64_t most_bytes;           /* the bound in force; 0: off */
    uint64_t used_bytes;           /* memory that was given up and waits to be used again included */
    uint64_t fresh_bytes;          /* memory taken from the system, in all since the session was opened */
    uint64_t n_restores;           /* prompts that got rows back, since the session was opened */
    uint64_t n_restored_tokens;    /* the tokens of these prompts that were not read again */
    uint64_t n_saved_tokens;       /* rows copied out */
    uint64_t n_evicted_tokens;     /* rows dropped for want of room */
    int64_t save_us;
    int64_t restore_us;
} dflash_prefixes;

DFLASH_API int32_t dflash_session_prefixes(const dflash_session * session, dflash_prefixes * out);

/* What the session has learnt about times and acceptance, as numbers to be kept for dflash_session_params.tuning. Fills up
 * to `capacity`; *n is how many there are. */
DFLASH_API int32_t dflash_session_tuning(const dflash_session * session, int32_t capacity, double * values, int32_t * n);

typedef enum dflash_draft_mode { DFLASH_DRAFT_AUTO = 0, DFLASH_DRAFT_TREE = 1, DFLASH_DRAFT_CHAIN = 2, DFLASH_DRAFT_OFF = 3 } dflash_draft_mode;

/* What loading a pair would take, from the files' headers alone. */
typedef struct dflash_plan {
    uint32_t size;
    int32_t context_tokens;        /* the context planned: asked for, or the largest that fits when 0 was asked */
    int32_t max_context_tokens;    /* the largest that fits, at most what the model was trained for; 0: not even 256 do */
    int32_t fits;                  /* 1 when `total_bytes` and the reserve fit into `free_bytes`, and the draft's likewise */
    uint64_t target_weights_bytes;
    uint64_t draft_weights_bytes;
    uint64_t kv_cache_bytes;
    uint64_t recurrent_bytes;
    uint64_t draft_kv_bytes;
    uint64_t compute_bytes;
    uint64_t total_bytes;          /* of the parts on the target's device */
    uint64_t reserve_bytes;        /* kept free for the system and other programs */
    uint64_t free_bytes;           /* on the device now */
    uint64_t draft_compute_bytes;  /* the same for a draft on a device of its own; otherwise 0 */
    uint64_t draft_total_bytes;
    uint64_t draft_reserve_bytes;
    uint64_t draft_free_bytes;
} dflash_plan;

/* Plan a session without loading. `draft_path` may be NULL; draft_load NULL: as the target. The same arithmetic as
 * dflash_session_open. */
DFLASH_API int32_t dflash_plan_pair(const char * target_path, const char * draft_path, const dflash_load_params * load, const dflash_load_params * draft_load,
                                    const dflash_session_params * session, dflash_plan * out);

/* One request. Zero everywhere: greedy, automatic draft, until a stop token or the end of the context. */
typedef struct dflash_generation {
    uint32_t size;
    int32_t max_tokens;            /* 0: the room left in the context */
    float temperature;             /* 0: always the likeliest token */
    float top_p;                   /* 0 or 1: off */
    float min_p;                   /* 0: off */
    int32_t top_k;                 /* 0: off */
    float repeat_penalty;          /* 0 or 1: off. Divides positive logits, multiplies negative ones */
    float frequency_penalty;       /* subtracted once per occurrence */
    float presence_penalty;        /* subtracted once per token that occurred */
    int32_t penalty_window;        /* last tokens that count, prompt included; 0: 256, -1: all */
    uint64_t seed;
    int32_t draft_mode;            /* dflash_draft_mode */
    int32_t tree_budget;           /* most nodes per step; 0: automatic */
    int32_t block_size;            /* positions the draft fills, root included; 0: as trained */
    int32_t ignore_stop;           /* 1: stop tokens are ordinary tokens (benchmarks) */
    int32_t want_logprobs;         /* 1: fill dflash_step.logprobs */
    int32_t no_reuse;              /* 1: prefill the whole prompt even if its start is in the cache; nothing is saved either */
} dflash_generation;

typedef struct dflash_begun {
    uint32_t size;
    int32_t n_prompt;
    int32_t n_reused;              /* prompt tokens whose rows were there already, in the KV cache or the prefix cache */
    int32_t max_tokens;            /* the limit in force: asked for, or the room left */
    int32_t n_restored;            /* of n_reused, what the prefix cache added to the KV cache's own */
    int32_t reserved;
    int64_t reuse_us;              /* spent on looking for them and on copying, the old conversation's rows out too */
} dflash_begun;

/* Begin a reply to `prompt` (1..context_tokens-1 ids). The longest shared start with what the session or its prefix cache
 * holds is kept. */
DFLASH_API int32_t dflash_session_begin(dflash_session * session, const int32_t * prompt, int32_t n_prompt, const dflash_generation * generation,
                                        dflash_begun * out);
/* One chunk of the prompt. DFLASH_MORE until done, then DFLASH_OK. The last prompt token is left for the first step: it
 * is the first root. */
DFLASH_API int32_t dflash_session_prefill(dflash_session * session, dflash_progress * out);

typedef enum dflash_finish { DFLASH_FINISH_NONE = 0, DFLASH_FINISH_STOP = 1, DFLASH_FINISH_LENGTH = 2, DFLASH_FINISH_CONTEXT = 3 } dflash_finish;

/* Why the step had the size it had. */
typedef enum dflash_reason {
    DFLASH_REASON_NO_DRAFT = 0,    /* no draft loaded */
    DFLASH_REASON_OFF = 1,         /* switched off by the request */
    DFLASH_REASON_FIXED = 2,       /* size set by the request */
    DFLASH_REASON_BEST = 3,        /* most expected tokens per second */
    DFLASH_REASON_PLAIN_FASTER = 4,/* measured: drafting is slower here */
    DFLASH_REASON_PROBE = 5,       /* measuring whether drafting pays again */
    DFLASH_REASON_NO_ROOM = 6,     /* token limit or context leaves no room for nodes */
    DFLASH_REASON_MEASURE = 7      /* not the best choice: keeps a time known */
} dflash_reason;

/* The record of one step. Row 0 is the root; rows 1..n_drafted are the nodes, parents before children. */
typedef struct dflash_step {
    uint32_t size;
    int32_t n_drafted;             /* nodes verified */
    int32_t n_accepted;            /* nodes on the path the target agreed with */
    int32_t n_committed;           /* tokens the reply gained: accepted + bonus, less if a stop or the limit cut it */
    int32_t finish;                /* dflash_finish; a stop token is the last of `tokens` */
    int32_t reason;                /* dflash_reason */
    int32_t n_positions;           /* rows in the target's KV cache after the commit */
    int32_t n_reply;               /* reply tokens so far */
    int64_t draft_us;
    int64_t verify_us;
    int64_t commit_us;
    int64_t host_us;               /* the rest: tree, sampling, bookkeeping */
    int32_t block_size;            /* positions the draft filled, root included; 0: nothing was drafted */
    float expected_committed;      /* what the tuner expected of this size; 0 when it had no say */
    float expected_us;             /* how long it expected the step to take; 0 likewise */
    float plain_us;                /* how long a step without a draft takes here, as far as is known */
    float speed_up;                /* what drafting has brought lately, over plain decoding; 0: not known */
    int32_t tokens[DFLASH_MAX_ROWS];       /* n_committed */
    float logprobs[DFLASH_MAX_ROWS];       /* of `tokens` in the target's distribution; NaN unless asked for */
    int32_t node_tokens[DFLASH_MAX_ROWS];  /* [0] the root, then the nodes */
    int32_t node_parents[DFLASH_MAX_ROWS]; /* row of the parent; -1 for the root */
    float node_logprobs[DFLASH_MAX_ROWS];  /* the draft's log-probability of the path up to the node */
    int32_t path[DFLASH_MAX_ROWS];         /* rows accepted, root first: n_accepted + 1 */
} dflash_step;

/* Run one step and fill *out. DFLASH_OK, or DFLASH_END when this step finished the reply (out->finish says why). */
DFLASH_API int32_t dflash_session_step(dflash_session * session, dflash_step * out);

/* The same step in two halves, for replies that have to follow a grammar and for looking at what else was likely.
 * propose drafts, verifies and chooses, but commits nothing: out->tokens[0..n_committed-1] is what the target says next,
 * out->finish what committing all of it would lead to. Whatever is called next but likeliest and settle drops it. */
DFLASH_API int32_t dflash_session_propose(dflash_session * session, dflash_step * out);
/* After propose: the k likeliest tokens at place `index` of the proposal and their log-probabilities in the target's
 * distribution, best first; k <= 64. */
DFLASH_API int32_t dflash_session_likeliest(dflash_session * session, int32_t index, int32_t k, int32_t * ids, float * logprobs);
/* Commit the first `n_keep` tokens of the proposal (1..n_committed) and fill *out as dflash_session_step does. With
 * `allowed` (bit t % 32 of word t / 32 for token t; tokens past `n_words` are not allowed) n_keep is 0..n_committed-1, and
 * the token after the kept ones is chosen anew, among the allowed ones alone. That is exact: a token that was drawn freely
 * and may stay has, together with the second draw, its share of the allowed tokens' distribution. */
DFLASH_API int32_t dflash_session_settle(dflash_session * session, int32_t n_keep, const uint32_t * allowed, int32_t n_words, dflash_step * out);
/* From any thread: make the running or next prefill or step return DFLASH_CANCELLED soon. Cleared by begin. */
DFLASH_API void dflash_session_cancel(dflash_session * session);

/* ---- scoring: what of a long prompt matters (PFlash) ------------------------------------------------------------ */

/* A loaded target of any family reads a text and rates each of its tokens by how much a question attends to it. One
 * thread at a time; open after, and close before, its target. */
typedef struct dflash_scorer dflash_scorer;

typedef struct dflash_scorer_params {
    uint32_t size;
    int32_t text_tokens;           /* the longest text */
    int32_t window_tokens;         /* tokens read together; 0: 960. Memory and time grow linearly with the text */
    int32_t first_layer;           /* attention layers that are listened to, [first, end) counted among attention layers; */
    int32_t end_layer;             /* both 0: from 0.4 to 0.8 of the depth. Later layers are not run */
    int32_t windows_together;      /* windows read in one pass, side by side; 0: one, or four on a GPU of 60 GiB or more. Models with
                                    * a recurrent state read one */
} dflash_scorer_params;

DFLASH_API int32_t dflash_scorer_open(dflash_target * target, const dflash_scorer_params * params, dflash_scorer ** out);
DFLASH_API void dflash_scorer_close(dflash_scorer * scorer);
/* Bytes by part; kv_cache_bytes holds the keys that are kept, too. */
DFLASH_API int32_t dflash_scorer_memory(const dflash_scorer * scorer, dflash_memory * out);
/* The same from the file's header alone. */
DFLASH_API int32_t dflash_plan_scorer(const char * target_path, const dflash_load_params * load, const dflash_scorer_params * params, dflash_memory * out);
/* What the text shares with the one before, from its start, is not read again, even if that one was left unfinished.
 * weights: one per token of the question (at most 512), not negative; NULL: all alike. */
DFLASH_API int32_t dflash_scorer_begin(dflash_scorer * scorer, const int32_t * text, int32_t n_text, const int32_t * question, int32_t n_question,
                                       const float * weights);
/* One piece. DFLASH_MORE until done, then DFLASH_OK. */
DFLASH_API int32_t dflash_scorer_run(dflash_scorer * scorer, dflash_progress * out);
/* n_text values, 0 to 1: per listened-to head the largest attention probability that a token of the question gives, times
 * that one's weight; of them the geometric mean over the heads, 0.003 added to each before and taken off after. */
DFLASH_API int32_t dflash_scorer_masses(const dflash_scorer * scorer, float * out, int32_t n_text);
/* From any thread: make the running or next piece return DFLASH_CANCELLED soon. Cleared by begin. */
DFLASH_API void dflash_scorer_cancel(dflash_scorer * scorer);

/* ---- probes: the parts of a step one by one, for tests and measurements ---------------------------------------- */

/* Forget everything the session holds. */
DFLASH_API int32_t dflash_probe_reset(dflash_session * session);
/* Append `tokens`; logits (n x n_vocab, row-major) receives every row's, or NULL. */
DFLASH_API int32_t dflash_probe_append(dflash_session * session, const int32_t * tokens, int32_t n, float * logits);
/* Draft a block of block_size (0: as trained) after `root`: the k likeliest ids and log-probabilities per depth ((block_size-1) x k, best first; where a
 * token hangs on the one before, those after the likeliest path, and -infinity beyond the draft's own candidates), and the
 * draft's final hidden rows (block_size x n_embd, zeros where its pass has a row less) unless NULL. */
DFLASH_API int32_t dflash_probe_draft(dflash_session * session, int32_t root, int32_t block_size, int32_t k, int32_t * ids, float * logprobs, float * hidden);
/* Verify rows (root first, parents before children; parents[0] = -1); logits is n_rows x n_vocab. */
DFLASH_API int32_t dflash_probe_verify(dflash_session * session, const int32_t * tokens, const int32_t * parents, int32_t n_rows, float * logits);
/* Commit a root-first path of the rows just verified. */
DFLASH_API int32_t dflash_probe_commit(dflash_session * session, const int32_t * rows, int32_t n_rows);
/* Draw `n` next tokens from `logits` (n_vocab) as generation says, after `history`; fixed by generation->seed. */
DFLASH_API int32_t dflash_probe_sample(const float * logits, int32_t n_vocab, const int32_t * history, int32_t n_history, const dflash_generation * generation,
                                       int32_t n, int32_t * out);

#ifdef __cplusplus
}
#endif

#endif
