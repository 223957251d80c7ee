// SPDX-License-Identifier: GPL-2.0-only
/*
 * The delay decision. A thread's delay has three states:
 *
 *	none ---- granted ----> active ---- cap reached ----> expired
 *	  ^                        |                             |
 *	  +------ pass, cut -------+--------- pass, cut ---------+
 *
 * pass: through the scheduler, whoever is picked. cut: before it, because the
 * thread gives the CPU back or is about to run a signal handler; the pass is owed
 * before the next delay. All of it happens on the owner's CPU with interrupts off,
 * some of it in a context that must be treated like an NMI (a breakpoint probe):
 * nothing here takes a lock or touches a timer.
 */

#include <linux/entry-common.h>
#include <linux/errno.h>
#include <linux/init.h>
#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/taskshared.h>

#include "cap.h"
#include "compat.h"
#include "delay.h"
#include "health.h"
#include "slot.h"
#include "symbol.h"
#include "waiter.h"

/*
 * Is there anything to do before current is in user mode that a delay must not put
 * itself before? Task work does not count: it is the kernel's own (concurrency ids,
 * NUMA balancing, rseq, the last close of a file), done inside the delay, and on some
 * kernels queued by the very tick that asks for the CPU, ten times a second.
 */
static bool taskshared_other_exit_work(void)
{
	unsigned long harmless = TASKSHARED_TIF_RESCHED | _TIF_NOTIFY_RESUME;

	return read_thread_flags() & EXIT_TO_USER_MODE_WORK & ~harmless;
}
NOKPROBE_SYMBOL(taskshared_other_exit_work);

/* Address of fair_sched_class, to compare with. */
static const void *taskshared_fair_class __ro_after_init;

/*
 * By class, not by policy: a thread that is boosted to real time is of that class
 * meanwhile, and one that a BPF scheduler runs is not fair though its policy is
 * SCHED_NORMAL. SCHED_BATCH and SCHED_IDLE are fair.
 */
static bool taskshared_fair(void)
{
	return READ_ONCE(current->sched_class) == taskshared_fair_class;
}
NOKPROBE_SYMBOL(taskshared_fair);

/*
 * Take need-resched away from the scheduler, unless somebody waits for whose sake it
 * must stay: that can be told only afterwards, see waiter.c.
 */
static enum taskshared_counter taskshared_delay_begin(struct taskshared_thread *thread, u32 cap_ns)
{
	enum taskshared_counter refusal;

	taskshared_clear_resched();
	smp_mb(); /* before the counts are read, see waiter.c */
	if (taskshared_waiter_urgent()) {
		refusal = TASKSHARED_REFUSED_RT;
		goto undo;
	}

	thread->delay.start = ktime_get_mono_fast_ns();
	thread->delay.deadline = thread->delay.start + cap_ns;
	if (!taskshared_cap_arm(thread->delay.deadline)) {
		refusal = TASKSHARED_REFUSED_CAP;
		goto undo;
	}
	thread->delay.expired = false;
	thread->delay.active = true;
	return TASKSHARED_GRANTED;

undo:
	taskshared_set_resched();
	return refusal;
}
NOKPROBE_SYMBOL(taskshared_delay_begin);

/**
 * taskshared_delay_confirm() - look again for what must not wait
 * @thread: current's
 *
 * Context: hard interrupt on the owner's CPU, some moments after the decision.
 */
void taskshared_delay_confirm(struct taskshared_thread *thread)
{
	if (thread->delay.active && (taskshared_waiter_urgent() || taskshared_other_exit_work()))
		taskshared_set_resched();
}

/* The table of <linux/taskshared.h>, row by row. */
static enum taskshared_counter taskshared_delay_verdict(struct taskshared_thread *thread)
{
	u32 cap_ns = taskshared_cap_ns();

	if (thread->delay.active)
		return TASKSHARED_DENIED;
	/* Without ftrace, for one, a yield would not be seen. */
	if (!cap_ns || taskshared_health_switched_off())
		return TASKSHARED_REFUSED_OFF;
	if (thread->delay.owed || taskshared_other_exit_work())
		return TASKSHARED_REFUSED_WORK;
	if (!taskshared_fair())
		return TASKSHARED_REFUSED_CLASS;
	/*
	 * Out of its group's quota: 6.18 and later take it off the queue on this way. Read
	 * without the lock of the run queue: another CPU that just now changes the
	 * thread's priority has taken it off for a moment, too.
	 */
	if (!READ_ONCE(current->se.on_rq))
		return TASKSHARED_REFUSED_WORK;
	return taskshared_delay_begin(thread, cap_ns);
}
NOKPROBE_SYMBOL(taskshared_delay_verdict);

