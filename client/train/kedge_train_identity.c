/* kedge-train-identity: speaks the trainer's contract and learns nothing: out is base, linked or copied.
 * For measuring everything around training. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/train/task.h"
#include "common/base/percent.h"

/* Within the kernel where it can; link(2) first, which fails across file systems. */
static int copy(const char *from, const char *to)
{
    struct stat st;
    if (unlink(to) != 0 && errno != ENOENT) {
        return KEDGE_E_IO;
    }
    if (link(from, to) == 0) {
        return KEDGE_OK;
    }
    int in = kedge_data_file_open(from, NULL);
    int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int err = in < 0 || out < 0 || fstat(in, &st) != 0 ? KEDGE_E_IO : KEDGE_OK;
    for (off_t left = err ? 0 : st.st_size; left > 0;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        if (n <= 0) {
            err = KEDGE_E_IO;
            break;
        }
        left -= n;
    }
    if (in >= 0) {
        close(in);
    }
    if (out >= 0 && close(out) != 0) {
        err = KEDGE_E_IO;
    }
    return err;
}

static void answer(void *ctx, struct kedge_view line, struct kedge_buf *reply)
{
    (void)ctx;
    struct kedge_task task;
    struct kedge_diag diag = {0};
    int err = kedge_task_parse(line, false, &task, &diag);
    if (err) {
        kedge_task_put_error(reply, &task, "request", diag.text);
        return;
    }
    if (task.op == KEDGE_TASK_TRAIN && copy(task.base, task.out) != KEDGE_OK) {
        char text[2 * KEDGE_DATA_PATH_MAX + 64];
        snprintf(text, sizeof text, "cannot copy %s to %s", task.base, task.out);
        kedge_task_put_error(reply, &task, "output", text);
        return;
    }
    struct kedge_task_result result = {.samples = task.samples, .engine = "kedge-train-identity 0.1.0"};
    if (task.op == KEDGE_TASK_TRAIN && task.percent > 0) {
        result.data_samples = task.samples;
        result.samples = kedge_percent_of(task.samples, task.percent);
    }
    if (task.op == KEDGE_TASK_EVALUATE || task.evaluate_base) {
        result.has_test = true;
        result.test_samples = task.samples;
    }
    kedge_task_put_ok(reply, &task, &result);
}

int main(void)
{
    return kedge_task_serve(answer, NULL);
}
