/* A site's folder: who it is, what its owner allows, which keys it holds, which main chain it has seen. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chain/checkpoint.h"
#include "chain/note.h"
#include "client/doctor/doctor.h"
#include "common/base/limits.h"
#include "common/base/os/file.h"
#include "common/base/os/slots.h"
#include "common/base/text.h"
#include "crypto/sign.h"

enum { MEMORY_MAX = KEDGE_SLOT_CONTENT_MAX, DATA_FILES_MAX = 256 };

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* Every file that a binding names is there. Relative paths begin at the folder where kedge-client runs. */
static void check_binding(struct kedge_doctor *k, const char *name, const json_t *binding, unsigned *files)
{
    static const char *const sources[] = {"train", "test"}, *const keys[] = {"path", "images", "labels"};
    for (size_t s = 0; s < 2; s++) {
        const json_t *source = json_object_get(binding, sources[s]);
        for (size_t i = 0; i < 3 && *files < DATA_FILES_MAX; i++) {
            const char *path = json_string_value(json_object_get(source, keys[i]));
            if (path && access(path, R_OK) == 0) {
                (*files)++;
            } else if (path) {
                kedge_doctor_say(k, path[0] == '/' ? KEDGE_DOCTOR_FAIL : KEDGE_DOCTOR_WARN, "data",
                                 "correct policy.json, best with absolute paths",
                                 "\"%.100s\": %s cannot be read%s", name, path,
                                 path[0] == '/' ? "" : " from here, and the path is relative");
            }
        }
    }
}

/* The program of a trainer's command, where kedge-client looks for it. */
static bool is_program(const char *word)
{
    static const char *const folders[] = {"/usr/local/bin", "/usr/bin", "/bin"};
    char path[KEDGE_PATH_MAX];
    bool found = word[0] == '/' ? access(word, X_OK) == 0 : strchr(word, '/') != NULL; /* of its folder */
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && !found && !strchr(word, '/'); i++) {
        found = kedge_path_join(path, folders[i], word) == KEDGE_OK && access(path, X_OK) == 0;
    }
    return found;
}

static void check_trainers(struct kedge_doctor *k, const json_t *trainers)
{
    const char *name;
    json_t *one;
    json_object_foreach((json_t *)(uintptr_t)trainers, name, one)
    {
        const char *word = json_string_value(json_array_get(json_object_get(one, "command"), 0));
        if (!word || !is_program(word)) {
            kedge_doctor_say(
                k, KEDGE_DOCTOR_FAIL, "trainer",
                "correct its \"command\" in policy.json; kedge-client doctor --try-trainers says "
                "more",
                "\"%.63s\": %.200s is no program here", name, word ? word : "its command");
        }
    }
}

static void check_policy(struct kedge_doctor *k, const char *site)
{
    json_t *o = kedge_doctor_settings(k, site, "policy.json", kedge_settings_policy), *binding;
    const json_t *data = json_object_get(o, "data");
    const char *name;
    unsigned files = 0, bindings = 0;
    if (!o) {
        return;
    }
    json_object_foreach((json_t *)data, name, binding)
    {
        bindings++;
        check_binding(k, name, binding, &files);
    }
    kedge_doctor_say(k, bindings ? KEDGE_DOCTOR_OK : KEDGE_DOCTOR_WARN, "policy",
                     bindings ? "" : "bind data in policy.json, or no job can train here",
                     "%u data bindings, %u files readable", bindings, files);
    kedge_doctor_device(k, o);
    check_trainers(k, json_object_get(o, "trainers"));
    json_decref(o);
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
    err = err ? err : kedge_slots_read(path, &text, &sequence, NULL);
    err = err ? err : kedgei_json_load(kedge_buf_view(&text), MEMORY_MAX, path, &o, NULL);
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
    err = err ? err : kedge_note_parse(kedge_buf_view(&text), &note);
    err = err ? err : kedge_checkpoint_parse(note.text, &cp);
    kedge_buf_deinit(&text);
    return err ? 0 : cp.size;
}

/* kedge-client keeps what it refuses (client/daemon/seen.c). */
static void check_chain(struct kedge_doctor *k, const char *site)
{
    char seen[KEDGE_PATH_MAX], shown[KEDGE_PATH_MAX];
    if (kedge_path_join(shown, site, "refused-main/shown") != KEDGE_OK
        || kedge_path_join(seen, site, "refused-main/seen") != KEDGE_OK || !kedge_file_exists(shown)) {
        return;
    }
    kedge_doctor_say(
        k, KEDGE_DOCTOR_FAIL, "main chain",
        "ask the coordinator's operator. When the right chain is back, remove refused-main; to accept "
        "the one that was shown, remove seen-main as well; then start kedge-client again",
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
    check_policy(k, site);
    kedge_doctor_keys(k, site, wanted, 2);
}
