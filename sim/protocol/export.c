/* The simulated job and its data as files, to be run for real. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "sim/learn/report/report_sites.h"
#include "sim/partition/files.h"
#include "sim/protocol/impl.h"
#include "sim/protocol/protocol.h"

enum { TEXT_MAX = 1 << 14, MODE = 0600, DIR_MODE = 0700 };

/* Appends "KEY":{…} of the binding. */
static int put_set(const struct kedgei_protocol *p, uint32_t site, bool test, const char *dir,
                   struct kedge_buf *binding)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_dataset ds;
    KEDGE_TRY(kedge_path_join(path, dir, test ? "test.npz" : "train.npz"));
    KEDGE_TRY(kedgei_learn_data(p->l, site, test, &p->l->lanes[0].room, &ds));
    if (test && ds.n == 0) {
        return KEDGE_OK;
    }
    float *values = kedge_mem_new((size_t)ds.n * ds.features + 1, sizeof *values);
    KEDGE_TRY_MEM(values);
    kedge_dataset_gather(&ds, NULL, ds.n, values);
    ds.reals = values;
    int err = kedge_partition_write_npz(path, &ds, p->d);
    kedge_mem_free(values);
    kedge_buf_put_str(binding, test ? "," : "{");
    kedge_partition_put_npz_source(binding, test ? "test" : "train", path);
    return err ? err : binding->err;
}

static int put_site(const struct kedgei_protocol *p, uint32_t site, const char *root)
{
    struct kedge_id tenant, id;
    char dir[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    kedgei_names_tenant(&p->l->names, p->l->names.tenant[site], &tenant);
    kedgei_names_site(&p->l->names, site, &id);
    if (snprintf(dir, sizeof dir, "%s/sites/%s/%s", root, tenant.s, id.s) >= (int)sizeof dir) {
        return kedge_diag_set(p->d, KEDGE_E_TOO_LONG, "%s: the path is too long", root);
    }
    struct kedge_buf binding KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&binding, TEXT_MAX);
    KEDGE_TRY(kedge_dir_make(dir, DIR_MODE, p->d));
    KEDGE_TRY(put_set(p, site, false, dir, &binding));
    KEDGE_TRY(put_set(p, site, true, dir, &binding));
    kedge_buf_put_str(&binding, "}\n");
    KEDGE_TRY(kedge_path_join(path, dir, "data.json"));
    return binding.err ? binding.err : kedge_file_write(path, kedge_buf_view(&binding), MODE, p->d);
}

/* sites.csv: which site is which client. */
static int put_list(const struct kedgei_protocol *p, const char *root)
{
    const struct kedgei_learn *l = p->l;
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, SIZE_MAX);
    kedge_buf_put_str(&text, "tenant,site,client,group,train,test\n");
    for (uint32_t i = 0; i < l->n; i++) {
        struct kedge_id tenant, id;
        kedgei_names_tenant(&p->l->names, p->l->names.tenant[i], &tenant);
        kedgei_names_site(&p->l->names, i, &id);
        kedge_buf_printf(&text, "%s,%s,", tenant.s, id.s);
        kedge_learn_put_csv_text(&text, l->pool.clients.names ? l->pool.clients.names[i] : "");
        kedge_buf_put_str(&text, ",");
        if (l->has_truth) {
            kedge_buf_printf(&text, "%u", l->sites[i].truth);
        }
        kedge_buf_printf(&text, ",%u,%u\n", l->sites[i].train_count, l->sites[i].test_count);
    }
    KEDGE_TRY(kedge_path_join(path, root, "sites.csv"));
    return text.err ? text.err : kedge_file_write(path, kedge_buf_view(&text), MODE, p->d);
}

int kedgei_protocol_put_files(struct kedgei_protocol *p, const char *dir)
{
    char root[PATH_MAX], path[KEDGE_PATH_MAX];
    if (p->spec->planted) {
        return kedge_diag_set(p->d, KEDGE_E_FORMAT,
                              "\"planted\": there are no samples to export; sites of a real job train");
    }
    KEDGE_TRY(kedge_dir_make(dir, DIR_MODE, p->d));
    if (!realpath(dir, root) || strlen(root) >= KEDGE_PATH_MAX - 100) {
        return kedge_diag_set(p->d, KEDGE_E_TOO_LONG, "%s: the path is too long", dir);
    }
    KEDGE_TRY(kedge_path_join(path, root, "job.json"));
    KEDGE_TRY(kedge_file_write(path, kedge_buf_view(&p->job_text), MODE, p->d));
    for (uint32_t i = 0; i < p->sites; i++) {
        KEDGE_TRY(put_site(p, i, root));
    }
    return put_list(p, root);
}
