// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hooks, armed only while a thread has a slot:
 *
 *	- schedule(), called on the way from an interrupt to user mode: the
 *	  decision, see hook.c.
 *	- sched_yield(): ends a delay, see yield.c.
 *	- the tracepoints of exit and exec: the thread leaves its slot.
 *	- the tracepoint of signal delivery: a delay ends, and a request is taken back.
 *	- the die notifiers, called at a breakpoint in user mode: a delay ends.
 */

#include <linux/kdebug.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/utsname.h>
#include <linux/workqueue.h>

#include "arch.h"
#include "cap.h"
#include "compat.h"
#include "health.h"
#include "hook.h"
#include "probes.h"
#include "slot.h"
#include "yield.h"

/*
 * Protects taskshared_armed and taskshared_stuck; taskshared_users changes from 0 to 1
 * under it only.
 */
static DEFINE_MUTEX(taskshared_probes_lock);
static bool taskshared_armed;
static bool taskshared_stuck; /* a hook could not be taken away */
static atomic_t taskshared_users = ATOMIC_INIT(0);

static void taskshared_disarm_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(taskshared_disarm_later, taskshared_disarm_work);

static void taskshared_exit_probe(TASKSHARED_EXIT_PROBE_ARGS)
{
	taskshared_slot_leave(TWA_NONE);
}

static void taskshared_exec_probe(void *data, struct task_struct *task, pid_t old_pid,
				  struct linux_binprm *bprm)
{
	taskshared_slot_leave(TWA_RESUME);
}

/* A handler may be about to run, or the process to die: not on granted time. */
static void taskshared_signal_probe(void *data, int sig, struct kernel_siginfo *info,
				    struct k_sigaction *action)
{
	bool handled = action->sa.sa_handler != SIG_DFL && action->sa.sa_handler != SIG_IGN;

	taskshared_slot_signal(handled);
}

/* What belongs to a breakpoint, the work of a uprobe, is not done on granted time. */
static int taskshared_die(struct notifier_block *notifier, unsigned long event, void *args)
{
	if (taskshared_arch_breakpoint(event, args))
		taskshared_slot_cut(TASKSHARED_ENDED);
	return NOTIFY_DONE;
}

/* Before that of uprobes, which stops the chain. */
static struct notifier_block taskshared_die_notifier = {
	.notifier_call = taskshared_die,
	.priority = INT_MAX,
};

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tp;
} taskshared_tracepoints[] = {
	{ "sched_process_exit", taskshared_exit_probe },
	{ "sched_process_exec", taskshared_exec_probe },
	{ "signal_deliver", taskshared_signal_probe },
};

static int taskshared_arm_tracepoints(void)
{
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(taskshared_tracepoints); i++) {
		ret = tracepoint_probe_register(taskshared_tracepoints[i].tp,
						taskshared_tracepoints[i].probe, NULL);
		if (ret)
			goto undo;
	}
	return 0;
undo:
	while (i--)
		tracepoint_probe_unregister(taskshared_tracepoints[i].tp,
					    taskshared_tracepoints[i].probe, NULL);
	tracepoint_synchronize_unregister();
	return ret;
}

static void taskshared_disarm_tracepoints(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(taskshared_tracepoints); i++)
		tracepoint_probe_unregister(taskshared_tracepoints[i].tp,
					    taskshared_tracepoints[i].probe, NULL);
	tracepoint_synchronize_unregister();
}

/* A hook that cannot be taken away keeps the module's text for ever. */
static void taskshared_must_disarm(const char *what, int ret)
{
	if (!ret)
		return;
	pr_err("the hook of %s cannot be taken away (error %d): the module stays\n", what, ret);
	__module_get(THIS_MODULE);
	taskshared_stuck = true;
}

/*
 * For who is about to free the module's text, where a reference does not help any more:
 * does not return while something may still call into it.
 */
static void taskshared_stay_if_stuck(void)
{
	while (taskshared_stuck)
		schedule_timeout_idle(MAX_SCHEDULE_TIMEOUT);
}

static int taskshared_arm(void)
{
	int ret;

	lockdep_assert_held(&taskshared_probes_lock);

	/* They would be registered without an error, and never be called. */
	if (taskshared_health_switched_off())
		return -EAGAIN;
	taskshared_health_restart();

	/* Exit and exec first: a thread that goes live must be able to leave. */
	ret = taskshared_arm_tracepoints();
	if (ret)
		return ret;
	ret = register_die_notifier(&taskshared_die_notifier);
	if (ret)
		goto tracepoints;
	preempt_notifier_inc();
	ret = taskshared_yield_arm();
	if (ret)
		goto notifiers;
	ret = taskshared_hook_arm();
	if (ret)
		goto yield;
	taskshared_armed = true;
	return 0;

yield:
	taskshared_must_disarm("sched_yield()", taskshared_yield_disarm());
notifiers:
	preempt_notifier_dec();
	unregister_die_notifier(&taskshared_die_notifier);
tracepoints:
	taskshared_disarm_tracepoints();
	return ret;
}

