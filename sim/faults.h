/* Everything that can go wrong in the simulated federation, by name, so that each can be shown to have
 * happened. */
#ifndef KEDGE_SIM_FAULTS_H
#define KEDGE_SIM_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* name, text */
#define SIM_FAULTS(X)                                                                     \
    X(LOST, "message lost")                                                               \
    X(DOUBLED, "message doubled")                                                         \
    X(SLOW, "message much delayed")                                                       \
    X(OVERTAKEN, "message overtaken by a later one")                                      \
    X(CUT_TO_SERVER, "message to the coordinator lost in a partition")                    \
    X(CUT_TO_SITE, "answer to a site lost in a partition")                                \
    X(HUNG_UP, "connection of a parked poll lost")                                        \
    X(SERVER_DOWN, "call to a coordinator that is down")                                  \
    X(SERVER_CRASH, "coordinator crashes")                                                \
    X(SERVER_CRASH_LOADING, "coordinator crashes while it restores")                      \
    X(SERVER_CRASH_WRITTEN, "coordinator crashes between a durable write and its report") \
    X(SERVER_CRASH_MIDWAY, "coordinator crashes between two effects")                     \
    X(SERVER_WRITES_KEPT, "crash of the coordinator keeps a write under way")             \
    X(SITE_CRASH, "site crashes")                                                         \
    X(SITE_CRASH_STARTING, "site crashes while it starts")                                \
    X(SITE_CRASH_WRITTEN, "site crashes between a durable write and its report")          \
    X(SITE_CRASH_MIDWAY, "site crashes between two effects")                              \
    X(DISK_FAILED, "coordinator's write failed")                                          \
    X(DISK_LIED, "coordinator's write failed but was done")                               \
    X(DISK_FULL, "coordinator's disk full for a while")                                   \
    X(DISK_SLOW, "coordinator's disk slow for a while")                                   \
    X(SITE_DISK_FAILED, "site's write failed")                                            \
    X(SITE_DISK_LIED, "site's write failed but was done")                                 \
    X(SITE_DISK_FULL, "site's disk full for a while")                                     \
    X(UPLOAD_LOST, "upload lost in a crash")                                              \
    X(BLOB_FAILED, "update could not be stored as it came")                               \
    X(COMMIT_FAILED, "update could not be stored once it was verified")                   \
    X(WORK_FAILED, "work of the coordinator failed")                                      \
    X(TRAINING_FAILED, "training failed")                                                 \
    X(TRAINING_SLOW, "training takes very long")                                          \
    X(SERVER_CLOCK_JUMP, "clock of the coordinator jumps ahead")                          \
    X(CLOCK_JUMP, "clock of a site jumps ahead")                                          \
    X(CLOCK_BACK, "clock of a site starts again at another time")                         \
    X(BAD_UPDATE, "update out of bounds")                                                 \
    X(BAD_WEIGHT, "sample count out of range")                                            \
    X(TWO_FACED, "site signs twice for one task")                                         \
    X(FORGED, "statement altered after it was signed")                                    \
    X(NOSY, "site asks for the model of another group")                                   \
    X(REVOKED, "site revoked")                                                            \
    X(NEWCOMER, "site gets its group in a later round")                                   \
    X(SHIFTED, "data of a site shift")                                                    \
    X(FLAPPING, "site says that its data shift, and they do not")                         \
    X(MIGRATED, "site changes its group because its data have shifted")                   \
    X(MIGRATION_CUT, "coordinator restarts between a pretraining and its group")          \
    X(REGROUPED, "groups are made anew")                                                  \
    X(KEPT, "too few come to make groups anew, they stay")                                \
    X(REGROUPED_NEWCOMER, "site gets its first group when groups are made anew")          \
    X(DRIFTED, "close asks for new groups")                                               \
    X(SPLIT, "group is split by a close")                                                 \
    X(MERGED, "groups are merged by a close")                                             \
    X(MOVED, "site is moved by a close")                                                  \
    X(MOVES_CUT, "coordinator restarts before the moves of a close are stated")           \
    X(CHOSEN, "site chooses another group than last")                                     \
    X(NEARER, "site is nearer to the model of another group than it was")                 \
    X(EDGES, "round of a job whose groups are its tenants")                               \
    X(WRONG_CHOICE, "site names a group whose model it did not train")                    \
    X(STALE, "update counts in a later round than that of its task")                      \
    X(TOO_STALE, "task of an asynchronous job grows too old")                             \
    X(AWAY, "site that is at work is away when a round opens")                            \
    X(AT_WORK_CUT, "coordinator restarts between two rounds while sites are at work")     \
    X(SPARED, "site says that its battery is low, and another one is drawn")              \
    X(ENDED, "site ends its part in a round without an update")                           \
    X(UNABLE, "site is left out of a round because it said that it cannot serve it")      \
    X(DRAWN_AGAIN, "sites of a round are drawn again")                                    \
    X(STALLED, "nobody is left who could bring what a round lacks")                       \
    X(BESIDE, "site has tasks of two jobs in hand")                                       \
    X(CAPPED, "tenant weighs less than it brings: the cap on shares")                     \
    X(SLOT_AGAIN, "job takes the place of one that has ended")                            \
    X(HALT, "job halted by the operator")                                                 \
    X(CANCEL, "job cancelled by the operator")

#define SIM_FAULT_ENUM(name, text) SIM_FAULT_##name,
enum sim_fault { SIM_FAULTS(SIM_FAULT_ENUM) SIM_FAULT_COUNT };
#undef SIM_FAULT_ENUM

const char *sim_fault_name(enum sim_fault fault); /* "LOST" */
const char *sim_fault_text(enum sim_fault fault); /* "message lost" */

/* A while, in virtual time: [from, until). Empty when both are 0. */
struct sim_window {
    uint64_t from_ns, until_ns;
};

#endif
