/* kedge sim SPEC.json --export DIR: the job that a learning spec stands for and its data, to be run for real.
 */
#include <stdio.h>
#include <string.h>

#include "cli/local.h"
#include "cli/sim/sim_learn.h"
#include "common/base/try.h"
#include "sim/learn/report/report_data.h"
#include "sim/protocol/protocol.h"

/* The spec with the path of its data; options of a run say that nothing is run. */
static int read_spec(const struct kedge_cli_learn *l, struct kedge_learn_spec *ret, struct kedge_diag *d)
{
    char images[KEDGE_PATH_MAX];
    int err = kedge_cli_learn_spec(l, NULL, 0, ret, d);
    if (err || ret->planted > 0 || ret->partition == KEDGE_LEARN_SYNTHETIC) {
        return err;
    }
    KEDGE_TRY(kedge_learn_find_images(ret, images, d));
    if (strlen(images) >= sizeof ret->images) {
        return kedge_diag_set(d, KEDGE_E_TOO_LONG, "\"images\": the path is too long");
    }
    memcpy(ret->images, images, strlen(images) + 1);
    return KEDGE_OK;
}

/* The job comes from the same function that the protocol simulation submits (sim/protocol), so what is
 * printed is what would have been run. */
int kedge_cli_sim_print_job(const struct kedge_cli_learn *l)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_learn_spec spec;
    struct kedge_buf job;
    const char *other = kedge_cli_learn_option_of(l);
    if (other) {
        return kedge_cli_usage(l->c, "%s does not go with --print-job, which runs nothing", other);
    }
    kedge_buf_init(&job, 2 * KEDGE_SPEC_MAX);
    int err = read_spec(l, &spec, &d);
    if (!err) {
        err = kedge_protocol_job(&spec, &job, &d);
    }
    int code = err ? kedge_cli_learn_fail(l, err, &d) : 0;
    if (!err && l->c->json) {
        code = kedge_cli_ok(l->c, json_loadb((const char *)job.ptr, job.len, 0, NULL));
    } else if (!err) {
        fwrite(job.ptr, 1, job.len, stdout);
    }
    kedge_buf_deinit(&job);
    return code;
}

int kedge_cli_sim_export(const struct kedge_cli_learn *l, const char *dir)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_learn_spec spec;
    uint32_t sites = 0;
    const char *other = kedge_cli_learn_option_of(l);
    if (other) {
        return kedge_cli_usage(l->c, "%s does not go with --export, which runs nothing", other);
    }
    int err = read_spec(l, &spec, &d);
    if (!err) {
        err = kedge_protocol_export(&spec, dir, &sites, &d);
    }
    if (err) {
        return kedge_cli_learn_fail(l, err, &d);
    }
    kedge_cli_say(
        l->c,
        "%s/job.json is the job of %u sites, and sites/TENANT/SITE there holds each site's samples;\n"
        "sites.csv says which site is which client; "
        "data.json beside them belongs into the site's policy.json, under \"data\", by the name "
        "\"simulated\".\n",
        dir, sites);
    return kedge_cli_ok(l->c, json_pack("{s:s,s:s,s:i}", "kind", "export", "dir", dir, "sites", (int)sites));
}
