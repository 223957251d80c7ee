// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does a task of a class above fair wait for this CPU?
 *
 * No exported function tells. But the scheduler picks such a task before any fair
 * one, so at the moment a fair thread is picked none waits there (but for
 * throttled ones), and from then on each arrival passes a tracepoint: wake-up,
 * migration, priority inheritance. So each CPU counts arrivals, a thread notes the
 * count when it is switched in or passes through the scheduler, and a count that
 * differs means: one may wait.
 *
 * A wake-up is traced after need-resched was set. It races with the decision,
 * which clears that:
 *
 *	decision			arrival
 *	delayed = true			set need-resched (the scheduler)
 *	clear need-resched		count++
 *	full barrier			full barrier
 *	count changed? undo		delayed? interrupt that CPU
 *
 * Whatever the order, one of the two sees the other.
 *
 * A migration and an inheritance are traced before the task is queued, so the
 * thread may be picked between the two. Therefore after such an arrival the CPU
 * gives no delay for some ticks.
 *
 * Not seen: a class change of a task that is queued already, the end of real-time
 * throttling, and the replenishment of a deadline task. These wait for the cap.
 */

#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/kprobes.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/prio.h>
#include <linux/smp.h>

#include "compat.h"
#include "slot.h"
#include "waiter.h"

/**
 * struct taskshared_waiter - one CPU
 * @arrivals: tasks above the fair class that came; written by any CPU
 * @quiet: no delay before this time in jiffies; written by any CPU
 * @delayed: a delay runs; written by the CPU itself
 * @kicked: @kick is under way: who sets it may queue @kick, nobody else
 * @kick: ends the delay
 */
struct taskshared_waiter {
	atomic_t arrivals;
	unsigned long quiet;
	bool delayed;
	atomic_t kicked;
	call_single_data_t kick;
};

/* Longer than it takes from the tracepoint to the run queue, with a lock between. */
#define TASKSHARED_QUIET_TICKS 2

static DEFINE_PER_CPU(struct taskshared_waiter, taskshared_waiter);

static bool taskshared_above_fair(const struct task_struct *task)
{
	return READ_ONCE(task->prio) < MAX_RT_PRIO;
}

/* Any context, on any CPU, several at a time for one @cpu. */
static noinline void taskshared_waiter_arrive(int cpu)
{
	struct taskshared_waiter *waiter = per_cpu_ptr(&taskshared_waiter, cpu);

	smp_mb__before_atomic(); /* need-resched before the count, for _reset() */
	atomic_inc(&waiter->arrivals);
	smp_mb__after_atomic(); /* pairs with the one in taskshared_delay_begin() */

	/* On this CPU need-resched was set after the decision, and stays. */
	if (!READ_ONCE(waiter->delayed) || cpu == smp_processor_id())
		return;
	if (!atomic_xchg(&waiter->kicked, 1) &&
	    smp_call_function_single_async(cpu, &waiter->kick))
		atomic_set(&waiter->kicked, 0); /* the CPU is gone */
}

/* One comes, but is not on the run queue of @cpu yet. */
static void taskshared_waiter_announce(int cpu)
{
	WRITE_ONCE(per_cpu(taskshared_waiter.quiet, cpu), jiffies + TASKSHARED_QUIET_TICKS);
	taskshared_waiter_arrive(cpu);
}

/* sched_wakeup, sched_wakeup_new: @task is queued on its CPU. */
void taskshared_waiter_wakeup(void *data, struct task_struct *task)
{
	if (unlikely(taskshared_above_fair(task)))
		taskshared_waiter_arrive(task_cpu(task));
}

/* sched_migrate_task: @task is about to move to @cpu. */
void taskshared_waiter_migrate(void *data, struct task_struct *task, int cpu)
{
	if (unlikely(taskshared_above_fair(task)))
		taskshared_waiter_announce(cpu);
}

/* sched_pi_setprio: @task is about to inherit the priority of @donor. */
void taskshared_waiter_boost(void *data, struct task_struct *task, struct task_struct *donor)
{
	if (donor && taskshared_above_fair(donor))
		taskshared_waiter_announce(task_cpu(task));
}

/**
 * taskshared_waiter_reset() - the thread was just picked, or attaches
 * @thread: current's
 *
 * Somebody who came between the pick and this moment has asked for the CPU
 * already. So if it was asked for, by whomever, take it that one waits.
 *
 * Context: preemption off.
 */
void taskshared_waiter_reset(struct taskshared_thread *thread)
{
	int arrivals = atomic_read(this_cpu_ptr(&taskshared_waiter.arrivals));

	smp_rmb(); /* pairs with the one before the count of an arrival */
	thread->arrivals = arrivals - test_tsk_need_resched(current);
}

/**
 * taskshared_waiter_adopt() - the thread is about to pass through the scheduler
 * @thread: current's
 *
 * Who came until now is on the run queue, and picked if the thread is not.
 *
 * Context: interrupts off, NMI-like.
 */
void taskshared_waiter_adopt(struct taskshared_thread *thread)
{
	thread->arrivals = atomic_read(this_cpu_ptr(&taskshared_waiter.arrivals));
}
NOKPROBE_SYMBOL(taskshared_waiter_adopt);

/* May a task above the fair class wait for this CPU? Interrupts off, NMI-like. */
bool taskshared_waiter_urgent(const struct taskshared_thread *thread)
{
	const struct taskshared_waiter *waiter = this_cpu_ptr(&taskshared_waiter);

	return atomic_read(&waiter->arrivals) != thread->arrivals ||
	       time_before(jiffies, READ_ONCE(waiter->quiet));
}
NOKPROBE_SYMBOL(taskshared_waiter_urgent);

/* A delay begins or ends on this CPU. Interrupts off, NMI-like. */
void taskshared_waiter_watch(bool delayed)
{
	__this_cpu_write(taskshared_waiter.delayed, delayed);
}
NOKPROBE_SYMBOL(taskshared_waiter_watch);

/* Hard interrupt on the CPU that is to be freed. */
static void taskshared_waiter_kick(void *unused)
{
	struct taskshared_thread *thread = __this_cpu_read(taskshared_running);

	/* Before the look: who comes later kicks again. */
	atomic_set(this_cpu_ptr(&taskshared_waiter.kicked), 0);
	smp_mb(); /* the flag before the look at the delay */
	if (thread && thread->delay.active)
		taskshared_set_resched();
}

void taskshared_waiter_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		per_cpu(taskshared_waiter.quiet, cpu) = jiffies;
		INIT_CSD(per_cpu_ptr(&taskshared_waiter.kick, cpu), taskshared_waiter_kick, NULL);
	}
}

/* The tracepoint probes are gone. */
void taskshared_waiter_exit(void)
{
	/*
	 * A kick that is under way runs in the same interrupt as this one at the
	 * latest, and that is over when each CPU was seen outside of RCU.
	 */
	kick_all_cpus_sync();
	synchronize_rcu();
}
