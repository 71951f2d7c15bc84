/* The trainer's contract: one JSON request a line in, one JSON reply a line out (docs/modules/train.md).
 * Parsing, replies, and the files that a task names; shared by kedge-train and kedge-train-identity. */
#ifndef KEDGE_CLIENT_TRAIN_TASK_H
#define KEDGE_CLIENT_TRAIN_TASK_H

#include <stdint.h>

#include "client/train/ops.h"
#include "client/train/weights.h"
#include "common/base/bytes.h"
#include "common/tensor/dataset.h"
#include "common/tensor/json.h"
#include "common/tensor/model.h"
#include "common/tensor/part.h"

enum {
    KEDGE_TASK_LINE_MAX = 64 * 1024,
    KEDGE_TASK_ID_MAX = 256,
    KEDGE_TASK_REPLY_MAX = 32 * 1024, /* with names of classes, escaped */
    KEDGE_TASK_TOKENS_MAX = 2048,
    KEDGE_TASK_LABELS_MAX = 256, /* classes that a reply counts */
};

enum kedge_task_device { KEDGE_TASK_CPU = 0, KEDGE_TASK_CUDA, KEDGE_TASK_AUTO };
enum kedge_task_op { KEDGE_TASK_TRAIN = 1, KEDGE_TASK_EVALUATE, KEDGE_TASK_MEASURE };

/* So many passes in which these tensors alone change. */
enum { KEDGE_TASK_PHASES_MAX = 4 };
struct kedge_task_phase {
    struct kedge_part part;
    uint32_t epochs;
};

struct kedge_task {
    char id[KEDGE_TASK_ID_MAX]; /* echoed; set as soon as it could be read, even when the rest is refused */
    enum kedge_task_op op;
    bool has_model, has_data;
    struct kedge_model_spec model;
    struct kedge_data_binding data;
    uint64_t data_key; /* changes with the binding or its files; for caches */
    char base[KEDGE_DATA_PATH_MAX], out[KEDGE_DATA_PATH_MAX];
    uint32_t epochs, batch, threads;
    uint64_t steps, seed, samples;
    double lr, l2, momentum, clip;
    char drift[KEDGE_DATA_PATH_MAX]; /* a file like a model: each step's gradient is taken less this; "": none
                                      */
    double proximal;                 /* pull of each step towards the base */
    char personal[KEDGE_DATA_PATH_MAX]; /* the site's own model, "": none; need not be there yet */
    double personal_pull;               /* of its steps towards the base (Ditto's lambda) */
    struct kedge_part trainable;        /* the tensors that may change; count 0: all */
    uint32_t phase_count;               /* 0: all tensors, `epochs` or `steps` */
    struct kedge_task_phase phases[KEDGE_TASK_PHASES_MAX];
    uint32_t percent; /* to train: of the training set, 1 to 100; 0: all, and the reply does not count it */
    bool evaluate_base, base_loss;
    enum kedge_task_device device;      /* CUDA and AUTO: the processor where there is no device */
    enum kedge_ops_precision precision; /* of products on a device; the processor's are F32 */
};

struct kedge_task_result {
    uint64_t samples, steps;
    uint64_t data_samples; /* of the training set, where the request has a percent of it; else 0 */
    double seconds, train_loss;
    bool has_personal; /* of the site's own model on the test set */
    uint64_t personal_correct;
    double personal_loss;
    bool has_base_loss;
    double base_loss; /* mean over the training set, before training */
    bool has_test;
    uint64_t test_samples, test_correct;
    double test_loss, test_deviation;
    const uint64_t *labels;                /* training samples of each class */
    uint32_t classes;                      /* 0, or more than are told: nothing is said of them */
    const struct kedge_data_labels *names; /* the classes of data whose classes are found; else NULL */
    const char *engine;
    const char *fallback; /* why the device that was asked for did not train; NULL: none was, or it did */
};

/* Reads a request. Unknown keys, missing ones and values out of range are errors that name them. A program
 * that only copies (identity) needs neither model nor data: `engine` says whether they are demanded. */
KEDGE_NODISCARD int kedge_task_parse(struct kedge_view line, bool engine, struct kedge_task *ret,
                                     struct kedge_diag *reterr);

/* Of kedge_task_parse: "trainable" and "phases", once the other keys are read. */
KEDGE_NODISCARD int kedgei_task_read_phases(const struct kedge_json *doc, struct kedge_task *t,
                                            struct kedge_diag *reterr);

/* A number that changes when a file of the binding is replaced or written (device, inode, size, time), for
 * caches; 0 when a file cannot be found. */
uint64_t kedge_data_binding_stamp(const struct kedge_data_binding *binding);

/* Append one reply line with its newline. `code` is one of request, data, model, output, diverged, memory,
 * internal. */
void kedge_task_put_ok(struct kedge_buf *out, const struct kedge_task *task,
                       const struct kedge_task_result *result);
void kedge_task_put_error(struct kedge_buf *out, const struct kedge_task *task, const char *code,
                          const char *message);
/* The code for an error that no step of its own has a word for: memory or internal, else `otherwise`. */
const char *kedge_task_code(int err, const char *otherwise);

/* Answers every line of stdin through `run`, which appends a reply line, until the end of the input. A line
 * beyond KEDGE_TASK_LINE_MAX is answered by an error and skipped. 0, or 3 when stdin or stdout fails. */
typedef void kedge_task_run(void *ctx, struct kedge_view line, struct kedge_buf *reply);
int kedge_task_serve(kedge_task_run *run, void *ctx);

#endif
