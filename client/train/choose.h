/* Where a task is trained: on the processor, or on a CUDA device where there is one. */
#ifndef KEDGE_CLIENT_TRAIN_CHOOSE_H
#define KEDGE_CLIENT_TRAIN_CHOOSE_H

#include "client/train/ops.h"
#include "client/train/task.h"

enum { KEDGE_CHOICE_TEXT = 512 };

/* A trainer's device, kept between tasks; begins as all zeros. */
struct kedge_choice {
    bool failed; /* tried, and there is none: it is not tried again */
    char cause[KEDGE_CHOICE_TEXT / 2],
        why[KEDGE_CHOICE_TEXT]; /* then why, and one line for people; else "" */
    enum kedge_ops_precision precision;
    const struct kedge_ops *ops;
    struct kedge_device *dev; /* NULL: none is open */
};

/* Whether a task runs on the device, which is then open (choice->ops, choice->dev). False for "cpu", and for
 * "cuda" and "auto" where no device can be used: choice->why says why, and *ret_first that it was found out
 * now. A device that was opened for another precision is closed: no net may be on it. */
bool kedge_choice_is_cuda(struct kedge_choice *choice, const struct kedge_task *task, bool *ret_first);
/* Closes it; another task may open it again. No net may be on it. */
void kedge_choice_close(struct kedge_choice *choice);

#endif
