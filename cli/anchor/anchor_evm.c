/* kedge anchor run, status, deploy: the main chain's roots on an Ethereum-compatible chain. */
#include <stdio.h>
#include <string.h>

#include "chain/anchor/host/evm_host.h"
#include "chain/anchor/host/main_chain.h"
#include "cli/anchor/anchor.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "common/json/json.h"

/* What the hooks of the loop (chain/anchor/host) find again through their argument. The loop itself prints
 * nothing and knows no clock. */
struct session {
    struct kedge_cli_anchor_run run;
    struct kedge_evm_point last; /* newest final anchor */
};

static bool go_on(void *arg, const struct kedge_evm_anchor *machine)
{
    struct session *s = arg;
    s->last = machine->state.last;
    return kedge_cli_anchor_goes_on(&s->run, kedge_evm_anchor_is_settled(machine));
}

static void say(void *arg, const char *text)
{
    const struct session *s = arg;
    kedge_cli_say(s->run.c, "%s\n", text);
}

static json_t *point_json(const struct kedge_evm_point *p)
{
    return json_pack("{s:I,s:I,s:o}", "seq", (json_int_t)p->seq, "size", (json_int_t)p->size, "root",
                     kedgei_json_hex(p->root.b, KEDGE_HASH_LEN));
}

/* Where the contract and this machine's state disagree, the error is of class corrupt and the operator
 * decides (--adopt): going on by itself could anchor a fork. */
static int run(struct kedge_cli_anchor_run *asked)
{
    struct kedge_cli *c = asked->c;
    struct kedge_diag d = {.text = ""};
    struct session s = {.run = *asked};
    unsigned flags = kedge_cli_flag(c, "adopt") ? KEDGE_ANCHOR_ADOPT : 0;
    if (!kedge_cli_no_more(c, 0)) {
        return 2;
    }
    struct kedge_anchor_hooks hooks = {kedge_cli_now_ms, kedge_cli_wait_until, go_on, say, &s};
    kedge_cli_catch_interrupt();
    int err = kedge_anchor_run(c->state, flags, &hooks, &d);
    if (err) {
        if (!d.hint[0] && kedge_err_class(err) == KEDGE_CLASS_CORRUPT) {
            (void)kedge_diag_hint(
                &d, "find out why first; `kedge anchor run --adopt` then goes on after what the "
                    "contract has, if the main chain has it too");
        }
        return kedge_cli_fail(c, err, &d);
    }
    if (kedge_cli_interrupted()) {
        return kedge_cli_interrupt_end(c, "anchoring", "%s", "the same command goes on where it was");
    }
    if (s.run.timed_out) {
        (void)kedge_diag_set(&d, KEDGE_E_TIMEOUT,
                             "nothing newer than anchor %llu of %llu entries is final after "
                             "%llu seconds",
                             (unsigned long long)s.last.seq, (unsigned long long)s.last.size,
                             (unsigned long long)s.run.seconds);
        (void)kedge_diag_hint(
            &d, "the same command goes on where it was; kedge anchor status tells what is under way");
        return kedge_cli_fail_as(c, KEDGE_E_TIMEOUT, &d, 3);
    }
    if (s.last.seq > 0) {
        kedge_cli_say(c, "anchor %llu of %llu entries is final; nothing else is under way\n",
                      (unsigned long long)s.last.seq, (unsigned long long)s.last.size);
    } else {
        kedge_cli_say(c, "the main chain has no signed checkpoint yet: nothing to anchor\n");
    }
    return kedge_cli_ok(c, json_pack("{s:o}", "last", point_json(&s.last)));
}

/* Refuses while anchor.json names a contract: anchors count from 1 in each contract, and two that look alike
 * would make an auditor ask which of them counts. */
int kedge_cmd_anchor_deploy(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct session s = {.run.c = c};
    struct kedge_anchor_settings settings;
    struct kedge_evm_address contract;
    char text[KEDGE_EVM_ADDRESS_TEXT];
    if (!kedge_cli_no_more(c, 0)) {
        return 2;
    }
    KEDGE_CLI_TRY(c, kedge_anchor_settings_read(c->state, &settings, &d), &d);
    if (settings.has_contract) {
        kedge_evm_address_text(&settings.config.contract, text);
        (void)kedge_diag_set(&d, KEDGE_E_EXISTS, "%s/anchor.json names a contract already: %s", c->state,
                             text);
        return kedge_cli_fail(
            c,
            kedge_diag_hint(&d, "take \"contract\" out of it to make another; anchors then begin at 1 again"),
            &d);
    }
    struct kedge_anchor_hooks hooks = {kedge_cli_now_ms, kedge_cli_wait_until, go_on, say, &s};
    KEDGE_CLI_TRY(c, kedge_anchor_deploy(c->state, &settings, &hooks, &contract, &d), &d);
    kedge_evm_address_text(&contract, text);
    kedge_cli_say(c, "contract %s on chain %llu, now in %s/anchor.json\n", text,
                  (unsigned long long)settings.config.chain_id, c->state);
    return kedge_cli_ok(
        c, json_pack("{s:s,s:I}", "contract", text, "chain_id", (json_int_t)settings.config.chain_id));
}

/* ---- status ---- */

