/* Clients as researchers have them: samples that say themselves whose they are. Reads files; impure.
 *
 *   FILE.csv    a column names the client of each row
 *   FILE.npz    arrays x and y, and one of whole numbers or texts that says whose each sample is
 *   FILE.json   LEAF's: {"users": […], "user_data": {USER: {"x": […], "y": […]}}}
 *   FOLDER      with train/ and test/ of LEAF's files; else a folder per client, named as the client, which
 *               holds train.csv and test.csv, or data.csv (or .npz) to be dealt; data that the client has
 * from a later step on are in train-1.csv, test-1.csv or data-1.csv, and so on
 *
 * Who has which true group, for an index of groupings, stands in a column or array, or in a CSV file with the
 * columns client and group. Labels are whole numbers or, in CSV files, names of classes. */
#ifndef KEDGE_SIM_PARTITION_CLIENTS_H
#define KEDGE_SIM_PARTITION_CLIENTS_H

#include "common/base/diag.h"
#include "common/tensor/csv.h"
#include "sim/partition/partition.h"

enum {
    KEDGE_CLIENTS_MAX = 100000,
    KEDGE_CLIENTS_NAME_MAX = 127, /* bytes */
    KEDGE_CLIENTS_STEPS_MAX = 16,
    KEDGE_CLIENTS_GROUPS_MAX = 1024,
};

struct kedge_clients_source {
    const char *path;
    const char *client, *label, *group, *step; /* columns or arrays by name, "": the usual one, or none */
    const char *truth;              /* path of a CSV file with the columns client and group, or "" */
    enum kedge_csv_missing missing; /* what becomes of values that CSV files do not have */
};

/* To whom a sample belongs is told; whether it is for training may be. */
enum kedge_clients_part { KEDGE_CLIENTS_DEALT, KEDGE_CLIENTS_TRAIN, KEDGE_CLIENTS_TEST };

struct kedge_clients {
    uint32_t n, features, classes, count, steps;
    bool is_csv;         /* some of it */
    float *x;            /* owned, n × features */
    int32_t *labels;     /* owned, n */
    uint32_t *client;    /* owned, n: below count */
    uint8_t *part;       /* owned, n: enum kedge_clients_part */
    uint8_t *step;       /* owned, n: below steps */
    const char **names;  /* owned: of the clients, in text */
    char *text;          /* owned */
    char *class_names;   /* owned, packed, in the order of their numbers; NULL: labels are numbers */
    uint32_t *truth;     /* owned, count: the client's true group; NULL: nobody says */
    uint32_t true_count; /* true groups */
};

/* KEDGE_E_FORMAT names file, place, what was found and expected; the caller deinits ret after success. */
KEDGE_NODISCARD int kedge_clients_load(const struct kedge_clients_source *source, struct kedge_clients *ret,
                                       struct kedge_diag *reterr);
void kedge_clients_deinit(struct kedge_clients *c);

/* Who trains and tests on which samples from a step on: a site per client, in the clients' order. A client
 * whose samples are to be dealt trains on nine tenths of them. At step 0 each has at least one of either
 * kind, else KEDGE_E_FORMAT names it; later a count may be 0, and what the client had before stays in use. */
KEDGE_NODISCARD int kedge_clients_deal(const struct kedge_clients *c, uint32_t step, uint64_t seed,
                                       struct kedge_partition *ret, struct kedge_diag *reterr);

/* Values that are missing, and scales: of each client by the samples that p has it train on, as a site of a
 * job treats its own files, by the same functions. Errors as kedge_dataset_fill and
 * kedge_dataset_standardize, with the client's name. */
KEDGE_NODISCARD int kedge_clients_prepare(struct kedge_clients *c, const struct kedge_partition *p, bool fill,
                                          bool standardize, struct kedge_diag *reterr);

#endif
