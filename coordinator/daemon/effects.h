/* What the core decides, executed: one function per effect, heavy ones hand their work on. */
#ifndef KEDGE_COORDINATOR_DAEMON_EFFECTS_H
#define KEDGE_COORDINATOR_DAEMON_EFFECTS_H

struct kedge_host;
struct kedge_coord_effect;

/* On the loop thread. */
void kedge_host_execute(struct kedge_host *h, const struct kedge_coord_effect *fx);

#endif
