// SPDX-License-Identifier: GPL-2.0-only
/* Addresses of kernel symbols, by exported means. */

#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/string.h>

#include "symbol.h"

/**
 * taskshared_symbol_addr() - where a symbol is
 * @name: of a function or, where kallsyms knows data too, a variable
 *
 * register_kprobe() resolves the name before it checks whether the place may be
 * probed, so that even a refused registration yields the address. That of a
 * function which starts with ENDBR64 is the one behind it.
 *
 * Return: the address, 0 if there is no such symbol.
 */
unsigned long taskshared_symbol_addr(const char *name)
{
	struct kprobe probe = {
		.symbol_name = name,
		.flags = KPROBE_FLAG_DISABLED,
	};

	if (!register_kprobe(&probe))
		unregister_kprobe(&probe);
	return (unsigned long)probe.addr;
}

/**
 * taskshared_symbol_bounds() - the function that an address is in
 * @addr: the address
 * @start: out: first address of the function
 * @size: out: its size in bytes
 *
 * Return: false if it is not known.
 */
bool taskshared_symbol_bounds(unsigned long addr, unsigned long *start, unsigned long *size)
{
	char name[KSYM_SYMBOL_LEN];
	unsigned long offset;
	char *plus;

	sprint_symbol(name, addr);
	plus = strchr(name, '+');
	if (!plus || sscanf(plus, "+%lx/%lx", &offset, size) != 2)
		return false;
	*start = addr - offset;
	return true;
}
