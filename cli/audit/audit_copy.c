/* Whose copy a folder is: a tenant's copy names itself by the main chain's copy in it and by the ledgers that
 * lie beside it. */
#include "cli/audit/audit_copy.h"
#include "chain/store/ledger.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* Called under kedge_cli_guarded, in a child: the folder may be damaged, and LMDB then ends the process that
 * opened it. */
static int gather_tenants(void *arg, json_t **ret, struct kedge_diag *d)
{
    struct kedge_state_log main;
    struct kedge_id *ids = NULL;
    size_t count = 0;
    const char *state = arg;
    KEDGE_TRY(kedge_state_log_open(state, NULL, KEDGE_STATE_COPY, &main, d));
    bool is_copy = kedge_ledger_is_copy(main.ledger);
    kedge_state_log_close(&main);
    int err = is_copy ? kedge_state_tenants(state, &ids, &count, d) : KEDGE_OK;
    json_t *list = json_array();
    for (size_t i = 0; i < count && !err; i++) {
        json_array_append_new(list, json_string(ids[i].s));
    }
    kedge_mem_free(ids);
    *ret = list;
    return err;
}

/* A tenant's copy has the ledgers of others withheld. Judged as a whole record it would look full of holes;
 * the list that is returned here tells the audit what the copy claims to hold. */
size_t kedge_cli_copy_tenants(const char *dir, struct kedge_id *out, size_t max)
{
    char state[KEDGE_PATH_MAX], config[KEDGE_PATH_MAX];
    struct kedge_diag d = {.text = ""};
    json_t *list = NULL;
    const json_t *name;
    size_t i, count = 0;
    bool below = kedge_path_join(state, dir, "state") == KEDGE_OK
                 && kedge_path_join(config, state, "config.json") == KEDGE_OK && kedge_file_exists(config);
    if (!below && kedge_path_join(state, dir, ".") != KEDGE_OK) {
        return 0;
    }
    if (kedge_cli_guarded(gather_tenants, state, &list, &d) != KEDGE_OK) {
        return 0; /* the audit says what is wrong with it */
    }
    json_array_foreach(list, i, name)
    {
        if (count < max && kedge_id_from(kedge_view_str(json_string_value(name)), &out[count]) == KEDGE_OK) {
            count++;
        }
    }
    json_decref(list);
    return count;
}
