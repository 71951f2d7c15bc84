/* Whether the files that policy.json binds are still those that a job failed with. The loop's. */
#ifndef KEDGE_CLIENT_DAEMON_DATA_FILES_H
#define KEDGE_CLIENT_DAEMON_DATA_FILES_H

#include <stdbool.h>
#include <stdint.h>

struct json_t;

enum { KEDGE_DATA_LOOK_S = 5 }; /* so often they are looked at while a job is left alone because of them */

struct kedge_data_files {
    uint64_t mark, next_ns;
    bool looks;
};

/* A number for size, time, device and inode of every file that the bindings name; the same while all are the
 * same. Files that are not there count, too. Pure but for stat. */
uint64_t kedge_data_files_mark(const struct json_t *data);
/* Behind each step, with what the core says (lacks_data): true when a file has changed since the mark was
 * taken, which is as long as no job lacks data each time that a task is about to be trained. */
bool kedge_data_files_turn(struct kedge_data_files *f, const struct json_t *data, bool lacks,
                           uint64_t now_ns);
/* A task is about to be trained. */
void kedge_data_files_begin(struct kedge_data_files *f, const struct json_t *data);
/* When to look again; UINT64_MAX: no need to. */
uint64_t kedge_data_files_deadline_ns(const struct kedge_data_files *f);

#endif
