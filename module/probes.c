// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hooks, armed only while a thread has a slot:
 *
 *	- schedule(), called on the way from an interrupt to user mode: the
 *	  decision. Either a probe on that very call instruction, which costs
 *	  nothing elsewhere, or, where its text must not be probed, one at the entry
 *	  of schedule() that compares the return address.
 *	- sched_yield(): ends a delay like the yield call, without forfeiting the
 *	  thread's place in the queue.
 *	- the tracepoints of exit and exec: the thread leaves its slot.
 *	- the tracepoints of wake-up, migration and priority inheritance: a task
 *	  above the fair class comes to a CPU.
 *
 * No function is ever called through an address found here.
 */

#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/utsname.h>
#include <linux/workqueue.h>

#include "arch.h"
#include "cap.h"
#include "compat.h"
#include "delay.h"
#include "probes.h"
#include "slot.h"
#include "waiter.h"

enum taskshared_where {
	TASKSHARED_AT_CALL,
	TASKSHARED_AT_ENTRY,
};

/**
 * struct taskshared_site - a candidate for the decision
 * @caller: the function that calls schedule() on the way from an interrupt to
 *	user mode
 * @where: what can be probed
 */
struct taskshared_site {
	const char *caller;
	enum taskshared_where where;
};

/*
 * In the order they are tried: the first one that is there, calls schedule() just
 * once, and takes the probe. exit_to_user_mode_loop() is not one of them: newer
 * kernels have a copy of it out of line that interrupts do not use.
 */
static const struct taskshared_site taskshared_sites[] = {
	/* up to 6.8; an ordinary function */
	{ "exit_to_user_mode_prepare", TASKSHARED_AT_CALL },
	/* 6.8 moved the loop into headers and so into .noinstr.text */
	{ "irqentry_exit_to_user_mode", TASKSHARED_AT_ENTRY },
	/* 7.0 inlined that one too */
	{ "irqentry_exit", TASKSHARED_AT_ENTRY },
};

/* Constant once taskshared_probes_init() has returned. */
static const struct taskshared_site *taskshared_site;
static struct taskshared_call taskshared_call;

/* Protects taskshared_armed; taskshared_users changes from 0 to 1 under it only. */
static DEFINE_MUTEX(taskshared_probes_lock);
static bool taskshared_armed;
static atomic_t taskshared_users = ATOMIC_INIT(0);

static void taskshared_disarm_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(taskshared_disarm_later, taskshared_disarm_work);

/* Breakpoint on the call: NMI-like, interrupts off. */
static int taskshared_at_call(struct kprobe *probe, struct pt_regs *regs)
{
	struct taskshared_thread *thread = __this_cpu_read(taskshared_running);

	if (likely(!thread))
		return 0;
	if (taskshared_arch_from_interrupt() && taskshared_delay_decide(thread)) {
		taskshared_arch_skip_call(regs, &taskshared_call);
		return 1;
	}
	taskshared_delay_pass(thread);
	return 0;
}
NOKPROBE_SYMBOL(taskshared_at_call);

/* Entry of schedule(), from anywhere: task context, preemption off. */
static int taskshared_at_entry(struct kprobe *probe, struct pt_regs *regs)
{
	struct taskshared_thread *thread = __this_cpu_read(taskshared_running);
	unsigned long flags;
	bool skip;

	if (likely(!thread))
		return 0;

	local_irq_save(flags);
	skip = taskshared_arch_return_address(regs) == taskshared_call.ret &&
	       taskshared_delay_decide(thread);
	if (!skip)
		taskshared_delay_pass(thread);
	local_irq_restore(flags);

	if (skip)
		taskshared_arch_skip_function(regs);
	return skip;
}
NOKPROBE_SYMBOL(taskshared_at_entry);