static void taskshared_disarm(void)
{
	lockdep_assert_held(&taskshared_probes_lock);

	taskshared_must_disarm("schedule()", taskshared_hook_disarm());
	taskshared_must_disarm("sched_yield()", taskshared_yield_disarm());
	preempt_notifier_dec();
	unregister_die_notifier(&taskshared_die_notifier);
	taskshared_disarm_tracepoints();
	taskshared_armed = false;
}

/**
 * taskshared_probes_get() - have the hooks armed
 *
 * Context: process context, mmap_lock not held: arming takes cpu_hotplug_lock,
 * inside which others take mmap_lock.
 * Return: 0, or why they cannot be; -EINTR: current was killed.
 */
int taskshared_probes_get(void)
{
	int ret = 0;

	if (atomic_inc_not_zero(&taskshared_users))
		return 0;

	/* Who holds it may wait for a Tasks RCU grace period. */
	if (mutex_lock_killable(&taskshared_probes_lock))
		return -EINTR;
	if (!taskshared_armed)
		ret = taskshared_arm();
	if (!ret)
		atomic_inc(&taskshared_users);
	mutex_unlock(&taskshared_probes_lock);
	return ret;
}

/* The hooks stay armed for a second: programs come and go, text patching is dear. */
void taskshared_probes_put(void)
{
	if (atomic_dec_and_test(&taskshared_users))
		schedule_delayed_work(&taskshared_disarm_later, HZ);
}

static void taskshared_disarm_work(struct work_struct *work)
{
	mutex_lock(&taskshared_probes_lock);
	if (taskshared_armed && !atomic_read(&taskshared_users))
		taskshared_disarm();
	mutex_unlock(&taskshared_probes_lock);
}

void taskshared_probes_show(struct seq_file *m)
{
	seq_printf(m, "site %s\nhook %s\narmed %d\n", taskshared_hook_site(),
		   taskshared_hook_name(), READ_ONCE(taskshared_armed));
}

/* The one line at load. */
void taskshared_probes_announce(void)
{
	pr_info("Linux %s, hooked at %s in %s, cap %u us\n", utsname()->release,
		taskshared_hook_what(), taskshared_hook_site(),
		taskshared_cap_ns() / (u32)NSEC_PER_USEC);
}

static void taskshared_match_tracepoint(struct tracepoint *tp, void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(taskshared_tracepoints); i++)
		if (!strcmp(tp->name, taskshared_tracepoints[i].name))
			taskshared_tracepoints[i].tp = tp;
}

static int taskshared_find_tracepoints(void)
{
	unsigned int i;

	for_each_kernel_tracepoint(taskshared_match_tracepoint, NULL);
	for (i = 0; i < ARRAY_SIZE(taskshared_tracepoints); i++) {
		if (taskshared_tracepoints[i].tp)
			continue;
		pr_err("Linux %s has no tracepoint %s\n", utsname()->release,
		       taskshared_tracepoints[i].name);
		return -ENOENT;
	}
	return 0;
}

/* Arm everything once, so that what cannot be armed is known at load. */
static int taskshared_try_arming(void)
{
	int ret;

	mutex_lock(&taskshared_probes_lock);
	ret = taskshared_arm();
	if (!ret)
		taskshared_disarm();
	mutex_unlock(&taskshared_probes_lock);
	if (ret == -EBUSY)
		pr_err("the hooks cannot be armed: something else, such as a livepatch, redirects schedule() or sched_yield()\n");
	else if (ret == -EAGAIN)
		pr_err("the hooks cannot be armed: %s\n",
		       taskshared_health_text(taskshared_health_switched_off()));
	else if (ret)
		pr_err("the hooks cannot be armed (error %d)\n", ret);
	return ret;
}

int taskshared_probes_init(void)
{
	int ret;

	ret = taskshared_find_tracepoints();
	if (ret)
		return ret;

	ret = taskshared_hook_init();
	if (ret)
		return ret;

	ret = taskshared_yield_init();
	if (ret)
		goto hook;
	ret = taskshared_try_arming();
	if (ret)
		goto yield;
	return 0;

yield:
	taskshared_stay_if_stuck();
	taskshared_yield_exit();
hook:
	taskshared_hook_exit();
	return ret;
}

/* No thread has a slot any more, and none can get one. */
void taskshared_probes_exit(void)
{
	cancel_delayed_work_sync(&taskshared_disarm_later);

	mutex_lock(&taskshared_probes_lock);
	if (taskshared_armed)
		taskshared_disarm();
	mutex_unlock(&taskshared_probes_lock);

	taskshared_stay_if_stuck();
	taskshared_yield_exit();
	taskshared_hook_exit();
}
