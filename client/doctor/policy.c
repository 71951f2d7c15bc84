/* The owner's policy.json: read by the daemon's own parser, so that what is well here is what the daemon
 * takes; then its data and trainers, which the daemon does not look at before a job asks for them. */
#include <grp.h>
#include <jansson.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/daemon/policy.h"
#include "client/doctor/doctor.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"

enum { DATA_FILES_MAX = 256, BINDING_TOKENS_MAX = 4096, FILE_PATHS = 3 };

/* By the parser that kedge-train uses, which reads JSON in tokens: the binding is written out once more for
 * it. */
int kedge_doctor_binding(const json_t *v, struct kedge_data_binding *ret, struct kedge_diag *d)
{
    struct kedge_json_token *tokens = kedge_mem_new(BINDING_TOKENS_MAX, sizeof *tokens);
    char *text = tokens ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    struct kedge_json doc;
    int err = text ? kedge_json_parse(kedge_view_str(text), tokens, BINDING_TOKENS_MAX, &doc, d)
                   : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    if (!err) {
        err = kedge_data_binding_from_json(&doc, 0, ret, d);
    }
    free(text); /* json_dumps */
    kedge_mem_free(tokens);
    return err;
}

/* Groups first, then the group, then the user: in another order the process would no longer have the right
 * to the next step. Without an entry in the table of users it has no other groups than its own. */
int kedge_doctor_become_owner(const char *site)
{
    struct stat st;
    if (geteuid() != 0 || stat(site, &st) != 0 || st.st_uid == 0) {
        return KEDGE_OK;
    }
    const struct passwd *user = getpwuid(st.st_uid);
    bool ok = user ? initgroups(user->pw_name, user->pw_gid) == 0 : setgroups(0, NULL) == 0;
    ok = ok && setgid(user ? user->pw_gid : st.st_gid) == 0 && setuid(st.st_uid) == 0;
    return ok ? KEDGE_OK : KEDGE_E_DENIED;
}

/* Whether the site's user can read the file: root, who may be asking, can read any. A child asks in the
 * user's place, since who became another user cannot become root again. */
static bool is_readable(const char *site, const char *path)
{
    int status = 0;
    if (geteuid() != 0) {
        return access(path, R_OK) == 0;
    }
    const pid_t child = fork();
    if (child == 0) {
        _exit(kedge_doctor_become_owner(site) == KEDGE_OK && access(path, R_OK) == 0 ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Every file that a binding names is there, for the site's user. Relative paths begin at the site's folder,
 * where its trainer runs. */
static void check_files(struct kedge_doctor *k, const char *site, const char *name, const json_t *binding,
                        unsigned *files)
{
    static const char *const sources[] = {"train", "test"}, *const keys[] = {"path", "images", "labels"};
    for (size_t i = 0; i < 2 * FILE_PATHS && *files < DATA_FILES_MAX; i++) {
        const json_t *source = json_object_get(binding, sources[i / FILE_PATHS]);
        const char *path = json_string_value(json_object_get(source, keys[i % FILE_PATHS]));
        char whole[KEDGE_PATH_MAX];
        if (!path || kedge_path_join(whole, path[0] == '/' ? "" : site, path) != KEDGE_OK) {
            continue;
        }
        if (is_readable(site, path[0] == '/' ? path : whole)) {
            (*files)++;
        } else {
            kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, "data",
                             "correct policy.json, best with absolute paths, or let the user of kedge-client "
                             "read the file",
                             "\"%.100s\": %s cannot be read%s", name, path,
                             path[0] == '/' ? "" : " (a relative path begins at the site's folder)");
        }
    }
}

/* A trainer of the owner's own may read data in another way than kedge-train, so what this one cannot read
 * is a warning then. */
static void check_data(struct kedge_doctor *k, const char *site, const struct kedge_site_policy *p)
{
    const bool own = p->trainers.count > 0 || p->trainer[0];
    const char *name;
    json_t *v;
    unsigned files = 0, bindings = 0;
    json_object_foreach((json_t *)(uintptr_t)p->data, name, v)
    {
        struct kedge_data_binding binding;
        struct kedge_diag d = {.text = ""};
        bindings++;
        if (kedge_doctor_binding(v, &binding, &d) != KEDGE_OK) {
            kedge_doctor_say(k, own ? KEDGE_DOCTOR_WARN : KEDGE_DOCTOR_FAIL, "data",
                             own ? "if a trainer of your own reads them, all is well"
                                 : "correct policy.json; docs/modules/tensor.md has the keys of each format",
                             "\"%.100s\": kedge-train cannot read them: %s", name, d.text);
        }
        check_files(k, site, name, v, &files);
    }
    kedge_doctor_say(k, bindings ? KEDGE_DOCTOR_OK : KEDGE_DOCTOR_WARN, "policy",
                     bindings ? "" : "bind data in policy.json, or no job can train here",
                     "%u data bindings, %u files readable", bindings, files);
}

/* The program of a trainer's command, where kedge-client looks for it. Names without a folder are looked
 * for in three folders only: trainers run with this PATH, whatever the one of the person who asks. */
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

static void check_trainers(struct kedge_doctor *k, const struct kedge_trainers *trainers)
{
    for (uint32_t i = 0; i < trainers->count; i++) {
        const struct kedge_trainer_terms *t = &trainers->list[i];
        if (!is_program(t->command[0])) {
            kedge_doctor_say(
                k, KEDGE_DOCTOR_FAIL, "trainer",
                "correct its \"command\" in policy.json; kedge-client doctor --try-trainers says "
                "more",
                "\"%s\": %.200s is no program here", t->name.s, t->command[0]);
        }
    }
}

/* Parsed by the daemon's own function first: after an error in it nothing else in the file means anything. */
void kedge_doctor_policy(struct kedge_doctor *k, const char *site)
{
    struct kedge_diag d = {.text = "", .hint = ""};
    struct kedge_site_policy p;
    struct kedge_buf text;
    char path[KEDGE_PATH_MAX] = "";
    json_t *o = NULL;
    kedge_buf_init(&text, KEDGE_POLICY_FILE_MAX);
    int err = kedge_path_join(path, site, "policy.json");
    if (!err) {
        err = kedge_file_read(path, &text, &d);
    }
    if (!err) {
        err = kedge_policy_parse(kedge_buf_view(&text), path, &p, &d);
    }
    if (err) {
        kedge_doctor_fail(k, "policy", "correct policy.json: kedge-client does not start with it", err, &d);
        kedge_buf_deinit(&text);
        return;
    }
    if (kedgei_json_load(kedge_buf_view(&text), KEDGE_POLICY_FILE_MAX, path, &o, &d) == KEDGE_OK) {
        kedge_doctor_device(k, o);
    }
    check_data(k, site, &p);
    check_trainers(k, &p.trainers);
    kedge_doctor_say(k, KEDGE_DOCTOR_OK, "trainers", "",
                     "one without a task for %u s is ended, and started again for the next (policy.json: "
                     "trainer_idle_seconds)",
                     p.trainer_idle_seconds);
    json_decref(o);
    kedge_policy_deinit(&p);
    kedge_buf_deinit(&text);
}
