/* The view as JSON. Names of tenants, sites and jobs have no character that JSON would want escaped. */
#include "chain/view/groups_view.h"

#include <math.h>

const char *kedge_groups_place_name(enum kedge_groups_place place)
{
    static const char *const names[] = {"placed", "not-asked", "erased", "absent", "sealed", "zero"};
    return names[place];
}

static void put_number(double v, struct kedge_buf *out)
{
    char text[KEDGE_REAL_MAX] = "null";
    if (isfinite(v)) {
        kedge_real_encode(v, text);
    }
    kedge_buf_put_str(out, text);
}

static void put_real(struct kedge_buf *out, const char *name, double v)
{
    kedge_buf_printf(out, "\"%s\":", name);
    put_number(v, out);
}

static void put_similarity(const struct kedge_groups_view *v, double similarity, struct kedge_buf *out)
{
    if (!v->is_followed) {
        kedge_buf_put_str(out, ",");
        put_real(out, "similarity", similarity);
    }
}

static void put_groups(const struct kedge_groups_view *v, struct kedge_buf *out)
{
    kedge_buf_put_str(out, ",\"groups\":[");
    for (uint32_t g = 0; g < v->groups; g++) {
        char hex[KEDGE_HASH_HEX_LEN + 1];
        uint32_t sites = 0;
        double least = 1, sum = 0;
        for (size_t i = 0; i < v->site_count; i++) {
            const struct kedge_groups_site *s = &v->sites[i];
            if (s->group == g) {
                sites++;
                sum += s->similarity;
                least = s->similarity < least ? s->similarity : least;
            }
        }
        kedge_hash_hex(&v->models[g], hex);
        kedge_buf_printf(out, "%s{\"group\":%u,\"sites\":%u,\"model\":\"%s\"", g ? "," : "", g, sites, hex);
        if (v->merged_into[g] > 0) {
            kedge_buf_printf(out, ",\"part_of\":%u", v->merged_into[g] - 1);
        }
        if (v->has_directions) {
            kedge_hash_hex(&v->directions[g], hex);
            kedge_buf_printf(out, ",\"direction\":\"%s\"", hex);
        }
        if (sites > 0 && !v->is_followed) {
            kedge_buf_put_str(out, ",");
            put_real(out, "similarity_mean", sum / sites);
            kedge_buf_put_str(out, ",");
            put_real(out, "similarity_least", least);
        }
        if (v->has_picture) {
            kedge_buf_put_str(out, ",");
            put_real(out, "x", v->group_x[g]);
            kedge_buf_put_str(out, ",");
            put_real(out, "y", v->group_y[g]);
        }
        kedge_buf_put_str(out, "}");
    }
    kedge_buf_put_str(out, "]");
}

static void put_cosines(const struct kedge_groups_view *v, struct kedge_buf *out)
{
    kedge_buf_put_str(out, ",\"cosines\":[");
    for (uint32_t g = 0; g < v->groups && v->has_directions; g++) {
        kedge_buf_put_str(out, g ? ",[" : "[");
        for (uint32_t k = 0; k < v->groups; k++) {
            kedge_buf_put_str(out, k ? "," : "");
            put_number(v->cosine[g][k], out);
        }
        kedge_buf_put_str(out, "]");
    }
    kedge_buf_put_str(out, "]");
}

static void put_sites(const struct kedge_groups_view *v, size_t most, struct kedge_buf *out)
{
    size_t count = most && v->site_count > most ? most : v->site_count;
    kedge_buf_put_str(out, ",\"sites\":[");
    for (size_t i = 0; i < count; i++) {
        const struct kedge_groups_site *s = &v->sites[i];
        kedge_buf_printf(out, "%s{\"tenant\":\"%s\",\"site\":\"%s\",\"group\":%u,\"round\":%u,\"how\":\"%s\"",
                         i ? "," : "", s->tenant.s, s->site.s, s->group, s->round, s->how);
        put_similarity(v, s->similarity, out);
        kedge_buf_printf(out, ",\"moves\":%u,\"update\":\"%s\"", s->moves - 1,
                         kedge_groups_place_name(s->place));
        if (s->place == KEDGE_GROUPS_PLACED) {
            kedge_buf_put_str(out, ",");
            put_real(out, "x", s->x);
            kedge_buf_put_str(out, ",");
            put_real(out, "y", s->y);
        }
        kedge_buf_put_str(out, "}");
    }
    kedge_buf_printf(out, "],\"sites_left_out\":%zu", v->site_count - count);
}

static void put_moves(const struct kedge_groups_view *v, size_t most, struct kedge_buf *out)
{
    size_t first = most && v->move_count > most ? v->move_count - most : 0;
    kedge_buf_put_str(out, ",\"history\":[");
    for (size_t i = first; i < v->move_count; i++) {
        const struct kedge_groups_move *m = &v->moves[i];
        const struct kedge_groups_site *s = &v->sites[m->site];
        kedge_buf_printf(out, "%s{\"round\":%u,\"tenant\":\"%s\",\"site\":\"%s\",", i > first ? "," : "",
                         m->round, s->tenant.s, s->site.s);
        if (m->from != KEDGE_GROUPS_NO_GROUP) {
            kedge_buf_printf(out, "\"from\":%u,", m->from);
        }
        kedge_buf_printf(out, "\"group\":%u,\"how\":\"%s\"", m->group, m->how);
        put_similarity(v, m->similarity, out);
        kedge_buf_printf(out, ",\"entry\":%llu}", (unsigned long long)m->entry);
    }
    kedge_buf_printf(out, "],\"moves_left_out\":%zu", first);
}

static void put_changes(const struct kedge_groups_view *v, size_t most, struct kedge_buf *out)
{
    static const char *const names[] = {"drift", "split", "merge", "kept", "own", "shared"};
    size_t first = most && v->change_count > most ? v->change_count - most : 0;
    kedge_buf_put_str(out, ",\"changes\":[");
    for (size_t i = first; i < v->change_count; i++) {
        const struct kedge_groups_change *c = &v->changes[i];
        kedge_buf_printf(out, "%s{\"round\":%u,\"how\":\"%s\"", i > first ? "," : "", c->round,
                         names[c->event]);
        if (c->event == KEDGE_GROUPS_DRIFTED) {
            kedge_buf_put_str(out, ",");
            put_real(out, "drift", c->drift);
        } else if (c->event == KEDGE_GROUPS_CUT || c->event == KEDGE_GROUPS_JOINED) {
            kedge_buf_printf(out, ",\"group\":%u,\"%s\":%u", c->group,
                             c->event == KEDGE_GROUPS_CUT ? "part" : "into", c->other);
        }
        kedge_buf_put_str(out, "}");
    }
    kedge_buf_printf(out, "],\"changes_left_out\":%zu", first);
}

void kedge_groups_view_json(const struct kedge_groups_view *v, size_t sites_max, size_t moves_max,
                            struct kedge_buf *out)
{
    kedge_buf_printf(out, "{\"job\":\"%s\",\"round\":%u", v->job.s, v->round);
    put_groups(v, out);
    put_cosines(v, out);
    put_sites(v, sites_max, out);
    put_moves(v, moves_max, out);
    put_changes(v, moves_max, out);
    if (v->has_picture) {
        kedge_buf_put_str(out, ",");
        put_real(out, "picture_shown", v->shown);
    }
    kedge_buf_put_str(out, "}");
}
