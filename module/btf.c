// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where members of the running kernel's structures are. The kernel carries a
 * description of all its types (CONFIG_DEBUG_INFO_BTF), made of the very objects it
 * was linked from; the offset of a private structure's member is read from there,
 * as BPF programs do.
 */

#include <linux/btf.h>
#include <linux/errno.h>
#include <linux/init.h>
#include <linux/string.h>

#include "btf.h"
#include "symbol.h"

/* Bytes of a type's record behind its head; -1 for a kind that is not known. */
static int __init taskshared_btf_tail(const struct btf_type *type)
{
	unsigned int vlen = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	case BTF_KIND_INT:
		return sizeof(u32);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return vlen * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return vlen * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return vlen * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return vlen * sizeof(struct btf_param);
	case BTF_KIND_VAR:
		return sizeof(struct btf_var);
	case BTF_KIND_DATASEC:
		return vlen * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG:
		return sizeof(struct btf_decl_tag);
	default:
		return -1;
	}
}

/* The kernel's description: its types, in the order of their ids, and their names. */
struct taskshared_btf {
	const void *types;
	const void *end;
	const char *strings;
};

static int __init taskshared_btf_open(struct taskshared_btf *btf)
{
	const struct btf_header *head = (const void *)taskshared_symbol_addr("__start_BTF");
	const void *sections;

	if (!head || head->magic != BTF_MAGIC)
		return -ENODATA;
	sections = (const void *)head + head->hdr_len;
	btf->types = sections + head->type_off;
	btf->end = btf->types + head->type_len;
	btf->strings = sections + head->str_off;
	return 0;
}

/* The record behind this one; NULL if its kind is not known. */
static const void *__init taskshared_btf_next(const struct btf_type *type)
{
	int tail = taskshared_btf_tail(type);

	return tail < 0 ? NULL : (const void *)(type + 1) + tail;
}

/* The type with that id; NULL if there is none. The first one has id 1. */
static const struct btf_type *__init taskshared_btf_type(const struct taskshared_btf *btf, u32 id)
{
	const void *at;

	for (at = btf->types; at && at < btf->end; at = taskshared_btf_next(at))
		if (!--id)
			return at;
	return NULL;
}

/* Is the type of that kind? An integer must be as large as an unsigned int. */
static bool __init taskshared_btf_is(const struct taskshared_btf *btf, u32 id, u32 kind)
{
	const struct btf_type *type = taskshared_btf_type(btf, id);

	return type && BTF_INFO_KIND(type->info) == kind &&
	       (kind != BTF_KIND_INT || type->size == sizeof(unsigned int));
}

/* Byte offset of a member, or an error; bit fields are none that anybody asks for. */
static int __init taskshared_btf_offset(const struct taskshared_btf *btf,
					const struct btf_type *type, const char *name, u32 kind)
{
	const struct btf_member *member = (const void *)(type + 1);
	unsigned int i;
	u32 bits;

	for (i = 0; i < BTF_INFO_VLEN(type->info); i++, member++) {
		if (strcmp(btf->strings + member->name_off, name))
			continue;
		bits = member->offset;
		if (BTF_INFO_KFLAG(type->info)) {
			if (BTF_MEMBER_BITFIELD_SIZE(bits))
				return -EINVAL;
			bits = BTF_MEMBER_BIT_OFFSET(bits);
		}
		return taskshared_btf_is(btf, member->type, kind) ? bits / 8 : -EINVAL;
	}
	return -ENOENT;
}

/**
 * taskshared_btf_member() - offset of a member in a structure of the kernel
 * @structure: its name
 * @member: not inside an anonymous structure or union
 * @kind: BTF_KIND_* of the member's type; BTF_KIND_INT: of 4 bytes
 *
 * Context: process context; walks some megabytes.
 * Return: the offset in bytes, or
 * -ENODATA: the kernel has no BTF
 * -ENOENT: no structure of that name has the member
 * -EINVAL: its type is of another kind
 * -ENOTUNIQ: several have it, at different offsets
 * -EOPNOTSUPP: the BTF has a kind of type that this code does not know
 */
int __init taskshared_btf_member(const char *structure, const char *member, u32 kind)
{
	struct taskshared_btf btf;
	int found = -ENOENT;
	const void *at;
	int ret;

	ret = taskshared_btf_open(&btf);
	if (ret)
		return ret;

	for (at = btf.types; at && at < btf.end; at = taskshared_btf_next(at)) {
		const struct btf_type *type = at;

		if (BTF_INFO_KIND(type->info) != BTF_KIND_STRUCT ||
		    strcmp(btf.strings + type->name_off, structure))
			continue;
		ret = taskshared_btf_offset(&btf, type, member, kind);
		if (ret == -ENOENT || ret == found)
			continue;
		if (ret < 0 || found >= 0)
			return ret < 0 ? ret : -ENOTUNIQ;
		found = ret;
	}
	return at ? found : -EOPNOTSUPP;
}
