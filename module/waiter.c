// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does a task of a class above fair wait for this CPU?
 *
 * No exported function tells. But the scheduler picks such a task before any fair
 * one, so at the moment a fair thread is picked none waits there (but for
 * throttled ones), and from then on each arrival passes a tracepoint: wake-up,
 * migration, priority inheritance. So each CPU counts arrivals, a thread notes the
 * count when it is switched in, and a count that differs means: one may wait.
 *
 * An arrival from another CPU races with the decision, which clears need-resched.
 *
 *	decision			arrival
 *	delayed = true			set need-resched (the scheduler)
 *	clear need-resched		count++
 *	full barrier			full barrier
 *	count changed? undo		delayed? interrupt that CPU
 *
 * Whatever the order, one of the two sees the other.
 *
 * Not seen: a class change of a task that is queued already, the end of real-time
 * throttling, and the replenishment of a deadline task. These wait for the cap.
 */

#include <linux/atomic.h>
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
 * @delayed: a delay runs; written by the CPU itself
 * @kick: ends it, raised by other CPUs
 */
struct taskshared_waiter {
	atomic_t arrivals;
	bool delayed;
	call_single_data_t kick;
};

static DEFINE_PER_CPU(struct taskshared_waiter, taskshared_waiter);

static bool taskshared_above_fair(const struct task_struct *task)
{
	return READ_ONCE(task->prio) < MAX_RT_PRIO;
}

/* Under the run-queue lock of @cpu or while the task is not queued. */
static noinline void taskshared_waiter_arrive(int cpu)
{
	struct taskshared_waiter *waiter = per_cpu_ptr(&taskshared_waiter, cpu);

	atomic_inc(&waiter->arrivals);
	smp_mb__after_atomic(); /* pairs with the one in taskshared_delay_begin() */
	/*
	 * On this CPU need-resched was set after the decision, and stays. On another
	 * one: if a kick is under way (-EBUSY), that one will do.
	 */
	if (READ_ONCE(waiter->delayed) && cpu != smp_processor_id())
		smp_call_function_single_async(cpu, &waiter->kick);
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
		taskshared_waiter_arrive(cpu);
}

/* sched_pi_setprio: @task is about to inherit the priority of @donor. */
void taskshared_waiter_boost(void *data, struct task_struct *task, struct task_struct *donor)
{
	if (donor && taskshared_above_fair(donor))
		taskshared_waiter_arrive(task_cpu(task));
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

	/* Pairs with the order need-resched, count of an arrival. */
	smp_rmb();
	thread->arrivals = arrivals - test_tsk_need_resched(current);
}

/* May a task above the fair class wait for this CPU? Interrupts off, NMI-like. */
bool taskshared_waiter_urgent(const struct taskshared_thread *thread)
{
	return atomic_read(this_cpu_ptr(&taskshared_waiter.arrivals)) != thread->arrivals;
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

	if (thread && thread->delay.active)
		taskshared_set_resched();
}

void taskshared_waiter_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		INIT_CSD(per_cpu_ptr(&taskshared_waiter.kick, cpu), taskshared_waiter_kick, NULL);
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
