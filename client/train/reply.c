/* Replies, and the loop over request lines. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/train/task.h"
#include "common/base/mem.h"
#include "common/base/text.h"

static void put_id(struct kedge_buf *out, const struct kedge_task *task)
{
    kedge_buf_put_str(out, "{\"id\":");
    kedge_json_put_string(out, kedge_view_str(task->id));
}

static void put_real(struct kedge_buf *out, const char *key, double v)
{
    char text[KEDGE_REAL_MAX];
    kedge_real_encode(v, text);
    kedge_buf_printf(out, ",\"%s\":\"%s\"", key, text);
}

/* One line, with the keys in a fixed order. Reals are strings: the shortest decimals that read back to the
 * same value. */
void kedge_task_put_ok(struct kedge_buf *out, const struct kedge_task *task,
                       const struct kedge_task_result *r)
{
    put_id(out, task);
    kedge_buf_put_str(out, ",\"status\":\"ok\"");
    if (task->op == KEDGE_TASK_TRAIN) {
        kedge_buf_printf(out, ",\"samples\":%llu,\"steps\":%llu,\"batch\":%u", (unsigned long long)r->samples,
                         (unsigned long long)r->steps, task->batch);
        if (r->data_samples > 0) {
            kedge_buf_printf(out, ",\"data_samples\":%llu", (unsigned long long)r->data_samples);
        }
        put_real(out, "train_loss", r->train_loss);
    }
    if (r->has_base_loss) {
        put_real(out, "base_loss", r->base_loss);
    }
    put_real(out, "seconds", r->seconds);
    if (r->has_test) {
        kedge_buf_printf(out, ",\"test_samples\":%llu,\"test_correct\":%llu",
                         (unsigned long long)r->test_samples, (unsigned long long)r->test_correct);
        put_real(out, "test_loss", r->test_loss);
        put_real(out, "test_deviation", r->test_deviation);
    }
    if (r->has_personal) {
        kedge_buf_printf(out, ",\"personal_correct\":%llu", (unsigned long long)r->personal_correct);
        put_real(out, "personal_loss", r->personal_loss);
    }
    if (r->classes > 0 && r->classes <= KEDGE_TASK_LABELS_MAX) {
        for (uint32_t i = 0; i < r->classes; i++) {
            kedge_buf_printf(out, "%s%llu", i ? "," : ",\"labels\":[", (unsigned long long)r->labels[i]);
        }
        kedge_buf_put_str(out, "]");
    }
    const char *name = r->names ? r->names->text : NULL;
    for (uint32_t i = 0; r->names && i < r->names->count; i++, name = kedge_names_next(name)) {
        kedge_buf_put_str(out, i ? "," : ",\"classes\":[");
        kedge_json_put_string(out, kedge_view_str(name));
    }
    kedge_buf_put_str(out, r->names && r->names->count > 0 ? "]" : "");
    kedge_buf_put_str(out, ",\"engine\":");
    kedge_json_put_string(out, kedge_view_str(r->engine));
    if (r->fallback) {
        kedge_buf_put_str(out, ",\"fallback\":");
        kedge_json_put_string(out, kedge_view_str(r->fallback));
    }
    kedge_buf_put_str(out, "}\n");
}

void kedge_task_put_error(struct kedge_buf *out, const struct kedge_task *task, const char *code,
                          const char *message)
{
    put_id(out, task);
    kedge_buf_printf(out, ",\"status\":\"error\",\"code\":\"%s\",\"message\":", code);
    kedge_json_put_string(out, kedge_view_str(message));
    kedge_buf_put_str(out, "}\n");
}

const char *kedge_task_code(int err, const char *otherwise)
{
    const bool data = strcmp(otherwise, "data") == 0;
    return err == KEDGE_E_NOMEM                          ? "memory"
           : err == KEDGE_E_NOT_FINITE                   ? "diverged"
           : data && err == KEDGE_E_NOT_FOUND            ? "data-missing"
           : data && err == KEDGE_E_SHAPE                ? "data-shape"
           : err == KEDGE_E_BUG || err == KEDGE_E_DEVICE ? "internal"
                                                         : otherwise;
}

static bool write_all(struct kedge_view v)
{
    while (v.len > 0) {
        ssize_t n = write(STDOUT_FILENO, v.ptr, v.len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        v = kedge_view_of(v.ptr + n, v.len - (size_t)n);
    }
    return true;
}

/* Bytes received and not yet answered; a line longer than the buffer is dropped up to its newline. */
struct input {
    uint8_t *bytes;
    size_t len;
    bool too_long;
};

static bool answer(kedge_task_run *run, void *ctx, struct input *in, struct kedge_view line,
                   struct kedge_buf *reply)
{
    kedge_buf_clear(reply);
    if (in->too_long) {
        struct kedge_task none = {0};
        kedge_task_put_error(reply, &none, "request", "a request line is at most 65536 bytes");
        in->too_long = false;
    } else if (line.len == 0) {
        return true; /* blank lines keep a terminal session pleasant */
    } else {
        run(ctx, line, reply);
    }
    return reply->err == KEDGE_OK && write_all(kedge_buf_view(reply));
}

static bool answer_lines(kedge_task_run *run, void *ctx, struct input *in, struct kedge_buf *reply)
{
    uint8_t *begin = in->bytes, *end = in->bytes + in->len, *newline;
    while (begin < end && (newline = memchr(begin, '\n', (size_t)(end - begin))) != NULL) {
        if (!answer(run, ctx, in, kedge_view_of(begin, (size_t)(newline - begin)), reply)) {
            return false;
        }
        begin = newline + 1;
    }
    in->len = (size_t)(end - begin);
    memmove(in->bytes, begin, in->len);
    if (in->len == KEDGE_TASK_LINE_MAX) {
        in->too_long = true;
        in->len = 0;
    }
    return true;
}

/* One request at a time, in the order in which they come, until the input ends: a trainer whose client has
 * died ends by itself. */
int kedge_task_serve(kedge_task_run *run, void *ctx)
{
    struct input in = {.bytes = kedge_mem_new(KEDGE_TASK_LINE_MAX, 1)};
    struct kedge_buf reply;
    int status = in.bytes ? 0 : 3;
    kedge_buf_init(&reply, KEDGE_TASK_REPLY_MAX);
    while (status == 0) {
        ssize_t n = read(STDIN_FILENO, in.bytes + in.len, KEDGE_TASK_LINE_MAX - in.len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            status = n < 0 ? 3 : 0;
            break;
        }
        in.len += (size_t)n;
        if (!answer_lines(run, ctx, &in, &reply)) {
            status = 3;
        }
    }
    kedge_buf_deinit(&reply);
    kedge_mem_free(in.bytes);
    return status;
}