/**
 * taskshared_delay_decide() - may current run on instead of calling schedule()?
 * @thread: current's
 *
 * Context: on the way from an interrupt or exception to user mode, when
 * schedule() is about to be called; interrupts off, NMI-like.
 * Return: true if schedule() is to be skipped.
 */
bool taskshared_delay_decide(struct taskshared_thread *thread)
{
	enum taskshared_counter verdict;

	/* User memory: read once, compared, nothing else. */
	if (READ_ONCE(thread->info->sched_delay) != TASK_PREEMPT_DELAY_REQ)
		return false;

	/* Preempted on the way here, which was the pass: nobody asks for the CPU any more. */
	if (unlikely(!(read_thread_flags() & TASKSHARED_TIF_RESCHED)))
		return false;

	__this_cpu_write(taskshared_lost, 0);
	verdict = taskshared_delay_verdict(thread);
	taskshared_count(thread, verdict);

	switch (verdict) {
	case TASKSHARED_GRANTED:
		WRITE_ONCE(thread->info->sched_delay, TASK_PREEMPT_DELAY_GRANTED);
		return true;
	case TASKSHARED_DENIED:
		WRITE_ONCE(thread->info->sched_delay, TASK_PREEMPT_DELAY_DENIED);
		return false;
	default:
		return false;
	}
}
NOKPROBE_SYMBOL(taskshared_delay_decide);

static void taskshared_delay_end(struct taskshared_thread *thread, enum taskshared_counter cause)
{
	taskshared_count_end(thread, cause, &thread->delay, ktime_get_mono_fast_ns());
	thread->delay.active = false;

	/* So that the thread does not give up a second slice for nothing. */
	if (READ_ONCE(thread->info->sched_delay) == TASK_PREEMPT_DELAY_GRANTED)
		WRITE_ONCE(thread->info->sched_delay, 0);
}
NOKPROBE_SYMBOL(taskshared_delay_end);

/**
 * taskshared_delay_pass() - the thread passes through the scheduler
 * @thread: current's
 *
 * Context: interrupts off, NMI-like, or inside the scheduler.
 */
void taskshared_delay_pass(struct taskshared_thread *thread)
{
	thread->delay.owed = false;
	if (thread->delay.active)
		taskshared_delay_end(thread, thread->delay.expired ? TASKSHARED_EXPIRED :
								     TASKSHARED_ENDED);
}
NOKPROBE_SYMBOL(taskshared_delay_pass);

/*
 * A pass in the kernel (cond_resched(), kernel preemption) that picks the same
 * thread again calls nobody. But only the scheduler takes away the need-resched
 * that the cap set.
 */
static bool taskshared_delay_passed(const struct taskshared_thread *thread)
{
	return thread->delay.active && thread->delay.expired && !test_tsk_need_resched(current);
}

/**
 * taskshared_delay_cut() - the thread gives the CPU back
 * @thread: current's
 * @cause: TASKSHARED_YIELDED or TASKSHARED_ENDED, unless the cap was reached
 *
 * Asks for the CPU that the delay kept from the scheduler. Until the pass through it
 * no other delay is granted: a signal that turns out to be ignored leads straight to
 * the next decision.
 *
 * Context: interrupts off.
 * Return: whether a delay was running.
 */
bool taskshared_delay_cut(struct taskshared_thread *thread, enum taskshared_counter cause)
{
	lockdep_assert_irqs_disabled();

	if (taskshared_delay_passed(thread))
		taskshared_delay_pass(thread);
	if (!thread->delay.active)
		return false;
	taskshared_delay_end(thread, thread->delay.expired ? TASKSHARED_EXPIRED : cause);
	/* After a yield the return of the system call passes through it anyhow. */
	thread->delay.owed = cause != TASKSHARED_YIELDED;
	taskshared_set_resched();
	return true;
}

/**
 * taskshared_delay_expire() - the cap is reached, or was some time ago
 * @thread: current's
 *
 * The delay ends when the thread passes through the scheduler, which is at once
 * if it was interrupted in user mode.
 *
 * Context: hard interrupt on the owner's CPU.
 * Return: whether the delay still runs.
 */
bool taskshared_delay_expire(struct taskshared_thread *thread)
{
	lockdep_assert_irqs_disabled();

	if (taskshared_delay_passed(thread))
		taskshared_delay_pass(thread);
	if (!thread->delay.active)
		return false;
	thread->delay.expired = true;
	taskshared_set_resched();
	return true;
}

int __init taskshared_delay_init(void)
{
	taskshared_fair_class = (const void *)taskshared_symbol_addr("fair_sched_class");
	if (taskshared_fair_class)
		return 0;
	pr_err("fair_sched_class not found: kallsyms knows no data (CONFIG_KALLSYMS_ALL)\n");
	return -ENOENT;
}
