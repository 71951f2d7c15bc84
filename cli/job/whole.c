/* The model of a job over a frozen base, made whole: what such a job releases has only the tensors that were
 * trained. The base is fetched beside it, joined with it, and removed again: it may be many times the model,
 * and the whole has all of it. */
#include "cli/job/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/fetch.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "round/shared_part.h"

struct whole {
    struct kedge_job_spec spec;
    struct kedge_buf text; /* of the spec */
    char base[KEDGE_PATH_MAX], file[KEDGE_PATH_MAX], json[KEDGE_PATH_MAX];
};

static int name_files(struct whole *w, const char *stem, struct kedge_diag *d)
{
    const struct {
        char *path;
        const char *ending;
    } files[] = {{w->base, ".base"}, {w->file, ".safetensors"}, {w->json, ".json"}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        int n = snprintf(files[i].path, KEDGE_PATH_MAX, "%s%s", stem, files[i].ending);
        if (n < 0 || n >= KEDGE_PATH_MAX) {
            return kedge_diag_set(d, KEDGE_E_TOO_LONG, "path too long");
        }
    }
    return KEDGE_OK;
}

static int sink_to_file(void *arg, struct kedge_view bytes)
{
    return kedge_fd_write(*(const int *)arg, bytes);
}

/* What the part leaves out is taken from the base, by the same code as a round's (round/shared_part.c),
 * streamed into the file: two models of that size would not fit into the memory of many machines. */
static int join(const struct whole *w, const char *model, struct kedge_diag *d)
{
    const struct kedge_blob_at base = {.path = w->base}, made = {.path = model};
    int fd = kedge_file_open(w->file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, d);
    if (fd < 0) {
        return fd;
    }
    int err = kedge_compute_whole(&w->spec, &base, &made,
                                  (struct kedge_sink){.write = sink_to_file, .arg = &fd}, d);
    if (close(fd) != 0 && !err) {
        err = kedge_diag_set(d, kedge_errno(errno), "%s: cannot be written", w->file);
    }
    if (err) {
        (void)unlink(w->file); /* no half model */
    }
    return err;
}

static int take(struct kedge_cli *c, struct whole *w, const char *job, const char *model, const char *stem,
                struct kedge_diag *d)
{
    struct kedge_hash digest = w->spec.initial_model;
    uint64_t size;
    KEDGE_TRY(name_files(w, stem, d));
    KEDGE_TRY(kedge_cli_fetch(c, job, &digest, w->base, &size, d));
    int err = join(w, model, d);
    (void)unlink(w->base);
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_file_write(w->json, kedge_buf_view(&w->text), 0600, d));
    kedge_cli_say(c, "%s  the whole model: with the base that the job trained over\n", w->file);
    return KEDGE_OK;
}

/* A spec that cannot be parsed is no error here: it was taken by its digest, so it is the job's, and only
 * what it may say of a base is of interest. Then there is no whole model to make. */
int kedge_cli_take_whole(struct kedge_cli *c, const char *job, const char *spec, const char *model,
                         const char *stem, bool *ret_has, struct kedge_diag *d)
{
    struct whole *w = kedge_mem_new(1, sizeof *w);
    if (!w) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory for a spec");
    }
    int err = kedge_cli_read_file(spec, KEDGE_SPEC_MAX, &w->text, d);
    const bool is_read = !err && kedge_job_spec_parse(kedge_buf_view(&w->text), &w->spec, NULL) == KEDGE_OK;
    const bool has = is_read && kedge_job_spec_has_base(&w->spec);
    if (has) {
        err = take(c, w, job, model, stem, d);
    }
    kedge_buf_deinit(&w->text);
    kedge_mem_free(w);
    *ret_has = has;
    return err;
}
