// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where delays are decided, and by which hook. schedule() is called in many
 * places; the one that counts is on the way from an interrupt or exception to
 * user mode. A probe on that very call costs nothing elsewhere. Where its text
 * must not be probed, a hook at the entry of schedule() compares return addresses.
 *
 * No function is ever called through an address found here.
 */

#include <linux/errno.h>
#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <linux/utsname.h>

#include "arch.h"
#include "delay.h"
#include "hook.h"
#include "symbol.h"

/*
 * Functions that call schedule() on the way from an interrupt to user mode, in
 * the order they are looked for; the first one that is there, calls it just once,
 * and takes a hook is used. exit_to_user_mode_loop() is not one of them: newer
 * kernels have a copy of it out of line that interrupts do not use.
 */
static const char *const taskshared_sites[] = {
	/* up to 6.7; an ordinary function, of system calls too */
	"exit_to_user_mode_prepare",
	/* 6.8 moved the loop into headers and so into .noinstr.text */
	"irqentry_exit_to_user_mode",
	/* 7.0 inlined that one too */
	"irqentry_exit",
};

/* In the order they are tried: by what they cost others. */
static const struct taskshared_hook *const taskshared_hooks[] = {
	&taskshared_hook_call,
	&taskshared_hook_ftrace,
	&taskshared_hook_kprobe,
};

static char *taskshared_hook_param = "auto";
module_param_named(hook, taskshared_hook_param, charp, 0444);
MODULE_PARM_DESC(hook, "How to hook schedule(): auto (default), call, ftrace, kprobe");

/* Constant once taskshared_hook_init() has returned. */
static const char *taskshared_site;
static const struct taskshared_hook *taskshared_hook;
static struct taskshared_call taskshared_call;
unsigned long taskshared_schedule_addr;

/**
 * taskshared_hook_thread() - a thread that has a slot is about to enter schedule()
 * @thread: current's
 * @caller: where schedule() will return to
 *
 * Context: task context.
 * Return: true if schedule() is to be skipped.
 */
bool taskshared_hook_thread(struct taskshared_thread *thread, unsigned long caller)
{
	bool decides, skip;
	unsigned long flags;

	/* Most threads leave the CPU by themselves, with nothing going on. */
	if (caller != taskshared_call.ret && !READ_ONCE(thread->delay.busy))
		return false;

	local_irq_save(flags);
	decides = caller == taskshared_call.ret && taskshared_arch_from_interrupt();
	skip = decides && taskshared_delay_decide(thread);
	if (!skip)
		taskshared_delay_pass(thread);
	thread->delay.seen = decides;
	local_irq_restore(flags);
	return skip;
}
NOKPROBE_SYMBOL(taskshared_hook_thread);

static bool taskshared_find_call(const char *site)
{
	unsigned long addr, start, size;
	int ret;

	addr = taskshared_symbol_addr(site);
	if (!addr)
		return false;
	if (!taskshared_symbol_bounds(addr, &start, &size)) {
		pr_notice("%s: its size is not known\n", site);
		return false;
	}
	ret = taskshared_arch_find_call(start, size, taskshared_schedule_addr, &taskshared_call);
	if (ret)
		pr_notice("%s: %s\n", site, ret == -EEXIST ?
			  "calls schedule() more than once" :
			  "no call of schedule() found in it (another probe on it, or calls go through thunks)");
	return !ret;
}

static bool taskshared_hook_wanted(const struct taskshared_hook *hook)
{
	return sysfs_streq(taskshared_hook_param, "auto") ||
	       sysfs_streq(taskshared_hook_param, hook->name);
}

static bool taskshared_try_site(const char *site)
{
	unsigned int i;
	int ret;

	if (!taskshared_find_call(site))
		return false;

	for (i = 0; i < ARRAY_SIZE(taskshared_hooks); i++) {
		if (!taskshared_hook_wanted(taskshared_hooks[i]))
			continue;
		ret = taskshared_hooks[i]->prepare(&taskshared_call);
		if (!ret) {
			taskshared_site = site;
			taskshared_hook = taskshared_hooks[i];
			return true;
		}
		pr_debug("%s: hook %s refused (error %d)\n", site, taskshared_hooks[i]->name, ret);
	}
	return false;
}

static int taskshared_check_hook_param(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(taskshared_hooks); i++)
		if (taskshared_hook_wanted(taskshared_hooks[i]))
			return 0;
	pr_err("hook=%s is not known: auto, call, ftrace, kprobe\n", taskshared_hook_param);
	return -EINVAL;
}

int taskshared_hook_init(void)
{
	unsigned int i;
	int ret;

	ret = taskshared_check_hook_param();
	if (ret)
		return ret;

	taskshared_schedule_addr = taskshared_symbol_addr("schedule");
	if (!taskshared_schedule_addr) {
		pr_err("Linux %s: schedule() not found: kprobes or kallsyms are off\n",
		       utsname()->release);
		return -ENOENT;
	}
	for (i = 0; i < ARRAY_SIZE(taskshared_sites); i++)
		if (taskshared_try_site(taskshared_sites[i]))
			return 0;

	pr_err("Linux %s: no way found (hook=%s) to decide at schedule() on return from interrupt; looked in:\n",
	       utsname()->release, taskshared_hook_param);
	for (i = 0; i < ARRAY_SIZE(taskshared_sites); i++)
		pr_err("  %s\n", taskshared_sites[i]);
	return -ENOENT;
}

void taskshared_hook_exit(void)
{
	taskshared_hook->drop();
}

int taskshared_hook_arm(void)
{
	return taskshared_hook->arm();
}

int taskshared_hook_disarm(void)
{
	return taskshared_hook->disarm();
}

bool taskshared_hook_needs_kprobes(void)
{
	return taskshared_hook->kprobes;
}

const char *taskshared_hook_name(void)
{
	return taskshared_hook->name;
}

const char *taskshared_hook_what(void)
{
	return taskshared_hook->what;
}

const char *taskshared_hook_site(void)
{
	return taskshared_site;
}
