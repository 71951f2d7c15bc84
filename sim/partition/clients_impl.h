/* Inside the readers of clients: a set that grows file by file. */
#ifndef KEDGE_SIM_PARTITION_CLIENTS_IMPL_H
#define KEDGE_SIM_PARTITION_CLIENTS_IMPL_H

#include <stddef.h>

#include "common/base/bytes.h"
#include "sim/partition/clients.h"

/* Words and their numbers, in the order in which they came. */
struct kedgei_words {
    uint32_t count, most;
    char *text; /* owned, one behind the other */
    size_t used, room;
    size_t *at; /* owned: where each begins */
    uint32_t at_room;
    uint32_t *slots; /* owned: number + 1 by hash, 0: free */
    uint32_t slots_count;
};
/* The word's number, which it gets when it is new. KEDGE_E_FULL: there are `most`. */
KEDGE_NODISCARD int kedgei_words_find(struct kedgei_words *w, const char *word, uint32_t *ret);
void kedgei_words_deinit(struct kedgei_words *w);

enum kedgei_labels { KEDGEI_LABELS_UNKNOWN, KEDGEI_LABELS_NUMBERS, KEDGEI_LABELS_NAMES };

struct kedgei_clients {
    const struct kedge_clients_source *source;
    struct kedge_clients c;
    uint32_t rows_max;
    struct kedgei_words clients, groups, classes;
    uint32_t *truth; /* owned: by client, UINT32_MAX: not told */
    uint32_t truth_room;
    enum kedgei_labels labels;
};

/* What a file's samples have in common; client UINT32_MAX: the file says whose each is. */
struct kedgei_clients_file {
    uint32_t client;
    enum kedge_clients_part part;
    uint32_t step;
};

/* A number for the client's name, which must be plain text of 1 to KEDGE_CLIENTS_NAME_MAX bytes. */
KEDGE_NODISCARD int kedgei_clients_name(struct kedgei_clients *b, const char *name, uint32_t *ret,
                                        struct kedge_diag *reterr);
/* Room for the true group of this client and those before it. */
KEDGE_NODISCARD int kedgei_clients_truth_room(struct kedgei_clients *b, uint32_t client);
KEDGE_NODISCARD int kedgei_clients_group(struct kedgei_clients *b, uint32_t client, const char *group,
                                         struct kedge_diag *reterr);
/* Room for so many more samples of so many features, which are b->c.n and the following. */
KEDGE_NODISCARD int kedgei_clients_room(struct kedgei_clients *b, uint32_t rows, uint32_t features,
                                        struct kedge_diag *reterr);
/* All files have labels of one kind. */
KEDGE_NODISCARD int kedgei_clients_labels(struct kedgei_clients *b, enum kedgei_labels kind,
                                          struct kedge_diag *reterr);
/* A step's number in decimal. */
KEDGE_NODISCARD int kedgei_clients_step(const char *text, uint32_t *ret, struct kedge_diag *reterr);
bool kedgei_clients_is_folder(const char *path);
bool kedgei_clients_ends(const char *s, const char *end);

/* What a file holds, from its bytes. */
typedef int kedgei_clients_read_fn(struct kedgei_clients *b, struct kedge_view bytes,
                                   const struct kedgei_clients_file *as, struct kedge_diag *reterr);
KEDGE_NODISCARD kedgei_clients_read_fn kedgei_clients_csv, kedgei_clients_npz, kedgei_clients_leaf;
/* The same from a file; errors name it. */
KEDGE_NODISCARD int kedgei_clients_file(struct kedgei_clients *b, const char *path,
                                        kedgei_clients_read_fn *read, const struct kedgei_clients_file *as,
                                        struct kedge_diag *reterr);
/* kedge_clients_load of bytes instead of a file. */
KEDGE_NODISCARD int kedgei_clients_parse(const struct kedge_clients_source *source,
                                         kedgei_clients_read_fn *read, struct kedge_view bytes,
                                         struct kedge_clients *ret, struct kedge_diag *reterr);
KEDGE_NODISCARD int kedgei_clients_folder(struct kedgei_clients *b, const char *path,
                                          struct kedge_diag *reterr);

#endif
