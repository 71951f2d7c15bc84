/* A state folder that is copied while a coordinator runs is torn: its stores are of different moments. The
 * file "in-use" is written when the coordinator starts and removed when all is closed, so a copy that was
 * made meanwhile has it. To tell such a copy from the folder itself after a crash, the file names the
 * inode and birth of a database file, which a copy does not share. */
#include "chain/state/in_use.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/state/state.h"
#include "common/base/try.h"

enum { TEXT_MAX = 128 };

/* What the file says of this very folder: its number and, where the file system keeps it, its birth. Both
 * stay over restarts of the machine, which the number of the device need not. */
static int text_of(const char *state, char out[TEXT_MAX], struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct statx st = {.stx_mask = 0};
    KEDGE_TRY(kedge_state_path(path, d, state, "coordinator.lmdb/data.mdb"));
    if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &st) != 0) {
        KEDGE_TRY(kedge_diag_set(d, kedge_errno(errno), "%s: %s", path, strerror(errno)));
    }
    bool born = st.stx_mask & STATX_BTIME;
    snprintf(out, TEXT_MAX, "file %" PRIu64 " born %" PRId64 ".%09" PRIu32 "\n", (uint64_t)st.stx_ino,
             born ? (int64_t)st.stx_btime.tv_sec : 0, born ? (uint32_t)st.stx_btime.tv_nsec : 0);
    return KEDGE_OK;
}

enum kedge_in_use kedge_in_use_look(const char *state)
{
    char path[KEDGE_PATH_MAX], here[TEXT_MAX];
    struct kedge_buf said;
    kedge_buf_init(&said, TEXT_MAX);
    int err = kedge_state_path(path, NULL, state, "in-use");
    if (!err) {
        err = kedge_file_read(path, &said, NULL);
    }
    enum kedge_in_use use = KEDGE_IN_USE_NOT;
    if (!err) {
        bool same = text_of(state, here, NULL) == KEDGE_OK
                    && kedge_view_eq(kedge_buf_view(&said), kedge_view_str(here));
        use = same ? KEDGE_IN_USE_HERE : KEDGE_IN_USE_ELSEWHERE;
    }
    kedge_buf_deinit(&said);
    return use;
}

int kedge_in_use_write(const char *state, struct kedge_diag *reterr)
{
    char path[KEDGE_PATH_MAX], here[TEXT_MAX];
    KEDGE_TRY(kedge_state_path(path, reterr, state, "in-use"));
    KEDGE_TRY(text_of(state, here, reterr));
    return kedge_file_write(path, kedge_view_str(here), 0600, reterr);
}

void kedge_in_use_remove(const char *state)
{
    char path[KEDGE_PATH_MAX];
    if (kedge_state_path(path, NULL, state, "in-use") == KEDGE_OK) {
        (void)unlink(path);
    }
}
