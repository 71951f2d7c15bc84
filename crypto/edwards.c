/* Checking Ed25519 signatures of a key that was seen before: an auditor checks thousands of each site's.
 *
 * [S]B = R + [k]A is checked as encode([S]B + [k](-A)) == R, byte by byte: what libsodium does. Both
 * scalars are written in signed digits, S in 32 of 8 bits over a table with 128 multiples of each 256^i B,
 * k in 64 of 4 bits over the key's table: its odd digits are summed first, four doublings bring them to
 * their places. So a check costs additions of table entries and four doublings, where the general way
 * doubles for each bit.
 *
 * Nothing here is secret: keys, signatures and messages are public, so table look-ups and branches may
 * depend on them. It must never be used for signing. */
#include "crypto/edwards.h"

#include <pthread.h>
#include <sodium.h>

#include "common/base/mem.h"

enum { ROWS = KEDGEI_TABLE_ROWS, BASE_ROW = 128, BATCH = 128, SCALAR = 32 };

/* Extended coordinates: x = X/Z, y = Y/Z, xy = T/Z. Limbs are tight. */
struct point {
    struct kedgei_fe x, y, z, t;
};

/* Of the curve, computed from their definitions; and the table of the base point, half a megabyte. */
static struct {
    struct kedgei_fe d, d2, root_of_minus_one;
    struct kedgei_niels *base; /* [ROWS][BASE_ROW]; NULL: there was no memory for it */
} curve;
static pthread_once_t curve_once = PTHREAD_ONCE_INIT;

/* ---- points: Hisil, Wong, Carter, Dawson, section 3, for a = -1 ---- */

static const struct point IDENTITY = {{{0}}, {{1}}, {{1}}, {{0}}};

/* The last step of every formula. */
static void combine(struct point *r, const struct kedgei_fe *e, const struct kedgei_fe *f,
                    const struct kedgei_fe *g, const struct kedgei_fe *h)
{
    r->x = kedgei_fe_mul(e, f);
    r->y = kedgei_fe_mul(g, h);
    r->z = kedgei_fe_mul(f, g);
    r->t = kedgei_fe_mul(e, h);
}

/* With F and H of the paper's formula negated, which negates all four coordinates: the same point. */
static void double_point(struct point *p)
{
    struct kedgei_fe a = kedgei_fe_square(&p->x), b = kedgei_fe_square(&p->y), c = kedgei_fe_square(&p->z);
    struct kedgei_fe s = kedgei_fe_add(&p->x, &p->y), e = kedgei_fe_square(&s), h = kedgei_fe_add(&a, &b);
    struct kedgei_fe g = kedgei_fe_sub(&b, &a), f = kedgei_fe_add(&c, &c);
    e = kedgei_fe_sub(&e, &h);
    f = kedgei_fe_sub(&f, &b);
    f = kedgei_fe_add(&f, &a); /* 2Z² - (Y² - X²) */
    combine(p, &e, &f, &g, &h);
}

/* p ± q. q is affine with x + y, y - x and 2dxy prepared, so an addition is seven multiplications;
 * subtracting exchanges the first two and the sign of the third. */
static void add_niels(struct point *p, const struct kedgei_niels *q, bool subtract)
{
    struct kedgei_fe y_minus_x = kedgei_fe_sub(&p->y, &p->x), y_plus_x = kedgei_fe_add(&p->y, &p->x);
    struct kedgei_fe a = kedgei_fe_mul(&y_minus_x, subtract ? &q->sum : &q->difference);
    struct kedgei_fe b = kedgei_fe_mul(&y_plus_x, subtract ? &q->difference : &q->sum);
    struct kedgei_fe c = kedgei_fe_mul(&p->t, &q->product), d = kedgei_fe_add(&p->z, &p->z);
    struct kedgei_fe e = kedgei_fe_sub(&b, &a), h = kedgei_fe_add(&b, &a);
    struct kedgei_fe less = kedgei_fe_sub(&d, &c), more = kedgei_fe_add(&d, &c);
    combine(p, &e, subtract ? &more : &less, subtract ? &less : &more, &h);
}

