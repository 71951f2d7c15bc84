/* kedge sim SPEC.json --export DIR: the job that a learning spec stands for and its data, to be run for real.
 */
#include <string.h>

#include "cli/local.h"
#include "cli/sim/sim_learn.h"
#include "sim/learn/report/report_data.h"
#include "sim/protocol/protocol.h"

int kedge_cli_sim_export(const struct kedge_cli_learn *l, const char *dir)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_learn_spec spec;
    char images[KEDGE_PATH_MAX];
    uint32_t sites = 0;
    const char *other = kedge_cli_learn_option_of(l);
    if (other) {
        return kedge_cli_usage(l->c, "%s does not go with --export, which runs nothing", other);
    }
    int err = kedge_cli_learn_spec(l, NULL, 0, &spec, &d);
    err = err ? err : kedge_learn_find_images(&spec, images, &d);
    if (!err && strlen(images) >= sizeof spec.images) {
        err = kedge_diag_set(&d, KEDGE_E_TOO_LONG, "\"images\": the path is too long");
    }
    if (!err) {
        memcpy(spec.images, images, strlen(images) + 1);
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
