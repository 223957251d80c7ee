// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where members of the running kernel's structures are. The kernel carries a
 * description of all its types (CONFIG_DEBUG_INFO_BTF), made of the very objects it
 * was linked from; the offset of a private structure's member is read from there,
 * as BPF programs do.
 */

#include <linux/btf.h>
#include <linux/errno.h>
#include <linux/string.h>

#include "btf.h"
#include "symbol.h"

/* Bytes of a type's record behind its head; -1 for a kind that is not known. */
static int taskshared_btf_tail(const struct btf_type *type)
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

/* Byte offset of a member, or -ENOENT; bit fields are none that anybody asks for. */
static int taskshared_btf_offset(const struct btf_type *type, const char *strings,
				 const char *name)
{
	const struct btf_member *member = (const void *)(type + 1);
	unsigned int i;
	u32 bits;

	for (i = 0; i < BTF_INFO_VLEN(type->info); i++, member++) {
		if (strcmp(strings + member->name_off, name))
			continue;
		bits = member->offset;
		if (BTF_INFO_KFLAG(type->info)) {
			if (BTF_MEMBER_BITFIELD_SIZE(bits))
				return -ENOENT;
			bits = BTF_MEMBER_BIT_OFFSET(bits);
		}
		return bits / 8;
	}
	return -ENOENT;
}

/**
 * taskshared_btf_member() - offset of a member in a structure of the kernel
 * @structure: its name
 * @member: not inside an anonymous structure or union
 *
 * Of several structures with the name the first one that has the member counts.
 *
 * Context: process context; walks some megabytes.
 * Return: the offset in bytes, -ENODATA if the kernel has no BTF, -ENOENT if the
 * BTF has no such member (or a kind of type that this code does not know).
 */
int taskshared_btf_member(const char *structure, const char *member)
{
	const struct btf_header *head = (const void *)taskshared_symbol_addr("__start_BTF");
	const char *strings;
	const void *at, *end;
	int tail, offset;

	if (!head || head->magic != BTF_MAGIC)
		return -ENODATA;
	at = (const void *)head + head->hdr_len + head->type_off;
	end = at + head->type_len;
	strings = (const void *)head + head->hdr_len + head->str_off;

	for (; at < end; at += sizeof(struct btf_type) + tail) {
		const struct btf_type *type = at;

		tail = taskshared_btf_tail(type);
		if (tail < 0)
			break;
		if (BTF_INFO_KIND(type->info) != BTF_KIND_STRUCT ||
		    strcmp(strings + type->name_off, structure))
			continue;
		offset = taskshared_btf_offset(type, strings, member);
		if (offset >= 0)
			return offset;
	}
	return -ENOENT;
}