/* p with 1/z known. */
static void make_niels(const struct point *p, const struct kedgei_fe *inverse, struct kedgei_niels *ret)
{
    struct kedgei_fe x = kedgei_fe_mul(&p->x, inverse), y = kedgei_fe_mul(&p->y, inverse);
    struct kedgei_fe xy = kedgei_fe_mul(&x, &y), sum = kedgei_fe_add(&y, &x), less = kedgei_fe_sub(&y, &x);
    const struct kedgei_fe one = kedgei_fe_small(1);
    ret->sum = kedgei_fe_mul(&sum, &one); /* tight again */
    ret->difference = kedgei_fe_mul(&less, &one);
    ret->product = kedgei_fe_mul(&xy, &curve.d2);
}

/* RFC 8032 section 5.1.2: y with the lowest bit of x on top. The one inversion of a whole verification is
 * here. */
static void encode_point(const struct point *p, uint8_t ret[KEDGE_KEY_LEN])
{
    struct kedgei_fe inverse = kedgei_fe_invert(&p->z);
    struct kedgei_fe x = kedgei_fe_mul(&p->x, &inverse), y = kedgei_fe_mul(&p->y, &inverse);
    uint8_t sign[32];
    kedgei_fe_encode(&x, sign);
    kedgei_fe_encode(&y, ret);
    ret[31] |= (uint8_t)((sign[0] & 1) << 7);
}

/* RFC 8032 section 5.1.3, steps 2 to 4; the encoding is known to be canonical. false: no point has this y. */
static bool decode_point(const uint8_t b[KEDGE_KEY_LEN], struct point *ret)
{
    const struct kedgei_fe one = kedgei_fe_small(1), zero = kedgei_fe_small(0);
    struct kedgei_fe y = kedgei_fe_decode(b), yy = kedgei_fe_square(&y), u = kedgei_fe_sub(&yy, &one);
    struct kedgei_fe v = kedgei_fe_mul(&yy, &curve.d);
    v = kedgei_fe_add(&v, &one);
    struct kedgei_fe v2 = kedgei_fe_square(&v), v3 = kedgei_fe_mul(&v2, &v), v6 = kedgei_fe_square(&v3);
    struct kedgei_fe v7 = kedgei_fe_mul(&v6, &v), uv3 = kedgei_fe_mul(&u, &v3), uv7 = kedgei_fe_mul(&u, &v7);
    struct kedgei_fe root = kedgei_fe_root_power(&uv7), x = kedgei_fe_mul(&uv3, &root);
    struct kedgei_fe xx = kedgei_fe_square(&x), vxx = kedgei_fe_mul(&v, &xx);
    u = kedgei_fe_mul(&u, &one);
    struct kedgei_fe minus_u = kedgei_fe_sub(&zero, &u);
    if (kedgei_fe_eq(&vxx, &minus_u)) {
        x = kedgei_fe_mul(&x, &curve.root_of_minus_one);
    } else if (!kedgei_fe_eq(&vxx, &u)) {
        return false;
    }
    uint8_t text[32];
    kedgei_fe_encode(&x, text);
    if ((text[0] & 1) != b[31] >> 7) {
        x = kedgei_fe_sub(&zero, &x);
        x = kedgei_fe_mul(&x, &one);
    }
    *ret = (struct point){x, y, one, kedgei_fe_mul(&x, &y)};
    return true;
}

/* ---- tables ---- */

/* With one inversion for all (Montgomery); at most BATCH. */
/* With one inversion for all (Montgomery); at most BATCH. An inversion costs as much as hundreds of
 * multiplications: the product of all z is inverted once, and each inverse is won from it by going
 * backwards. */
