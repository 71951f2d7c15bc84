/* A folder per client, or LEAF's train/ and test/. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "sim/partition/clients_impl.h"

enum { FILES_MAX = 1024 };

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names in a folder but hidden ones, in ret's text. In byte order: a file system lists them in any, and
 * clients' numbers must be the same on every machine. */
static int clients_list(const char *dir, const char ***ret_names, struct kedgei_words *ret,
                        struct kedge_diag *reterr)
{
    struct kedgei_words words = {.most = KEDGE_CLIENTS_MAX};
    uint32_t number;
    int err = KEDGE_OK;
    DIR *d = opendir(dir);
    if (!d) {
        return kedge_diag_set(reterr, kedge_errno(errno), "%s: %s", dir, strerror(errno));
    }
    for (struct dirent *e; !err && (e = readdir(d)) != NULL;) {
        err = e->d_name[0] == '.' ? KEDGE_OK : kedgei_words_find(&words, e->d_name, &number);
    }
    (void)closedir(d);
    const char **names = err ? NULL : kedge_mem_new(words.count + 1, sizeof *names);
    if (!names) {
        kedgei_words_deinit(&words);
        return err == KEDGE_E_FULL
                   ? kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: more than %d entries", dir,
                                    KEDGE_CLIENTS_MAX)
                   : kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: no memory for its names", dir);
    }
    for (uint32_t i = 0; i < words.count; i++) {
        names[i] = words.text + words.at[i];
    }
    qsort(names, words.count, sizeof *names, compare);
    *ret_names = names;
    *ret = words;
    return KEDGE_OK;
}

bool kedgei_clients_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- LEAF ---- */

/* The .json files of one part, in byte order. */
static int read_part(struct kedgei_clients *b, const char *dir, enum kedge_clients_part part,
                     uint32_t *ret_files, struct kedge_diag *reterr)
{
    const struct kedgei_clients_file as = {UINT32_MAX, part, 0};
    struct kedgei_words words = {0};
    const char **names = NULL;
    char path[KEDGE_PATH_MAX];
    *ret_files = 0;
    int err = kedgei_clients_is_folder(dir) ? clients_list(dir, &names, &words, reterr) : KEDGE_OK;
    for (uint32_t i = 0; i < words.count && !err; i++) {
        if (!kedgei_clients_ends(names[i], ".json")) {
            continue;
        }
        ++*ret_files;
        err = kedge_path_join(path, dir, names[i]);
        err = err ? kedge_diag_set(reterr, err, "%s: the path is too long", dir)
                  : kedgei_clients_file(b, path, kedgei_clients_leaf, &as, reterr);
    }
    kedge_mem_free(names);
    kedgei_words_deinit(&words);
    return err;
}

/* *ret_is_leaf: there were such files. */
static int read_leaf(struct kedgei_clients *b, const char *dir, bool *ret_is_leaf, struct kedge_diag *reterr)
{
    char train[KEDGE_PATH_MAX], test[KEDGE_PATH_MAX];
    uint32_t training = 0, testing = 0;
    if (kedge_path_join(train, dir, "train") != KEDGE_OK || kedge_path_join(test, dir, "test") != KEDGE_OK) {
        return kedge_diag_set(reterr, KEDGE_E_TOO_LONG, "%s: the path is too long", dir);
    }
    KEDGE_TRY(read_part(b, train, KEDGE_CLIENTS_TRAIN, &training, reterr));
    KEDGE_TRY(read_part(b, test, KEDGE_CLIENTS_TEST, &testing, reterr));
    *ret_is_leaf = training > 0 || testing > 0;
    if (*ret_is_leaf && (training == 0 || testing == 0)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "%s: no .json file, but there are some in the other part",
                              training == 0 ? train : test);
    }
    if (*ret_is_leaf && b->source->label[0]) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "\"label\": \"%.60s\", but %s holds LEAF's files, with \"y\"", b->source->label,
                              dir);
    }
    return KEDGE_OK;
}

/* ---- a folder per client ---- */

static bool is_data(const char *name)
{
    return kedgei_clients_ends(name, ".csv") || kedgei_clients_ends(name, ".npz");
}

