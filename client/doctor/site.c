/* A site's folder: who it is, what its owner allows, which keys it holds, which main chain it has seen. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "chain/log/checkpoint.h"
#include "chain/log/note.h"
#include "client/doctor/doctor.h"
#include "common/base/limits.h"
#include "common/base/os/file.h"
#include "common/base/os/slots.h"
#include "common/base/text.h"
#include "crypto/sign.h"

enum { MEMORY_MAX = KEDGE_SLOT_CONTENT_MAX };

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* kedge-client notes it when the coordinator has confirmed the site; the token stays in site.json. */
static bool is_enrolled(const char *site)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    json_t *o = NULL;
    uint64_t sequence;
    kedge_buf_init(&text, MEMORY_MAX);
    int err = kedge_path_join(path, site, "memory");
    if (!err) {
        err = kedge_slots_read(path, &text, &sequence, NULL);
    }
    if (!err) {
        err = kedgei_json_load(kedge_buf_view(&text), MEMORY_MAX, path, &o, NULL);
    }
    bool enrolled = !err && json_is_true(json_object_get(o, "enrolled"));
    json_decref(o);
    kedge_buf_deinit(&text);
    return enrolled;
}

/* Entries that a signed checkpoint in a file counts; 0: there is none to read. */
static uint64_t checkpoint_size(const char *path)
{
    struct kedge_buf text;
    struct kedge_note note;
    struct kedge_checkpoint cp = {.size = 0};
    kedge_buf_init(&text, KEDGE_NOTE_MAX);
    int err = kedge_file_read(path, &text, NULL);
    if (!err) {
        err = kedge_note_parse(kedge_buf_view(&text), &note);
    }
    if (!err) {
        err = kedge_checkpoint_parse(note.text, &cp);
    }
    kedge_buf_deinit(&text);
    return err ? 0 : cp.size;
}

/* kedge-client keeps what it refuses (client/daemon/chain/seen.c). */
static void check_chain(struct kedge_doctor *k, const char *site)
{
    char seen[KEDGE_PATH_MAX], shown[KEDGE_PATH_MAX];
    if (kedge_path_join(shown, site, "refused-main/shown") != KEDGE_OK
        || kedge_path_join(seen, site, "refused-main/seen") != KEDGE_OK || !kedge_file_exists(shown)) {
        return;
    }
    kedge_doctor_say(
        k, KEDGE_DOCTOR_FAIL, "main chain",
        "ask the coordinator's operator. When the right chain is back, it goes on by itself; to accept the "
        "one "
        "that was shown: kedge-client accept-main ROOT --site DIR. Both stay in refused-main",
        "the coordinator showed %" PRIu64 " entries of another history than the %" PRIu64
        " that this site has seen, and it trains no more; both checkpoints are in %s/refused-main",
        checkpoint_size(shown), checkpoint_size(seen), site);
}

void kedge_doctor_site(struct kedge_doctor *k, const char *site)
{
    static const char *const wanted[] = {"tls.pem", "statement.pem"};
    json_t *o = kedge_doctor_settings(k, site, "site.json", kedge_settings_site);
    struct kedge_public_key key;
    if (o) {
        bool whole =
            kedge_id_is_valid(kedge_view_str(text_of(o, "tenant")))
            && kedge_id_is_valid(kedge_view_str(text_of(o, "site"))) && text_of(o, "server")[0]
            && kedge_hex_decode(kedge_view_str(text_of(o, "server_key")), key.b, sizeof key.b) == KEDGE_OK;
        bool enrolled = is_enrolled(site);
        kedge_doctor_say(k,
                         !whole     ? KEDGE_DOCTOR_FAIL
                         : enrolled ? KEDGE_DOCTOR_OK
                                    : KEDGE_DOCTOR_WARN,
                         "site",
                         !whole     ? "enrol again: site.json needs tenant, site, server and server_key"
                         : enrolled ? ""
                                    : "start kedge-client; the tenant's admin then runs: kedge site approve",
                         "%s/%s at %s%s", text_of(o, "tenant"), text_of(o, "site"), text_of(o, "server"),
                         enrolled ? "" : ", not enrolled yet");
        json_decref(o);
    }
    check_chain(k, site);
    kedge_doctor_policy(k, site);
    kedge_doctor_keys(k, site, wanted, 2);
}
