/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses of kernel symbols: to probe at or to compare with, never to call. */
#ifndef _TASKSHARED_SYMBOL_H
#define _TASKSHARED_SYMBOL_H

#include <linux/types.h>

unsigned long taskshared_symbol_addr(const char *name);
bool taskshared_symbol_bounds(unsigned long addr, unsigned long *start, unsigned long *size);

#endif /* _TASKSHARED_SYMBOL_H */
