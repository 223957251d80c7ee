/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the processor architecture decides: how a call looks in memory,
 * what is at the entry of a function, and how to tell an interrupt from a system
 * call.
 */
#ifndef _TASKSHARED_ARCH_H
#define _TASKSHARED_ARCH_H

#include <linux/types.h>

struct die_args;
struct pt_regs;

/**
 * struct taskshared_call - a call instruction in the kernel's text
 * @site: address of the instruction
 * @ret: address it returns to
 */
struct taskshared_call {
	unsigned long site;
	unsigned long ret;
};

/* Entry point of the sched_yield() system call, native and compat. */
extern const char *const taskshared_arch_sched_yield;

int taskshared_arch_find_call(unsigned long start, unsigned long size,
			      unsigned long target, struct taskshared_call *call);
bool taskshared_arch_from_interrupt(void);
bool taskshared_arch_breakpoint(unsigned long event, const struct die_args *args);
unsigned long taskshared_arch_return_address(const struct pt_regs *regs);
long taskshared_arch_skipped(void);

#endif /* _TASKSHARED_ARCH_H */