static void make_affine(const struct point *points, size_t count, struct kedgei_niels *ret)
{
    struct kedgei_fe products[BATCH]; /* of z, from the first to this one */
    products[0] = points[0].z;
    for (size_t i = 1; i < count; i++) {
        products[i] = kedgei_fe_mul(&products[i - 1], &points[i].z);
    }
    struct kedgei_fe inverse = kedgei_fe_invert(&products[count - 1]);
    for (size_t i = count - 1; i > 0; i--) {
        struct kedgei_fe own = kedgei_fe_mul(&inverse, &products[i - 1]);
        make_niels(&points[i], &own, &ret[i]);
        inverse = kedgei_fe_mul(&inverse, &points[i].z);
    }
    make_niels(&points[0], &inverse, &ret[0]);
}

/* ret[i · row + k] = (k + 1) · 256^i · p for ROWS rows; row divides BATCH. A row of multiples for each
 * byte of the scalar: 256^i is reached by eight doublings from the row before, and all entries are made
 * affine in batches, since an inversion each would cost more than the table saves. */
static void make_table(const struct point *p, size_t row, struct kedgei_niels *ret)
{
    struct point firsts[ROWS], points[BATCH];
    struct kedgei_niels steps[ROWS];
    firsts[0] = *p;
    for (size_t i = 1; i < ROWS; i++) {
        firsts[i] = firsts[i - 1];
        for (int bit = 0; bit < 8; bit++) {
            double_point(&firsts[i]);
        }
    }
    make_affine(firsts, ROWS, steps);
    for (size_t i = 0, n = 0; i < ROWS; i++) {
        struct point at = firsts[i];
        for (size_t k = 0; k < row; k++) {
            points[n++] = at;
            add_niels(&at, &steps[i], false);
            if (n == BATCH) {
                make_affine(points, n, ret + i * row + k + 1 - n);
                n = 0;
            }
        }
    }
}

/* b^((p - 1) / 4): the exponent 2^253 - 5 has all bits set but one. */
static struct kedgei_fe power_quarter(const struct kedgei_fe *b)
{
    struct kedgei_fe r = *b;
    for (int bit = 251; bit >= 0; bit--) {
        r = kedgei_fe_square(&r);
        r = bit == 2 ? r : kedgei_fe_mul(&r, b);
    }
    return r;
}

/* RFC 8032 section 5.1: d = -121665/121666; B has y = 4/5 and the even x. 2 has no square root. */
static void make_curve(void)
{
    const struct kedgei_fe zero = kedgei_fe_small(0), two = kedgei_fe_small(2), four = kedgei_fe_small(4),
                           five = kedgei_fe_small(5), over = kedgei_fe_small(121665),
                           under = kedgei_fe_small(121666);
    struct kedgei_fe inverse = kedgei_fe_invert(&under), minus = kedgei_fe_sub(&zero, &over);
    curve.d = kedgei_fe_mul(&minus, &inverse);
    curve.d2 = kedgei_fe_mul(&curve.d, &two);
    curve.root_of_minus_one = power_quarter(&two);
    uint8_t text[KEDGE_KEY_LEN];
    struct point base;
    inverse = kedgei_fe_invert(&five);
    struct kedgei_fe y = kedgei_fe_mul(&four, &inverse);
    kedgei_fe_encode(&y, text);
    struct kedgei_niels *table = kedge_mem_new((size_t)ROWS * BASE_ROW, sizeof *table);
    if (table && decode_point(text, &base)) {
        make_table(&base, BASE_ROW, table);
        curve.base = table;
    }
}

/* Only keys of prime order get a table: with small components, libsodium and the equation here could
 * differ in what they accept. */
bool kedgei_key_table_init(const struct kedge_public_key *key, struct kedgei_key_table *ret)
{
    struct kedge_public_key minus = *key; /* -A has the other x */
    minus.b[31] ^= 0x80;
    struct point p;
    pthread_once(&curve_once, make_curve);
    if (!curve.base || !kedge_public_key_is_valid(key) || !decode_point(minus.b, &p)) {
        return false;
    }
    make_table(&p, KEDGEI_TABLE_ROW, ret->at[0]);
    return true;
}

/* ---- signatures ---- */