/* "train.csv", "test-2.npz": which part of the data, from which step on. */
static int parse_name(const char *name, struct kedgei_clients_file *ret, struct kedge_diag *reterr)
{
    static const struct {
        const char *word;
        enum kedge_clients_part part;
    } parts[] = {{"train", KEDGE_CLIENTS_TRAIN}, {"test", KEDGE_CLIENTS_TEST}, {"data", KEDGE_CLIENTS_DEALT}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t len = strlen(parts[i].word), all = strlen(name) - strlen(".csv");
        char step[8] = "0";
        if (strncmp(name, parts[i].word, len) != 0 || (all > len && (name[len] != '-' || all - len > 3))) {
            continue;
        }
        if (all > len) {
            memcpy(step, name + len + 1, all - len - 1);
            step[all - len - 1] = '\0';
        }
        ret->part = parts[i].part;
        int err = kedgei_clients_step(step, &ret->step, reterr);
        return err ? kedge_diag_wrap(reterr, err, "%.60s", kedge_text_shown(name).s) : KEDGE_OK;
    }
    return kedge_diag_set(
        reterr, KEDGE_E_FORMAT,
        "%.60s: expected train, test or data, of later steps train-1 and so on, as .csv or .npz",
        kedge_text_shown(name).s);
}

/* `seen` has a bit per part of the data for each step: a part comes once, and "data", which is dealt to
 * training and test, cannot stand beside either of them. */
static int read_client(struct kedgei_clients *b, const char *dir, const char *name, struct kedge_diag *reterr)
{
    uint8_t seen[KEDGE_CLIENTS_STEPS_MAX] = {0};
    struct kedgei_words words = {0};
    const char **names = NULL;
    char path[KEDGE_PATH_MAX];
    struct kedgei_clients_file as = {0, KEDGE_CLIENTS_DEALT, 0};
    uint32_t files = 0;
    int err = kedgei_clients_name(b, name, &as.client, reterr);
    if (!err) {
        err = clients_list(dir, &names, &words, reterr);
    }
    for (uint32_t i = 0; i < words.count && !err; i++) {
        if (!is_data(names[i])) {
            continue;
        }
        files++;
        err = parse_name(names[i], &as, reterr);
        uint8_t bit = (uint8_t)(1u << as.part), other = (uint8_t)(as.part == KEDGE_CLIENTS_DEALT ? 7 : 1);
        if (!err && (seen[as.step] & (bit | other))) {
            err = kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                 "%.60s: this part of the data stands in another file, too", names[i]);
        }
        seen[as.step] |= bit;
        if (err) {
            err = kedge_diag_wrap(reterr, err, "%s", dir);
            break;
        }
        err = kedge_path_join(path, dir, names[i]);
        err = err ? kedge_diag_set(reterr, err, "%s: too long a path", dir)
                  : kedgei_clients_file(b, path,
                                        kedgei_clients_ends(names[i], ".csv") ? kedgei_clients_csv
                                                                              : kedgei_clients_npz,
                                        &as, reterr);
    }
    if (!err && files == 0) {
        err = kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "%s: a folder in a folder of clients, but without train.csv and test.csv, data.csv "
            "or the same as .npz",
            dir);
    }
    kedge_mem_free(names);
    kedgei_words_deinit(&words);
    return err;
}

int kedgei_clients_folder(struct kedgei_clients *b, const char *path, struct kedge_diag *reterr)
{
    struct kedgei_words words = {0};
    const char **names = NULL;
    char dir[KEDGE_PATH_MAX];
    bool is_leaf = false;
    int err = read_leaf(b, path, &is_leaf, reterr);
    if (err || is_leaf) {
        return err;
    }
    err = clients_list(path, &names, &words, reterr);
    for (uint32_t i = 0; i < words.count && !err; i++) {
        err = kedge_path_join(dir, path, names[i]);
        if (err) {
            err = kedge_diag_set(reterr, err, "%s: the path is too long", path);
        } else if (kedgei_clients_is_folder(dir)) {
            err = read_client(b, dir, names[i], reterr);
        }
    }
    if (!err && b->clients.count == 0) {
        err = kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: no folder of a client in it", path);
    }
    kedge_mem_free(names);
    kedgei_words_deinit(&words);
    return err;
}
