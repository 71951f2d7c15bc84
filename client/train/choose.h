/* Where a task is trained: on the processor, or on a CUDA device where there is one. */
#ifndef KEDGE_CLIENT_TRAIN_CHOOSE_H
#define KEDGE_CLIENT_TRAIN_CHOOSE_H

#include "client/train/ops.h"
#include "client/train/task.h"

enum { KEDGE_CHOICE_TEXT = 320 };

/* A trainer's device, kept between tasks; begins as all zeros. */
struct kedge_choice {
    bool failed; /* tried, and there is none: it is said once, and not tried again */
    bool fast;
    const struct kedge_ops *ops;
    struct kedge_device *dev; /* NULL: none is open */
};

/* Whether a task runs on the device, which is then open (choice->ops, choice->dev). False for "cpu", and for
 * "cuda" and "auto" where no device can be used; the first time ret_why (KEDGE_CHOICE_TEXT bytes) is one line
 * for people, else "". A device that was opened for another precision is closed: no net may be on it. */
bool kedge_choice_is_cuda(struct kedge_choice *choice, const struct kedge_task *task, char *ret_why);
/* Closes it; another task may open it again. No net may be on it. */
void kedge_choice_close(struct kedge_choice *choice);

#endif
