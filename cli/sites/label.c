/* kedge site label. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* TENANT, SITE and labels from the arguments; false after a usage error. */
static bool take_arguments(struct kedge_cli *c, struct kedge_st_site_labels *ret)
{
    const char *tenant = kedge_cli_argument(c, 0), *site = kedge_cli_argument(c, 1), *label;
    struct kedge_label_set labels = {.text = ""};
    const bool none = kedge_cli_flag(c, "none");
    if (!tenant || kedge_id_from(kedge_view_str(tenant), &ret->tenant) != KEDGE_OK || !site
        || kedge_id_from(kedge_view_str(site), &ret->site) != KEDGE_OK) {
        (void)kedge_cli_usage(c, "expected TENANT SITE: names of a-z, 0-9, '.', '_', '-'");
        return false;
    }
    for (int i = 2; (label = kedge_cli_argument(c, i)) != NULL; i++) {
        const int err = kedge_labels_add(&labels, kedge_view_str(label));
        if (err) {
            (void)kedge_cli_usage(c, "%s: %s", kedge_cli_word(label).s,
                                  err == KEDGE_E_EXISTS ? "there is one with this key already"
                                  : err == KEDGE_E_FULL
                                      ? "a site has at most 16 labels"
                                      : "expected a label like gpu=h100, of a-z, 0-9, '.', '_', "
                                        "'-', at most 31 characters on each side");
            return false;
        }
    }
    if ((labels.text[0] != '\0') == none) {
        (void)kedge_cli_usage(c, "expected all labels that the site has from now on, or --none");
        return false;
    }
    snprintf(ret->labels, sizeof ret->labels, "%s", labels.text);
    return true;
}

/* What the statement has to name: the site's key, and the number that comes next. */
static int ask(struct kedge_cli *c, struct kedge_st_site_labels *io, struct kedge_diag *d)
{
    json_auto_t *o = NULL;
    const json_t *row;
    size_t i;
    KEDGE_TRY(kedge_cli_admin(c, json_pack("{s:s,s:s}", "verb", "site.list", "tenant", io->tenant.s), &o, d));
    json_array_foreach(json_object_get(o, "sites"), i, row)
    {
        const int64_t number = kedge_cli_int(row, "labels_number");
        if (strcmp(kedge_cli_text(row, "site"), io->site.s) != 0) {
            continue;
        }
        if (kedge_hex_decode(kedge_view_str(kedge_cli_text(row, "statement_key")), io->statement_key.b,
                             KEDGE_KEY_LEN)
                != KEDGE_OK
            || number < 0 || number >= KEDGE_ST_LABELS_MAX) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "the coordinator tells no key and number of site \"%s\"",
                                  io->site.s);
        }
        io->number = (uint32_t)number + 1;
        return KEDGE_OK;
    }
    c->told = true;
    (void)kedge_diag_set(d, KEDGE_E_NOT_FOUND, "tenant %s: no site \"%s\" here", io->tenant.s, io->site.s);
    (void)kedge_diag_hint(d, "kedge site list %s tells which there are", io->tenant.s);
    return KEDGE_E_NOT_FOUND;
}

static int sign(struct kedge_cli *c, struct kedge_st_site_labels *labels, json_t **ret_envelope,
                struct kedge_diag *d)
{
    struct kedge_key_pair admin KEDGE_CLEANUP(kedge_key_wipe);
    struct kedge_statement *st KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *st);
    if (!st) {
        return kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    }
    KEDGE_TRY(kedge_cli_key(c->admin_key, false, &admin, d));
    KEDGE_TRY(ask(c, labels, d));
    st->kind = KEDGE_ST_SITE_LABELS;
    st->u.site_labels = *labels;
    return kedge_cli_sign(c, st, &admin, ret_envelope, d);
}

int kedge_cmd_site_label(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_st_site_labels labels = {.number = 0};
    json_t *envelope = NULL, *o = NULL;
    if (!take_arguments(c, &labels)) {
        return 2;
    }
    KEDGE_CLI_TRY(c, sign(c, &labels, &envelope, &d), &d);
    KEDGE_CLI_TRY(c,
                  kedge_cli_admin(c,
                                  json_pack("{s:s,s:s,s:o}", "verb", "site.label", "tenant", labels.tenant.s,
                                            "envelope", envelope),
                                  &o, &d),
                  &d);
    kedge_cli_say(c, "Site %s of tenant %s has %s%s, entry %lld of the tenant's ledger.\n", labels.site.s,
                  labels.tenant.s, labels.labels[0] ? "the labels " : "no labels", labels.labels,
                  (long long)kedge_cli_int(o, "leaf_index"));
    json_object_set_new(o, "site", json_string(labels.site.s));
    json_object_set_new(o, "labels", json_string(labels.labels));
    return kedge_cli_ok(c, o);
}
