/* kedge-bench-trainer: speaks the trainer's contract and learns nothing, but changes one weight of the
 * model a little, differently at every site and in every round. Models and updates are addressed by their
 * content: were they all the same, as kedge-train-identity makes them, none would travel after the first
 * round. kedge-bench-trainer-noise (KEDGE_BENCH_NOISE) changes every weight, since updates travel packed: one
 * in which a single weight differs is a few bytes on the wire. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/train/task.h"

#ifdef KEDGE_BENCH_NOISE
/* Every weight, by up to 1/256: 13 of the 32 bits of an update's integers at scale 20. */
static int change(int fd, off_t size)
{
    static uint32_t noise; /* xorshift: Marsaglia, "Xorshift RNGs", 2003 */
    float block[16384];
    uint64_t header = 0;
    bool good = pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header && header < (uint64_t)size;
    noise = noise ? noise : (uint32_t)getpid() * 2654435761u | 1u;
    for (off_t at = 8 + (off_t)header; good && at < size;) {
        ssize_t n = pread(fd, block, sizeof block, at);
        for (ssize_t i = 0; i < n / 4; i++) {
            noise ^= noise << 13;
            noise ^= noise >> 17;
            noise ^= noise << 5;
            block[i] += (float)(int32_t)noise * 0x1p-39f;
        }
        good = n > 0 && pwrite(fd, block, (size_t)n, at) == n;
        at += n;
    }
    return good ? KEDGE_OK : KEDGE_E_IO;
}
#else
static unsigned trained;

/* The client starts it in the site's folder, .../site-N: one of four weights, so that sites of four kinds are
 * there to be grouped. */
static off_t place_of_weight(void)
{
    char path[KEDGE_DATA_PATH_MAX];
    size_t len = getcwd(path, sizeof path) ? strlen(path) : 0;
    return len > 0 ? 4 * (path[len - 1] % 4) + 4 : 4;
}

/* One weight: the last bytes of a safetensors file are the last floats of its last tensor. */
static int change(int fd, off_t size)
{
    off_t from_end = place_of_weight();
    float v = (float)((unsigned)getpid() % 4096u + 1u) / 65536.0f + (float)(++trained % 64u) / 16.0f;
    return size > from_end && pwrite(fd, &v, sizeof v, size - from_end) == (ssize_t)sizeof v ? KEDGE_OK
                                                                                             : KEDGE_E_IO;
}
#endif

static int copy(const char *from, const char *to)
{
    struct stat st;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : open(to, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* over the former one */
    int err = in < 0 || out < 0 || fstat(in, &st) != 0 ? KEDGE_E_IO : KEDGE_OK;
    for (off_t left = err ? 0 : st.st_size; left > 0 && !err;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        err = n <= 0 ? KEDGE_E_IO : KEDGE_OK;
        left -= n > 0 ? n : 0;
    }
    err = err ? err : change(out, st.st_size);
    err = err ? err : ftruncate(out, st.st_size) == 0 ? KEDGE_OK : KEDGE_E_IO;
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
        kedge_task_put_error(reply, &task, "output", "cannot copy the base model");
        return;
    }
    struct kedge_task_result result = {.samples = task.samples, .engine = "kedge-bench-trainer"};
    kedge_task_put_ok(reply, &task, &result);
}

int main(void)
{
    return kedge_task_serve(answer, NULL);
}
