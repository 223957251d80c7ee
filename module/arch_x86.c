// SPDX-License-Identifier: GPL-2.0-only
/* x86-64, see arch.h. */

#include <linux/errno.h>
#include <linux/kdebug.h>
#include <linux/kprobes.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>
#include <asm/text-patching.h>

#include "arch.h"

const char *const taskshared_arch_sched_yield = "__x64_sys_sched_yield";

/*
 * A kprobe by name sits behind the ENDBR64 that a function may start with, so
 * @target, which was found that way, may be this many bytes past the address
 * that is called.
 */
#define ENDBR_SIZE 4

/**
 * taskshared_arch_find_call() - find the one call of a function in another
 * @start: first address of the caller
 * @size: size of the caller in bytes
 * @target: the called function
 * @call: out: where the call is
 *
 * Looks for the bytes of a near call that lands on @target. That may hit the
 * middle of another instruction, with a chance of some 2^-32 per byte: who
 * probes at the address relies on register_kprobe() to check the boundary.
 *
 * Return: 0, -ENOENT if there is no such call, -EEXIST if there are several.
 */
int taskshared_arch_find_call(unsigned long start, unsigned long size,
			      unsigned long target, struct taskshared_call *call)
{
	unsigned long site, lands;
	u8 insn[CALL_INSN_SIZE];
	int found = 0;
	s32 disp;

	for (site = start; site + CALL_INSN_SIZE <= start + size; site++) {
		if (copy_from_kernel_nofault(insn, (void *)site, sizeof(insn)))
			return -ENOENT;
		if (insn[0] != CALL_INSN_OPCODE)
			continue;
		memcpy(&disp, insn + 1, sizeof(disp));
		lands = site + CALL_INSN_SIZE + disp;
		if (lands != target && lands + ENDBR_SIZE != target)
			continue;
		call->site = site;
		call->ret = site + CALL_INSN_SIZE;
		found++;
	}
	if (found > 1)
		return -EEXIST;
	return found ? 0 : -ENOENT;
}

/**
 * taskshared_arch_from_interrupt() - did current enter by interrupt or exception?
 *
 * The entry code leaves -1 where a system call leaves its number. rt_sigreturn, a
 * tracer that cancels a system call, and a call of number -1 leave -1 too: they are
 * taken for interrupts, which is harmless, a delay is granted some instructions later
 * than the interrupt that made it due.
 */
bool taskshared_arch_from_interrupt(void)
{
	return task_pt_regs(current)->orig_ax == -1UL;
}
NOKPROBE_SYMBOL(taskshared_arch_from_interrupt);

/* Is what the die notifiers are told of a breakpoint instruction in user mode? */
bool taskshared_arch_breakpoint(unsigned long event, const struct die_args *args)
{
	return event == DIE_INT3 && user_mode(args->regs);
}

/* Who called the function at whose entry @regs were taken. */
unsigned long taskshared_arch_return_address(const struct pt_regs *regs)
{
	return *(const unsigned long *)regs->sp;
}
NOKPROBE_SYMBOL(taskshared_arch_return_address);

/*
 * Stands in for a function that is skipped at its entry: returns 0 at once. A
 * task may be preempted in here: module exit waits for that with
 * synchronize_rcu_tasks().
 */
noinline notrace long taskshared_arch_skipped(void)
{
	barrier();
	return 0;
}
NOKPROBE_SYMBOL(taskshared_arch_skipped);
