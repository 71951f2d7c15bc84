/* What a folder of Kedge holds, a site's and a coordinator's: private keys and files of settings. */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/doctor/doctor.h"
#include "common/base/os/file.h"
#include "crypto/keyfile.h"

enum { FILE_MAX = 65536, KEYS_MAX = 1024 };

/* ---- keys ---- */

static bool ends_with(const char *name, const char *tail)
{
    size_t n = strlen(name), t = strlen(tail);
    return n >= t && strcmp(name + n - t, tail) == 0;
}

/* True when the key is fine; else says what is wrong with it. The key is read as the daemon reads it, modes
 * included, and wiped. */
static bool check_key(struct kedge_doctor *k, const char *path)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair pair;
    char mend[KEDGE_PATH_MAX + 32];
    struct kedge_public_key claimed;
    bool sealed = false;
    int err = kedge_keyfile_is_sealed(path, &sealed, &claimed, &d);
    if (!err && !sealed) { /* a sealed one is whole; what is in it is between its owner and the programs */
        err = kedge_keyfile_read_private(path, &pair, &d);
        kedge_key_wipe(&pair);
    }
    snprintf(mend, sizeof mend, err == KEDGE_E_DENIED ? "chmod 600 %s" : "restore it from its own backup: %s",
             path);
    if (err) {
        kedge_doctor_fail(k, "key", mend, err, &d);
    }
    return err == KEDGE_OK;
}

void kedge_doctor_keys(struct kedge_doctor *k, const char *folder, const char *const *wanted, size_t count)
{
    char keys[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    unsigned seen = 0, fine = 0;
    struct stat st;
    DIR *dir = kedge_path_join(keys, folder, "keys") == KEDGE_OK ? opendir(keys) : NULL;
    if (!dir) {
        kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, "keys", "restore the folder from its own backup",
                         "%s/keys cannot be "
                         "read",
                         folder);
        return;
    }
    for (struct dirent *e; seen < KEYS_MAX && (e = readdir(dir)) != NULL;) {
        if (ends_with(e->d_name, ".pem") && kedge_path_join(path, keys, e->d_name) == KEDGE_OK) {
            seen++;
            fine += check_key(k, path);
        }
    }
    closedir(dir);
    for (size_t i = 0; i < count; i++) {
        if (kedge_path_join(path, keys, wanted[i]) != KEDGE_OK || !kedge_file_exists(path)) {
            kedge_doctor_say(k, KEDGE_DOCTOR_FAIL, "key", "restore it from its own backup", "%s is missing",
                             path);
        }
    }
    if (stat(keys, &st) == 0 && (st.st_mode & 077) != 0) {
        char mend[KEDGE_PATH_MAX + 32];
        snprintf(mend, sizeof mend, "chmod 700 %s", keys);
        kedge_doctor_say(k, KEDGE_DOCTOR_WARN, "keys", mend, "others may look into %s (mode %03o)", keys,
                         (unsigned)st.st_mode & 0777);
    }
    if (fine == seen && seen > 0) {
        kedge_doctor_say(k, KEDGE_DOCTOR_OK, "keys", "", "%u private keys, readable by their owner only",
                         seen);
    }
}

/* ---- JSON files ---- */

static int check_setting(const char *path, const struct kedge_setting *table, const char *key,
                         const json_t *value, struct kedge_diag *d)
{
    const struct kedge_setting *row = kedge_setting_find(table, key);
    json_int_t n = json_integer_value(value);
    if (!row) {
        return kedge_setting_unknown(path, table, key, d);
    }
    if (row->is_number
        && (!json_is_integer(value) || n < (json_int_t)row->least || n > (json_int_t)row->most)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"%s\": expected a whole number from %llu to %llu",
                              path, key, (unsigned long long)row->least, (unsigned long long)row->most);
    }
    return KEDGE_OK;
}

/* Every key is held against the table that the daemon uses, so that a misspelt one is told with the nearest
 * that there is. */
json_t *kedge_doctor_settings(struct kedge_doctor *k, const char *folder, const char *name,
                              const struct kedge_setting *table)
{
    struct kedge_diag d = {.text = ""};
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    json_t *o = NULL, *value;
    const char *key;
    kedge_buf_init(&text, FILE_MAX);
    int err = kedge_path_join(path, folder, name);
    if (!err) {
        err = kedge_file_read(path, &text, &d);
    }
    if (!err) {
        err = kedgei_json_load(kedge_buf_view(&text), FILE_MAX, path, &o, &d);
    }
    kedge_buf_deinit(&text);
    json_object_foreach(o, key, value)
    {
        if (!err) {
            err = check_setting(path, table, key, value, &d);
        }
    }
    if (err) {
        kedge_doctor_fail(k, "settings", "correct the file; the program that reads it says the same", err,
                          &d);
        json_decref(o);
        return NULL;
    }
    return o;
}
