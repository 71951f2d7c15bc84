#include "coordinator/daemon/events/anchors.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "coordinator/daemon/events/events.h"
#include "coordinator/daemon/host.h"
#include "coordinator/daemon/loop.h"

#define LOOK_NS UINT64_C(5000000000)
enum { FILES_MAX = 1 << 20 }; /* of a folder that one look looks at */

struct anchors_work {
    struct kedge_work work;
    struct kedge_anchors_seen *seen; /* of kedge_events: as long as the loop */
    uint64_t newest[KEDGE_ANCHOR_KINDS_MAX];
};

/* The largest NUMBER of the files NUMBERsuffix; 0: there is none. */
static uint64_t newest_in(const char *folder, const char *suffix)
{
    uint64_t newest = 0, number;
    DIR *dir = opendir(folder);
    const struct dirent *e;
    for (unsigned n = 0; dir && n < FILES_MAX && (e = readdir(dir)) != NULL; n++) {
        const size_t digits = strspn(e->d_name, "0123456789");
        if (digits > 0 && strcmp(e->d_name + digits, suffix) == 0
            && kedge_decimal_decode(kedge_view_of(e->d_name, digits), INT64_MAX, &number) == KEDGE_OK
            && number > newest) {
            newest = number;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return newest;
}

static void look_run(struct kedge_host *h, struct kedge_work *work)
{
    struct anchors_work *w = (struct anchors_work *)work;
    for (size_t i = 0; i < kedge_anchor_kind_count(); i++) {
        const struct kedge_anchor_kind *kind = kedge_anchor_kind_at(i);
        char folder[KEDGE_PATH_MAX];
        if (kedge_state_path(folder, NULL, h->state, "anchors/%s", kind->name) == KEDGE_OK) {
            w->newest[i] = newest_in(folder, kind->suffix);
        }
    }
}

static void look_done(struct kedge_host *h, struct kedge_item *item)
{
    struct anchors_work *w = (struct anchors_work *)item;
    struct kedge_anchors_seen *seen = w->seen;
    for (size_t i = 0; i < kedge_anchor_kind_count(); i++) {
        if (seen->is_known && w->newest[i] > seen->newest[i]) {
            struct kedge_event e = {.kind = KEDGE_EVENT_ANCHOR,
                                    .entry = KEDGE_EVENT_NO_ENTRY,
                                    .to = kedge_anchor_kind_at(i)->name,
                                    .size = w->newest[i]};
            kedge_host_event(h, &e, NULL, 0);
        }
        seen->newest[i] = w->newest[i] > seen->newest[i] ? w->newest[i] : seen->newest[i];
    }
    seen->is_known = true;
    seen->is_busy = false;
    kedge_mem_free(w);
}

void kedge_host_anchors_look(struct kedge_host *h, struct kedge_anchors_seen *seen, uint64_t now_ns)
{
    struct anchors_work *w = seen->is_busy || now_ns < seen->due_ns ? NULL : kedge_mem_new(1, sizeof *w);
    if (w) {
        *w = (struct anchors_work){.work = {.item = {look_done}, .run = look_run}, .seen = seen};
        seen->is_busy = true;
        seen->due_ns = now_ns + LOOK_NS;
        kedge_host_work(h, &w->work);
    }
}
