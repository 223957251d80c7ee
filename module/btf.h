/* SPDX-License-Identifier: GPL-2.0-only */
/* Where members of the running kernel's structures are, by its BTF. */
#ifndef _TASKSHARED_BTF_H
#define _TASKSHARED_BTF_H

#include <linux/types.h>

int taskshared_btf_member(const char *structure, const char *member, u32 kind);

#endif /* _TASKSHARED_BTF_H */
