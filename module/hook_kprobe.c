// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hooks by kprobe: on the instruction that calls schedule() on the way from an
 * interrupt to user mode, and at the entry of schedule().
 */

#include <linux/kprobes.h>
#include <linux/ptrace.h>

#include "arch.h"
#include "delay.h"
#include "hook.h"
#include "slot.h"

/*
 * That there is a handler after the instruction is what allows the one before it
 * to change the instruction pointer: it rules out a jump-optimised probe, and
 * makes one that sits on ftrace claim the right (and so exclude a livepatch).
 */
static void taskshared_hook_after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}
NOKPROBE_SYMBOL(taskshared_hook_after);

/* Where the call at which the probe sits returns to. */
static unsigned long taskshared_call_ret;

/* Breakpoint on the call: NMI-like, interrupts off. */
static int taskshared_at_call(struct kprobe *probe, struct pt_regs *regs)
{
	struct taskshared_thread *thread = __this_cpu_read(taskshared_running);

	if (likely(!thread))
		return 0;
	if (taskshared_arch_from_interrupt() && taskshared_delay_decide(thread)) {
		instruction_pointer_set(regs, taskshared_call_ret);
		return 1;
	}
	taskshared_delay_pass(thread);
	thread->delay.seen = true;
	return 0;
}
NOKPROBE_SYMBOL(taskshared_at_call);

/* Entry of schedule(), from anywhere: task context, preemption off. */
static int taskshared_at_entry(struct kprobe *probe, struct pt_regs *regs)
{
	if (likely(!taskshared_hook_entry(taskshared_arch_return_address(regs))))
		return 0;
	instruction_pointer_set(regs, (unsigned long)taskshared_arch_skipped);
	return 1;
}
NOKPROBE_SYMBOL(taskshared_at_entry);

static struct kprobe taskshared_schedule_probe;

/* A struct kprobe cannot be registered twice as it is. */
static int taskshared_register_one(void *addr, kprobe_pre_handler_t handler,
				   kprobe_post_handler_t after)
{
	taskshared_schedule_probe = (struct kprobe) {
		.addr = addr,
		.pre_handler = handler,
		.post_handler = after,
		.flags = KPROBE_FLAG_DISABLED,
	};
	return register_kprobe(&taskshared_schedule_probe);
}

/*
 * Joining another probe that is armed without a handler after the instruction
 * would be a fault: kprobes on ftrace, at least up to 7.3, then forgets which
 * way that one was armed. So look first with a probe that has none either.
 */
static int taskshared_register(void *addr, kprobe_pre_handler_t handler)
{
	bool alone;
	int ret;

	ret = taskshared_register_one(addr, handler, NULL);
	if (ret)
		return ret;
	alone = list_empty(&taskshared_schedule_probe.list);
	unregister_kprobe(&taskshared_schedule_probe);
	if (!alone)
		return -EBUSY;
	return taskshared_register_one(addr, handler, taskshared_hook_after);
}

/* That @call->site is an instruction of its own is checked by register_kprobe(). */
static int taskshared_prepare_call(const struct taskshared_call *call)
{
	taskshared_call_ret = call->ret;
	return taskshared_register((void *)call->site, taskshared_at_call);
}

static int taskshared_prepare_entry(const struct taskshared_call *call)
{
	return taskshared_register((void *)taskshared_schedule_addr, taskshared_at_entry);
}

static void taskshared_drop(void)
{
	unregister_kprobe(&taskshared_schedule_probe);
}

static int taskshared_arm(void)
{
	int ret = enable_kprobe(&taskshared_schedule_probe);

	/* With all kprobes switched off it reports success and does nothing. */
	if (!ret && kprobe_disabled(&taskshared_schedule_probe))
		return -EAGAIN;
	return ret;
}

static int taskshared_disarm(void)
{
	return disable_kprobe(&taskshared_schedule_probe);
}

const struct taskshared_hook taskshared_hook_call = {
	.name = "call",
	.what = "the call of schedule()",
	.kprobes = true,
	.prepare = taskshared_prepare_call,
	.drop = taskshared_drop,
	.arm = taskshared_arm,
	.disarm = taskshared_disarm,
};

const struct taskshared_hook taskshared_hook_kprobe = {
	.name = "kprobe",
	.what = "the entry of schedule() (kprobe), called",
	.kprobes = true,
	.prepare = taskshared_prepare_entry,
	.drop = taskshared_drop,
	.arm = taskshared_arm,
	.disarm = taskshared_disarm,
};
