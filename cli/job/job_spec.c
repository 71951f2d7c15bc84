/* kedge job spec: what a spec says, read as a coordinator reads it, with every default; or what specs can
 * say. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/base/try.h"
#include "job/keys.h"

enum { PRINTED_MAX = 2 * KEDGE_SPEC_MAX, SCHEMA_MAX = 1 << 18 };

/* For people as it is, for programs within the answer that all commands give. */
static int tell(struct kedge_cli *c, const struct kedge_buf *out)
{
    struct kedge_diag d = {.text = ""};
    if (!c->json) {
        fwrite(out->ptr, 1, out->len, stdout);
        return 0;
    }
    json_t *o = json_loadb((const char *)out->ptr, out->len, 0, NULL);
    return o ? kedge_cli_ok(c, o) : kedge_cli_fail(c, kedge_diag_set(&d, KEDGE_E_NOMEM, "out of memory"), &d);
}

/* What is wrong in a spec is the caller's (2). A file that is not there or cannot be read is not about specs
 * and has the code that it has everywhere. */
static int fail_spec(struct kedge_cli *c, int err, const struct kedge_diag *d)
{
    return err == KEDGE_E_NOT_FOUND || err == KEDGE_E_IO || err == KEDGE_E_NOMEM
               ? kedge_cli_fail(c, err, d)
               : kedge_cli_fail_as(c, err, d, 2);
}

/* Reads, checks and prints; text and out are the caller's. Printed from the parsed spec and never from the
 * text, so that every default stands in it. Checked as a new job is, not as one of a record: a key that the
 * job would not read is told (kedge_job_spec_check_read). */
static int print_spec(const char *path, struct kedge_job_spec *spec, struct kedge_buf *text,
                      struct kedge_buf *out, struct kedge_diag *d)
{
    KEDGE_TRY(kedge_cli_read_file(path, KEDGE_SPEC_MAX, text, d));
    int err = kedge_job_spec_parse(kedge_buf_view(text), spec, d);
    if (!err) {
        err = kedge_job_spec_check_read(kedge_buf_view(text), spec, d);
    }
    if (err) {
        err = err == KEDGE_E_NOT_FOUND ? KEDGE_E_FORMAT : err; /* a key: no file is missing */
        return kedge_diag_wrap(d, err, "%s", path);
    }
    kedge_job_spec_put(spec, out);
    return out->err ? kedge_diag_set(d, out->err, "%s: no memory to print it", path) : KEDGE_OK;
}

static int tell_spec(struct kedge_cli *c, const char *path)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_buf text, out;
    struct kedge_job_spec *spec = kedge_mem_new(1, sizeof *spec);
    if (!spec) {
        return kedge_cli_fail(c, kedge_diag_set(&d, KEDGE_E_NOMEM, "out of memory"), &d);
    }
    kedge_buf_init(&text, KEDGE_SPEC_MAX);
    kedge_buf_init(&out, PRINTED_MAX);
    int err = print_spec(path, spec, &text, &out, &d);
    int code = err ? fail_spec(c, err, &d) : tell(c, &out);
    kedge_buf_deinit(&out);
    kedge_buf_deinit(&text);
    kedge_mem_free(spec);
    return code;
}

static int tell_schema(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_buf out;
    kedge_buf_init(&out, SCHEMA_MAX);
    kedge_job_spec_put_schema(&out);
    int code = out.err ? kedge_cli_fail(c, kedge_diag_set(&d, out.err, "out of memory"), &d) : tell(c, &out);
    kedge_buf_deinit(&out);
    return code;
}

int kedge_cmd_job_spec(struct kedge_cli *c)
{
    bool schema = kedge_cli_flag(c, "schema");
    const char *path = kedge_cli_argument(c, 0);
    if (!kedge_cli_no_more(c, schema ? 0 : 1)) {
        return 2;
    }
    if (schema) {
        return tell_schema(c);
    }
    return path ? tell_spec(c, path)
                : kedge_cli_usage(
                    c, "SPEC.json is missing: the spec to check, \"-\" for what comes through a pipe; "
                       "or --schema");
}
