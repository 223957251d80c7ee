// SPDX-License-Identifier: GPL-2.0-only
/*
 * sched_yield() inside a delay: ends it like the yield call, and skips the system
 * call itself, which would forfeit the thread's place in the queue.
 */

#include <linux/errno.h>
#include <linux/ftrace.h>
#include <linux/printk.h>
#include <linux/utsname.h>

#include "arch.h"
#include "compat.h"
#include "slot.h"
#include "symbol.h"
#include "yield.h"

/* Entry of the system call, task context. */
static void notrace taskshared_at_yield(unsigned long ip, unsigned long parent_ip,
					struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	if (unlikely(taskshared_slot_cut(TASKSHARED_YIELDED)))
		ftrace_regs_set_instruction_pointer(fregs,
						    (unsigned long)taskshared_arch_skipped);
}

static struct ftrace_ops taskshared_yield_ops = {
	.func = taskshared_at_yield,
	.flags = FTRACE_OPS_FL_IPMODIFY,
};

int taskshared_yield_init(void)
{
	unsigned long addr = taskshared_symbol_addr(taskshared_arch_sched_yield);
	int ret;

	ret = addr ? ftrace_set_filter_ip(&taskshared_yield_ops, addr, 0, 1) : -ENOENT;
	if (ret)
		pr_err("Linux %s: %s cannot be hooked (error %d)\n", utsname()->release,
		       taskshared_arch_sched_yield, ret);
	return ret;
}

void taskshared_yield_exit(void)
{
	ftrace_free_filter(&taskshared_yield_ops);
}

int taskshared_yield_arm(void)
{
	return register_ftrace_function(&taskshared_yield_ops);
}

int taskshared_yield_disarm(void)
{
	return unregister_ftrace_function(&taskshared_yield_ops);
}
