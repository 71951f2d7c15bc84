/* What a site can be asked to do; the values stand on the wire. */
#ifndef KEDGE_COMMON_BASE_TASK_KIND_H
#define KEDGE_COMMON_BASE_TASK_KIND_H

enum kedge_task_kind {
    KEDGE_TASK_NONE = 0,
    KEDGE_TASK_PRETRAIN = 1, /* a few SGD steps from the first model: its update gives the site a group */
    KEDGE_TASK_TRAIN = 2,
    KEDGE_TASK_EVALUATE = 3,
};

#endif
