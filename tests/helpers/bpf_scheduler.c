// SPDX-License-Identifier: MIT
/*
 * See bpf_scheduler.h. What a scheduler is to the kernel: the members of its struct
 * sched_ext_ops, in the value of a map. Where they are differs between kernels and is
 * in their BTF.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "bpf_scheduler.h"
#include "taskshared_test.h"

#define OPS	"sched_ext_ops"
#define VALUE	"bpf_struct_ops_" OPS
#define NAME	"simplest"
#define FOLDER	"/sys/kernel/sched_ext"
#define STATE	FOLDER "/state"

/* Of the kernel's, and in no header that programs get. */
#define SCX_OPS_SWITCH_PARTIAL	(1ULL << 3)

/* Where the libraries' headers are older. */
#ifndef BPF_F_LINK
#define BPF_F_LINK	(1U << 13)
#endif
#define ATTACH_STRUCT_OPS	44

/* Byte offset of a member, or -1. */
static int member_offset(const struct btf *btf, const char *structure, const char *member)
{
	int id = btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT);
	const struct btf_type *type = btf__type_by_id(btf, id < 0 ? 0 : (__u32)id);
	__u32 i;

	for (i = 0; id > 0 && i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), member))
			return (int)btf_member_bit_offset(type, i) / 8;
	errno = ENOENT;
	return -1;
}

bool bpf_scheduler_known(void)
{
	return !access(FOLDER, F_OK);
}

/* The map's value; the caller frees it. */
static void *make_value(const struct btf *btf, size_t size, bool partial)
{
	int ops = member_offset(btf, VALUE, "data"), name = member_offset(btf, OPS, "name");
	int flags = member_offset(btf, OPS, "flags");
	char *value = calloc(1, size);

	if (!value || ops < 0 || name < 0 || flags < 0) {
		free(value);
		return NULL;
	}
	memcpy(value + ops + name, NAME, sizeof(NAME));
	if (partial)
		*(uint64_t *)(value + ops + flags) = SCX_OPS_SWITCH_PARTIAL;
	return value;
}

/* Whoever makes such a map has types of his own, if only this one. */
static struct btf *own_types(void)
{
	struct btf *own = btf__new_empty();

	if (own && btf__add_int(own, "int", sizeof(int), BTF_INT_SIGNED) > 0 &&
	    !btf__load_into_kernel(own))
		return own;
	btf__free(own);
	return NULL;
}

/* Both return a file descriptor, or -1 and errno. */
static int make_map(const struct btf *btf, __u32 size)
{
	int id = btf__find_by_name_kind(btf, VALUE, BTF_KIND_STRUCT), map;
	struct btf *own = own_types();
	struct bpf_map_create_opts options = {
		.sz = sizeof(options),
		.btf_vmlinux_value_type_id = (__u32)id,
		.btf_fd = own ? (__u32)btf__fd(own) : 0,
		.map_flags = BPF_F_LINK,
	};

	if (!own)
		return -1;
	map = bpf_map_create(BPF_MAP_TYPE_STRUCT_OPS, NAME, sizeof(__u32), size, 1,
			     &options);
	btf__free(own);
	return map < 0 ? -1 : map;
}

static int make_scheduler(const struct btf *btf, bool partial)
{
	int id = btf__find_by_name_kind(btf, VALUE, BTF_KIND_STRUCT), map = -1;
	__s64 size = id < 0 ? -1 : btf__resolve_size(btf, (__u32)id);
	void *value = size < 0 ? NULL : make_value(btf, (size_t)size, partial);
	__u32 key = 0;

	if (value)
		map = make_map(btf, (__u32)size);
	if (map >= 0 && bpf_map_update_elem(map, &key, value, 0)) {
		close(map);
		map = -1;
	}
	free(value);
	return map;
}

int bpf_scheduler_start(bool partial)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int map, link = -1;

	if (!btf)
		return -1;
	map = make_scheduler(btf, partial);
	if (map >= 0) {
		/* The link holds the map, and the scheduler runs as long as there is the link. */
		link = bpf_link_create(map, 0, ATTACH_STRUCT_OPS, NULL);
		close(map);
	}
	btf__free(btf);
	return link < 0 ? -1 : link;
}

bool bpf_scheduler_runs(void)
{
	char state[32] = "";

	tst_read_file(STATE, state, sizeof(state));
	return !strcmp(state, "enabled\n");
}

bool bpf_scheduler_stop(int scheduler)
{
	bool ran = bpf_scheduler_runs();

	close(scheduler);
	return tst_wait_until(!bpf_scheduler_runs(), 5000) && ran;
}