static json_t *flight_json(const struct kedge_evm_flight *f)
{
    json_t *o = point_json(&f->point);
    json_object_set_new(o, "phase", json_string(kedge_evm_phase_name(f->phase)));
    json_object_set_new(o, "nonce", json_integer((json_int_t)f->nonce));
    json_object_set_new(o, "transactions", json_integer((json_int_t)f->attempt_count));
    json_object_set_new(o, "transaction_hash",
                        kedgei_json_hex(f->attempts[f->attempt_count - 1].hash.b, KEDGE_HASH_LEN));
    if (f->phase >= KEDGE_EVM_MINED) {
        json_object_set_new(o, "block", json_integer((json_int_t)f->block));
    }
    return o;
}

static const struct kedge_column columns[] = {
    {"anchor", 6}, {"entries", 9}, {"state", -8}, {"block", 10}, {"root", -16}};

static void say_point(const struct kedge_cli *c, const struct kedge_evm_point *p, const char *phase,
                      uint64_t block)
{
    char seq[24], size[24], number[24], root[KEDGE_HASH_HEX_LEN + 1];
    snprintf(seq, sizeof seq, "%llu", (unsigned long long)p->seq);
    snprintf(size, sizeof size, "%llu", (unsigned long long)p->size);
    snprintf(number, sizeof number, "%llu", (unsigned long long)block);
    kedge_hash_hex(&p->root, root);
    root[16] = '\0';
    const char *cells[] = {seq, size, phase, block > 0 ? number : "-", root};
    kedge_cli_row(c, columns, 5, cells);
}

/* All numbers are those of the state file on this machine and of the signed main chain. No node is asked:
 * status answers also while the node is down, and the chain may be further than this says. */
static void tell_status(struct kedge_cli *c, const struct kedge_anchor_settings *settings,
                        const struct kedge_evm_anchor *m, uint64_t main_size, json_t *io)
{
    const struct kedge_evm_state *s = &m->state;
    char contract[KEDGE_EVM_ADDRESS_TEXT], sender[KEDGE_EVM_ADDRESS_TEXT];
    json_t *flights = json_array();
    kedge_evm_address_text(&settings->config.contract, contract);
    kedge_evm_address_text(&settings->config.sender, sender);
    kedge_cli_say(c, "chain %llu, contract %s, account %s\nthe main chain is signed up to %llu entries\n\n",
                  (unsigned long long)settings->config.chain_id, contract, sender,
                  (unsigned long long)main_size);
    kedge_cli_head(c, columns, 5);
    if (s->last.seq > 0) {
        say_point(c, &s->last, "final", 0);
    }
    for (uint32_t i = 0; i < s->flight_count; i++) {
        const struct kedge_evm_flight *f = &s->flights[i];
        say_point(c, &f->point, kedge_evm_phase_name(f->phase), f->phase >= KEDGE_EVM_MINED ? f->block : 0);
        json_array_append_new(flights, flight_json(f));
    }
    if (s->stop_err) {
        kedge_cli_say(c, "\nSTOPPED: %s\n", s->stop_text);
    }
    uint64_t committed = kedge_evm_anchor_committed(m);
    kedge_cli_say(c, "\nbudget: %llu of %llu wei are committed in 24 hours\n", (unsigned long long)committed,
                  (unsigned long long)settings->config.daily_budget);
    json_t *data = json_pack("{s:I,s:s,s:s,s:I,s:o,s:o,s:I,s:I,s:b}", "chain_id",
                             (json_int_t)settings->config.chain_id, "contract", contract, "account", sender,
                             "main_size", (json_int_t)main_size, "last", point_json(&s->last), "under_way",
                             flights, "committed_wei", (json_int_t)committed, "daily_budget_wei",
                             (json_int_t)settings->config.daily_budget, "stopped", s->stop_err != KEDGE_OK);
    if (s->stop_err) {
        json_object_set_new(data, "reason", json_string(s->stop_text));
    }
    json_object_update(io, data);
    json_decref(data);
}

/* The account is derived from the key file, because the settings name only the file. The key is wiped before
 * anything else is done. A main chain without a signed checkpoint is no error here: a new deployment has
 * anchors to plan and nothing to show. */
static int status(struct kedge_cli *c, json_t *io, int *io_code, struct kedge_diag *d)
{
    struct kedge_anchor_settings settings;
    struct kedge_secp_secret key = {{0}};
    struct kedge_hash root, root_at;
    uint64_t main_size = 0;
    bool exists;
    KEDGE_TRY(kedge_anchor_settings_read(c->state, &settings, d));
    int err = kedge_anchor_key_read(settings.key_file, &key, &settings.config.sender, d);
    kedge_wipe(&key, sizeof key);
    KEDGE_TRY(err);
    struct kedge_evm_anchor *m = kedge_mem_new(1, sizeof *m);
    err = m ? kedge_anchor_load(c->state, &settings, m, &exists, d) : KEDGE_E_NOMEM;
    if (!err) {
        m->now_ms = kedge_os_unix_ms();
        err = kedge_anchor_read_main(c->state, 0, &main_size, &root, &root_at, NULL, d);
        err = err == KEDGE_E_NOT_FOUND ? KEDGE_OK : err;
    }
    if (!err) {
        tell_status(c, &settings, m, main_size, io);
        *io_code = m->state.stop_err ? 1 : *io_code;
    }
    kedge_mem_free(m);
    return err;
}

const struct kedge_cli_anchor_kind kedge_cli_anchor_evm = {
    .run = run, .status = status, .verify = kedge_cli_evidence_verify};
