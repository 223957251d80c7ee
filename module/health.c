// SPDX-License-Identifier: GPL-2.0-only
/*
 * What keeps the module from granting delays though it is loaded: others may switch
 * off, or put themselves in front of, what it hooks in by. That costs delays and
 * nothing else, but somebody should be able to see it.
 */

#include <linux/compiler.h>
#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/taskshared.h>

#include "arch.h"
#include "cap.h"
#include "health.h"
#include "hook.h"
#include "symbol.h"

/*
 * So many requests lost in a row, none decided on between them, mean that the hook is
 * not called. One that is preempted in the kernel, in a page fault for instance, is
 * lost too; whoever does nothing else may look like that, so it is a suspicion.
 */
#define TASKSHARED_LOST_ROW	16

DEFINE_PER_CPU(unsigned int, taskshared_lost);

/* The kernel's own switches; NULL where kallsyms does not know them. */
static const bool *taskshared_kprobes_disarmed __ro_after_init;
static const int *taskshared_ftrace_enabled __ro_after_init;

/**
 * taskshared_health_lost() - current leaves the CPU with a request nobody decided on
 *
 * Counts if it was on its way from an interrupt.
 *
 * Context: in the scheduler, interrupts off.
 */
void taskshared_health_lost(void)
{
	if (task_is_running(current) && taskshared_arch_from_interrupt())
		__this_cpu_inc(taskshared_lost);
}

/*
 * Of TASKSHARED_HEALTH_*: why the hooks, or some of them, are not called though they
 * are armed. Any context.
 */
u32 taskshared_health_switched_off(void)
{
	u32 health = 0;

	if (taskshared_hook_needs_kprobes() &&
	    taskshared_kprobes_disarmed && READ_ONCE(*taskshared_kprobes_disarmed))
		health |= TASKSHARED_HEALTH_KPROBES;
	if (taskshared_ftrace_enabled && !READ_ONCE(*taskshared_ftrace_enabled))
		health |= TASKSHARED_HEALTH_FTRACE;
	return health;
}
NOKPROBE_SYMBOL(taskshared_health_switched_off);

/* The hooks are armed anew: what was lost before says nothing. */
void taskshared_health_restart(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		WRITE_ONCE(per_cpu(taskshared_lost, cpu), 0);
}

static bool taskshared_health_losing(void)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (READ_ONCE(per_cpu(taskshared_lost, cpu)) >= TASKSHARED_LOST_ROW)
			return true;
	return false;
}

/* TASKSHARED_HEALTH_*. Any context. */
u32 taskshared_health(void)
{
	u32 health = taskshared_health_switched_off();

	if (taskshared_health_losing())
		health |= TASKSHARED_HEALTH_LOST;
	if (taskshared_cap_failed())
		health |= TASKSHARED_HEALTH_CAP;
	return health;
}

static const struct {
	u32 bit;
	const char *text;
} taskshared_health_texts[] = {
	{ TASKSHARED_HEALTH_KPROBES, "kprobes are switched off (debugfs: kprobes/enabled)" },
	{ TASKSHARED_HEALTH_FTRACE, "ftrace is switched off (sysctl kernel.ftrace_enabled)" },
	{ TASKSHARED_HEALTH_LOST,
	  "requests go unseen: something else seems to redirect schedule()" },
	{ TASKSHARED_HEALTH_CAP, "a CPU has no working timer (see the kernel log)" },
};

/* The first trouble of several, in words. */
const char *taskshared_health_text(u32 health)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(taskshared_health_texts); i++)
		if (health & taskshared_health_texts[i].bit)
			return taskshared_health_texts[i].text;
	return "ok";
}

/* A line for each trouble, or "ok". */
void taskshared_health_show(struct seq_file *m)
{
	u32 left = taskshared_health();

	do {
		const char *text = taskshared_health_text(left);

		seq_printf(m, "health %s\n", text);
		left &= left - 1;
	} while (left);
}

void __init taskshared_health_init(void)
{
	taskshared_kprobes_disarmed = (void *)taskshared_symbol_addr("kprobes_all_disarmed");
	taskshared_ftrace_enabled = (void *)taskshared_symbol_addr("ftrace_enabled");
}