/* Base 16, digits from -8 to 7, lowest first; the scalar is below 2^253. Signed digits halve the table:
 * only 1 to 8 times a point are stored, and a negative digit subtracts. The last carry is 0, because the
 * scalar is below 2^253. */
static void digits_of_4(const uint8_t scalar[SCALAR], int8_t ret[2 * SCALAR])
{
    int carry = 0;
    for (size_t i = 0; i < (size_t)2 * SCALAR; i++) {
        int digit = (scalar[i / 2] >> (4 * (i % 2)) & 15) + carry;
        carry = (digit + 8) >> 4;
        ret[i] = (int8_t)(digit - 16 * carry);
    }
}

/* p + digit · (the row's first entry). */
static void add_digit(struct point *p, const struct kedgei_niels *row, int digit)
{
    if (digit != 0) {
        add_niels(p, &row[(digit < 0 ? -digit : digit) - 1], digit < 0);
    }
}

static void add_base(struct point *p, const uint8_t scalar[SCALAR])
{
    int carry = 0;
    for (size_t i = 0; i < SCALAR; i++) {
        int digit = scalar[i] + carry;
        carry = (digit + 128) >> 8;
        add_digit(p, &curve.base[i * BASE_ROW], digit - 256 * carry);
    }
}

/* SHA-512(R ‖ A ‖ message) modulo L; and whether S is below L. */
/* SHA-512(R ‖ A ‖ message) modulo L; and whether S is below L (RFC 8032 section 5.1.7), or every
 * signature would have a second spelling that verifies, too. */
static bool read_scalars(const struct kedge_signature *sig, const struct kedge_public_key *key,
                         struct kedge_view message, uint8_t ret_k[SCALAR])
{
    uint8_t wide[64] = {0}, reduced[SCALAR];
    memcpy(wide, sig->b + SCALAR, SCALAR);
    crypto_core_ed25519_scalar_reduce(reduced, wide);
    if (memcmp(reduced, wide, SCALAR) != 0) {
        return false;
    }
    crypto_hash_sha512_state hash;
    crypto_hash_sha512_init(&hash);
    crypto_hash_sha512_update(&hash, sig->b, SCALAR);
    crypto_hash_sha512_update(&hash, key->b, sizeof key->b);
    crypto_hash_sha512_update(&hash, message.ptr, message.len);
    crypto_hash_sha512_final(&hash, wide);
    crypto_core_ed25519_scalar_reduce(ret_k, wide);
    return true;
}

/* A false answer only means that libsodium is asked; so a mistake here may cost time, and what must hold
 * is that nothing is accepted which libsodium would refuse. The tests compare both over good, bad and
 * small-order cases. */
bool kedgei_key_table_accepts(const struct kedgei_key_table *table, const struct kedge_public_key *key,
                              struct kedge_view message, const struct kedge_signature *sig)
{
    uint8_t k[SCALAR], encoded[KEDGE_KEY_LEN];
    int8_t digits[2 * SCALAR];
    if (!read_scalars(sig, key, message, k)) {
        return false;
    }
    digits_of_4(k, digits);
    struct point r = IDENTITY;
    for (size_t i = 0; i < ROWS; i++) {
        add_digit(&r, table->at[i], digits[2 * i + 1]);
    }
    for (int bit = 0; bit < 4; bit++) {
        double_point(&r);
    }
    for (size_t i = 0; i < ROWS; i++) {
        add_digit(&r, table->at[i], digits[2 * i]);
    }
    add_base(&r, sig->b + SCALAR);
    encode_point(&r, encoded);
    static const uint8_t neutral[KEDGE_KEY_LEN] = {1}; /* the one R of small order that could come of this */
    return memcmp(encoded, sig->b, sizeof encoded) == 0 && memcmp(encoded, neutral, sizeof encoded) != 0;
}

bool kedge_public_key_is_valid(const struct kedge_public_key *key)
{
    return crypto_core_ed25519_is_valid_point(key->b) == 1;
}
