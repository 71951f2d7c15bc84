#include "tests/unit/chain/witnesses.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

struct kedge_key_pair pair_of(uint8_t byte)
{
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    memset(seed.b, byte, sizeof seed.b);
    kedge_key_from_seed(&seed, &pair);
    return pair;
}

struct kedge_key_pair pair_of_witness(unsigned n)
{
    return pair_of(n == 0 ? 0 : (uint8_t)(0x10 + n));
}

struct kedge_vkey vkey_of(unsigned n)
{
    char name[64];
    struct kedge_key_pair pair = pair_of_witness(n);
    struct kedge_vkey v;
    snprintf(name, sizeof name, n == 0 ? WITNESSES_LOG : "fl.example.org/w%u", n);
    ck_assert_int_eq(kedge_vkey_make(kedge_view_str(name), n == 0 ? KEDGE_KEY_ED25519 : KEDGE_KEY_COSIGNATURE,
                                     &pair.public, &v),
                     KEDGE_OK);
    return v;
}

struct kedge_buf expand(const char *template)
{
    struct kedge_buf b;
    kedge_buf_init(&b, 4 * KEDGE_WITNESS_POLICY_MAX);
    for (const char *p = template; *p; p++) {
        if (*p != '$') {
            kedge_buf_put_u8(&b, (uint8_t)*p);
            continue;
        }
        unsigned n = 0;
        while (p[1] >= '0' && p[1] <= '9') {
            n = n * 10 + (unsigned)(*++p - '0');
        }
        struct kedge_vkey v = vkey_of(n);
        kedge_vkey_encode(&v, &b);
    }
    ck_assert_int_eq(b.err, KEDGE_OK);
    return b;
}

struct kedge_witness_policy *policy_of(struct kedge_view text)
{
    struct kedge_witness_policy *p = NULL;
    struct kedge_diag diag = {0};
    int err = kedge_witness_policy_parse(text, &p, &diag);
    ck_assert_msg(err == KEDGE_OK, "%s", diag.text);
    /* Encoding gives a policy that encodes to itself. */
    struct kedge_buf a KEDGE_CLEANUP(kedge_buf_deinit), b KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&a, 4 * KEDGE_WITNESS_POLICY_MAX);
    kedge_buf_init(&b, 4 * KEDGE_WITNESS_POLICY_MAX);
    kedge_witness_policy_encode(p, &a);
    struct kedge_witness_policy *again = NULL;
    ck_assert_int_eq(kedge_witness_policy_parse(kedge_buf_view(&a), &again, NULL), KEDGE_OK);
    kedge_witness_policy_encode(again, &b);
    ck_assert(kedge_view_eq(kedge_buf_view(&a), kedge_buf_view(&b)));
    kedge_witness_policy_free(again);
    return p;
}

struct kedge_witness_policy *policy_from(const char *template)
{
    struct kedge_buf text = expand(template);
    struct kedge_witness_policy *p = policy_of(kedge_buf_view(&text));
    kedge_buf_deinit(&text); /* the policy has its own copy */
    return p;
}
