/* Any bytes as a request to a trainer, with and without an engine: an error that names something, or a task
 * whose model, texts and numbers are within their bounds. */
#include <math.h>
#include <string.h>

#include "client/train/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void try_task(struct kedge_view line, bool engine)
{
    static struct kedge_task task;
    struct kedge_diag d = {.text = ""};
    if (kedge_task_parse(line, engine, &task, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0] != '\0');
    } else {
        struct kedge_diag unused;
        KEDGE_ASSERT(!engine || (task.has_model && task.has_data));
        KEDGE_ASSERT(!task.has_model || kedge_model_check(&task.model, &unused) == KEDGE_OK);
        KEDGE_ASSERT(isfinite(task.lr) && isfinite(task.l2));
    }
    KEDGE_ASSERT(memchr(task.id, '\0', sizeof task.id) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    try_task(kedge_view_of(data, len), true);
    try_task(kedge_view_of(data, len), false);
    return 0;
}
