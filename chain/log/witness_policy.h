/* Witness policies (c2sp.org/tlog-policy, draft): which logs, which witnesses, and how many of them must have
 * cosigned a checkpoint before it counts. Reading the text file; chain/log/witness_quorum.h applies it.
 * Strict: what the text of the draft does not allow is refused, with its line. Pure. */
#ifndef KEDGE_CHAIN_LOG_WITNESS_POLICY_H
#define KEDGE_CHAIN_LOG_WITNESS_POLICY_H

#include "chain/log/note.h"
#include "common/base/diag.h"

enum {
    KEDGE_WITNESS_POLICY_MAX = 64 * 1024, /* bytes of a policy file */
    KEDGE_KNOWN_LOGS_MAX = 128,           /* the draft wants at least 32 of each */
    KEDGE_WITNESSES_MAX = 128,
    KEDGE_WITNESS_GROUPS_MAX = 128,
    KEDGE_WITNESS_MEMBERS_MAX = KEDGE_WITNESSES_MAX + KEDGE_WITNESS_GROUPS_MAX,
    KEDGE_WITNESS_NAME_MAX = 255, /* bytes of a witness's or group's name */
    KEDGE_WITNESS_URL_MAX = 2048,
};

struct kedge_known_log {
    struct kedge_vkey vkey; /* type 01; its name is the log's origin */
    struct kedge_view vkey_text;
    struct kedge_view url; /* empty when not given */
};

struct kedge_witness {
    struct kedge_view name; /* inside this policy; opaque bytes, neither empty nor with blanks */
    struct kedge_view vkey_text;
    struct kedge_view url;
    /* False for an ML-DSA-44 key (type 06): parsed, but no cosignature of it is ever counted. */
    bool is_supported;
    struct kedge_vkey vkey; /* type 04; all zero unless is_supported */
};

enum kedge_witness_ref_kind { KEDGE_QUORUM_NONE, KEDGE_QUORUM_WITNESS, KEDGE_QUORUM_GROUP };

/* What a name stands for. */
struct kedge_witness_ref {
    enum kedge_witness_ref_kind kind;
    uint32_t index; /* of the witness or group */
};

/* Holds when at least `threshold` of its members hold. Members come before it in the policy, and nothing is a
 * member twice, so that the groups are trees. */
struct kedge_witness_group {
    struct kedge_view name;
    uint32_t threshold;    /* 1…member_count */
    uint32_t first_member; /* in the policy's members */
    uint32_t member_count; /* at least 1 */
};

/* Immutable after parsing; its views are into its own copy of the text. */
struct kedge_witness_policy {
    uint32_t log_count, witness_count, group_count, member_count;
    struct kedge_witness_ref quorum; /* KEDGE_QUORUM_NONE: no cosignature is demanded */
    struct kedge_known_log logs[KEDGE_KNOWN_LOGS_MAX];
    struct kedge_witness witnesses[KEDGE_WITNESSES_MAX];
    struct kedge_witness_group groups[KEDGE_WITNESS_GROUPS_MAX];
    struct kedge_witness_ref members[KEDGE_WITNESS_MEMBERS_MAX];
    struct kedge_buf text;
};

/* KEDGE_E_FORMAT, with "line N: problem, expected …" in reterr; KEDGE_E_TOO_LONG beyond a limit above;
 * KEDGE_E_NOMEM. Refused beyond the draft: a key of type 01 as a witness, one of type 04 as a log, and one
 * key in both roles, because a key serves one role. The caller frees by kedge_witness_policy_free. */
KEDGE_NODISCARD int kedge_witness_policy_parse(struct kedge_view text,
                                               struct kedge_witness_policy **ret_policy,
                                               struct kedge_diag *reterr);
void kedge_witness_policy_free(struct kedge_witness_policy *policy); /* NULL is fine */
/* Appends the policy in its one plain spelling: logs, witnesses, groups with numbers, quorum; no comments.
 * It parses to the same policy and encodes to itself. */
void kedge_witness_policy_encode(const struct kedge_witness_policy *policy, struct kedge_buf *out);

enum { KEDGE_WITNESS_SHOWN_MAX = 4 * 64 + 8 };
/* What a name says to a person, quotes not included: at most 64 of its bytes, as kedge_text_put_shown, on one
 * line. */
const char *kedge_witness_name_show(struct kedge_view name, char out[KEDGE_WITNESS_SHOWN_MAX]);
/* The name of what ref stands for; "none" for KEDGE_QUORUM_NONE. */
struct kedge_view kedge_witness_ref_name(const struct kedge_witness_policy *policy,
                                         struct kedge_witness_ref ref);

#endif
