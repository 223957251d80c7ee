// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hook by ftrace at the entry of schedule(): the leanest one there, because ftrace
 * passes the return address and saves only the argument registers.
 */

#include <linux/ftrace.h>

#include "arch.h"
#include "compat.h"
#include "hook.h"

/* Task context. Only schedule() is traced, and nothing here calls it. */
static void notrace taskshared_at_function(unsigned long ip, unsigned long parent_ip,
					   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	if (unlikely(taskshared_hook_entry(parent_ip)))
		ftrace_regs_set_instruction_pointer(fregs,
						    (unsigned long)taskshared_arch_skipped);
}

static struct ftrace_ops taskshared_ftrace_ops = {
	.func = taskshared_at_function,
	/* The right to skip the function; one livepatch or other hook has it. */
	.flags = FTRACE_OPS_FL_IPMODIFY,
};

static int taskshared_prepare(const struct taskshared_call *call)
{
	return ftrace_set_filter_ip(&taskshared_ftrace_ops, taskshared_schedule_addr, 0, 1);
}

static void taskshared_drop(void)
{
	ftrace_free_filter(&taskshared_ftrace_ops);
}

static int taskshared_arm(void)
{
	return register_ftrace_function(&taskshared_ftrace_ops);
}

static int taskshared_disarm(void)
{
	return unregister_ftrace_function(&taskshared_ftrace_ops);
}

const struct taskshared_hook taskshared_hook_ftrace = {
	.name = "ftrace",
	.what = "the entry of schedule() (ftrace), called",
	.prepare = taskshared_prepare,
	.drop = taskshared_drop,
	.arm = taskshared_arm,
	.disarm = taskshared_disarm,
};
