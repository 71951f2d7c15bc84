#include "client/daemon/update/parts.h"

#include "common/base/try.h"
#include "common/tensor/safetensors.h"

int kedge_client_model_open(const struct kedge_layout *layout, const char *path,
                            struct kedge_client_model *ret, struct kedge_diag *d)
{
    struct kedge_map map;
    struct kedge_layout got;
    uint64_t start = 0;
    KEDGE_TRY(kedge_map_open(path, &map, d));
    int err = kedge_safetensors_read(kedge_view_of(map.ptr, map.len), map.len, KEDGE_SAFETENSORS_CANONICAL,
                                     &got, &start, d);
    if (!err) {
        err = kedge_layout_check_same(layout, &got, KEDGE_DTYPE_F32, d);
        kedge_layout_deinit(&got);
    }
    if (err) {
        kedge_map_close(&map);
        return kedge_diag_wrap(d, err, "%s", path);
    }
    *ret = (struct kedge_client_model){.map = map, .values = map.ptr + start};
    return KEDGE_OK;
}

void kedge_client_model_close(struct kedge_client_model *m)
{
    kedge_map_close(&m->map);
    m->values = NULL;
}

static int write_tensors(const struct kedge_client_work *w, bool all, struct kedge_client_source from, int fd,
                         uint64_t *ret_len)
{
    const struct kedge_layout *layout = all ? &w->whole : &w->layout;
    struct kedge_buf header;
    kedge_buf_init(&header, KEDGE_TENSOR_HEADER_MAX + 8);
    int err = kedge_safetensors_header(layout, KEDGE_DTYPE_F32, &header);
    if (!err) {
        err = kedge_fd_write(fd, kedge_buf_view(&header));
    }
    *ret_len = header.len + kedge_layout_data_len(layout);
    kedge_buf_deinit(&header);
    for (uint32_t i = 0; i < w->whole.count && !err; i++) {
        const struct kedge_tensor *t = &w->whole.tensors[i];
        const bool travels = kedge_part_has(&w->spec->share, &w->whole, i);
        const uint8_t **next = travels ? &from.shared : &from.rest;
        const size_t len = (size_t)t->count * sizeof(float);
        if (travels || all) {
            err = kedge_fd_write(fd, kedge_view_of(*next ? *next : from.whole + t->offset, len));
        }
        *next = *next ? *next + len : NULL;
    }
    return err;
}

int kedge_client_model_write(const struct kedge_client_work *w, bool all, struct kedge_client_source from,
                             const char *path, struct kedge_diag *d)
{
    uint64_t len = 0;
    int fd = -1;
    int err = kedge_client_reuse_begin(path, &fd);
    if (!err) {
        err = write_tensors(w, all, from, fd, &len);
        int end_err = kedge_client_reuse_end(fd, err ? 0 : len);
        err = err ? err : end_err;
    }
    return err ? kedge_diag_set(d, err, "%s: %s", path, kedge_strerror(err)) : KEDGE_OK;
}