/* Entry of the system call: task context, preemption off. */
static int taskshared_at_yield(struct kprobe *probe, struct pt_regs *regs)
{
	if (!taskshared_slot_yield())
		return 0;
	taskshared_arch_skip_function(regs);
	return 1;
}
NOKPROBE_SYMBOL(taskshared_at_yield);

/*
 * That there is one is what allows the handler before it to change the
 * instruction pointer: it rules out a jump-optimised probe, and makes one that
 * sits on ftrace claim the right (and so exclude a livepatch).
 */
static void taskshared_after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}
NOKPROBE_SYMBOL(taskshared_after);

static struct kprobe taskshared_schedule_probe = {
	.post_handler = taskshared_after,
};

static struct kprobe taskshared_yield_probe = {
	.symbol_name = taskshared_arch_sched_yield,
	.pre_handler = taskshared_at_yield,
	.post_handler = taskshared_after,
};

static void taskshared_exit_probe(TASKSHARED_EXIT_PROBE_ARGS)
{
	taskshared_slot_leave(TWA_NONE);
}

static void taskshared_exec_probe(void *data, struct task_struct *task, pid_t old_pid,
				  struct linux_binprm *bprm)
{
	taskshared_slot_leave(TWA_RESUME);
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tp;
} taskshared_tracepoints[] = {
	{ "sched_process_exit", taskshared_exit_probe },
	{ "sched_process_exec", taskshared_exec_probe },
	{ "sched_wakeup", taskshared_waiter_wakeup },
	{ "sched_wakeup_new", taskshared_waiter_wakeup },
	{ "sched_migrate_task", taskshared_waiter_migrate },
	{ "sched_pi_setprio", taskshared_waiter_boost },
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

static int taskshared_arm(void)
{
	int ret;

	lockdep_assert_held(&taskshared_probes_lock);

	/* Exit and exec first: a thread that goes live must be able to leave. */
	ret = taskshared_arm_tracepoints();
	if (ret)
		return ret;
	preempt_notifier_inc();
	ret = enable_kprobe(&taskshared_yield_probe);
	if (ret)
		goto tracepoints;
	ret = enable_kprobe(&taskshared_schedule_probe);
	if (ret)
		goto yield;
	taskshared_armed = true;
	return 0;

yield:
	disable_kprobe(&taskshared_yield_probe);
tracepoints:
	preempt_notifier_dec();
	taskshared_disarm_tracepoints();
	return ret;
}

static void taskshared_disarm(void)
{
	lockdep_assert_held(&taskshared_probes_lock);

	taskshared_armed = false;
	disable_kprobe(&taskshared_schedule_probe);
	disable_kprobe(&taskshared_yield_probe);
	preempt_notifier_dec();
	taskshared_disarm_tracepoints();
}

/**
 * taskshared_probes_get() - have the hooks armed
 *
 * Context: process context, mmap_lock not held: arming takes cpu_hotplug_lock,
 * inside which others take mmap_lock.
 * Return: 0, or why they cannot be.
 */
int taskshared_probes_get(void)
{
	int ret = 0;

	if (atomic_inc_not_zero(&taskshared_users))
		return 0;

	mutex_lock(&taskshared_probes_lock);
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
	seq_printf(m, "site %s\nhook %s\narmed %d\nmissed %lu\n", taskshared_site->caller,
		   taskshared_site->where == TASKSHARED_AT_CALL ? "call" : "entry",
		   READ_ONCE(taskshared_armed),
		   taskshared_schedule_probe.nmissed + taskshared_yield_probe.nmissed);
}

/* The one line at load. */
void taskshared_probes_announce(void)
{
	pr_info("Linux %s, hooked at %s schedule() in %s, cap %u us\n", utsname()->release,
		taskshared_site->where == TASKSHARED_AT_CALL ? "the call of" : "the entry of",
		taskshared_site->caller, taskshared_cap_ns() / (u32)NSEC_PER_USEC);
}

/*
 * register_kprobe() resolves the name before it checks whether the place may be
 * probed, so that even a refused registration yields the address.
 */
static unsigned long taskshared_lookup(const char *name)
{
	struct kprobe probe = {
		.symbol_name = name,
		.flags = KPROBE_FLAG_DISABLED,
	};

	if (!register_kprobe(&probe))
		unregister_kprobe(&probe);
	return (unsigned long)probe.addr;
}

/* First address and size of the function that @addr is in. */
static bool taskshared_function_bounds(unsigned long addr, unsigned long *start,
				       unsigned long *size)
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

static int taskshared_register_schedule_probe(void)
{
	struct kprobe *probe = &taskshared_schedule_probe;

	if (taskshared_site->where == TASKSHARED_AT_CALL) {
		probe->addr = (kprobe_opcode_t *)taskshared_call.site;
		probe->pre_handler = taskshared_at_call;
	} else {
		probe->symbol_name = "schedule";
		probe->pre_handler = taskshared_at_entry;
	}
	return register_kprobe(probe);
}

/* Try one row of the table; says why not unless the function is just absent. */
static int taskshared_try_site(const struct taskshared_site *site, unsigned long schedule_addr)
{
	unsigned long addr, start, size;
	int ret;

	addr = taskshared_lookup(site->caller);
	if (!addr)
		return -ENOENT;
	if (!taskshared_function_bounds(addr, &start, &size)) {
		pr_notice("%s: its size is not known\n", site->caller);
		return -ENOENT;
	}
	ret = taskshared_arch_find_call(start, size, schedule_addr, &taskshared_call);
	if (ret) {
		pr_notice("%s: %s\n", site->caller, ret == -EEXIST ?
			  "calls schedule() more than once" : "no call of schedule() found in it");
		return ret;
	}
	taskshared_site = site;
	ret = taskshared_register_schedule_probe();
	if (ret)
		pr_notice("%s: the probe was refused (error %d)\n", site->caller, ret);
	return ret;
}

static int taskshared_find_site(void)
{
	unsigned long schedule_addr = taskshared_lookup("schedule");
	unsigned int i;

	if (!schedule_addr) {
		pr_err("Linux %s: schedule() not found: kprobes or kallsyms are off\n",
		       utsname()->release);
		return -ENOENT;
	}
	for (i = 0; i < ARRAY_SIZE(taskshared_sites); i++)
		if (!taskshared_try_site(&taskshared_sites[i], schedule_addr))
			return 0;

	pr_err("Linux %s: no way found to decide at schedule() on return from interrupt; tried:\n",
	       utsname()->release);
	for (i = 0; i < ARRAY_SIZE(taskshared_sites); i++)
		pr_err("  %s\n", taskshared_sites[i].caller);
	return -ENOENT;
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
	if (ret)
		pr_err("the hooks cannot be armed (error %d)%s\n", ret, ret == -EBUSY ?
		       ": something else, such as a livepatch, redirects schedule()" : "");
	return ret;
}

int taskshared_probes_init(void)
{
	int ret;

	ret = taskshared_find_tracepoints();
	if (ret)
		return ret;

	taskshared_schedule_probe.flags = KPROBE_FLAG_DISABLED;
	ret = taskshared_find_site();
	if (ret)
		return ret;

	taskshared_yield_probe.flags = KPROBE_FLAG_DISABLED;
	ret = register_kprobe(&taskshared_yield_probe);
	if (ret) {
		pr_err("Linux %s: %s cannot be probed (error %d)\n", utsname()->release,
		       taskshared_arch_sched_yield, ret);
		goto schedule;
	}
	ret = taskshared_try_arming();
	if (ret)
		goto yield;
	return 0;

yield:
	unregister_kprobe(&taskshared_yield_probe);
schedule:
	unregister_kprobe(&taskshared_schedule_probe);
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

	unregister_kprobe(&taskshared_yield_probe);
	unregister_kprobe(&taskshared_schedule_probe);
}
