// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread's slot, from birth to death. Everything here runs in the thread's own
 * context: only the thread itself may change its list of preempt notifiers.
 *
 *	mmap:	take a slot, then go live in task work, because arming the hooks
 *		takes locks that must not nest inside mmap_lock
 *	ioctl:	take a slot and go live at once
 *	exit, exec: a tracepoint queues the release as task work, which may sleep
 */

#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/pid.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/taskshared.h>

#include "health.h"
#include "pool.h"
#include "probes.h"
#include "slot.h"

DEFINE_PER_CPU(struct taskshared_thread *, taskshared_running);

/* In finish_task_switch(): preemption off, interrupts on. */
static void taskshared_sched_in(struct preempt_notifier *notifier, int cpu)
{
	struct taskshared_thread *thread =
		container_of(notifier, struct taskshared_thread, notifier);

	__this_cpu_write(taskshared_running, thread);
}

/* In prepare_task_switch(): under the run-queue lock, interrupts off. */
static void taskshared_sched_out(struct preempt_notifier *notifier, struct task_struct *next)
{
	struct taskshared_thread *thread =
		container_of(notifier, struct taskshared_thread, notifier);

	__this_cpu_write(taskshared_running, NULL);
	if (!thread->delay.seen &&
	    READ_ONCE(thread->info->sched_delay) == TASK_PREEMPT_DELAY_REQ)
		taskshared_health_lost();
	if (likely(!thread->delay.busy))
		return;
	thread->delay.seen = false;
	taskshared_delay_pass(thread);
}

static struct preempt_ops taskshared_preempt_ops = {
	.sched_in = taskshared_sched_in,
	.sched_out = taskshared_sched_out,
};

static void taskshared_slot_free(struct taskshared_thread *thread)
{
	struct taskshared_pool *pool = thread->pool;

	taskshared_pool_give(pool, thread);
	kfree(thread);
	/* May let rmmod go on, so nothing after it may sleep, as kfree() does on PREEMPT_RT. */
	taskshared_pool_put(pool);
}

static struct taskshared_thread *taskshared_slot_alloc(struct taskshared_pool *pool)
{
	struct taskshared_thread *thread;
	int ret;

	thread = kzalloc(sizeof(*thread), GFP_KERNEL_ACCOUNT);
	if (!thread)
		return ERR_PTR(-ENOMEM);
	taskshared_tally_init(&thread->tally);
	preempt_notifier_init(&thread->notifier, &taskshared_preempt_ops);
	thread->tid = task_pid_vnr(current);

	ret = taskshared_pool_take(pool, thread);
	if (ret) {
		kfree(thread);
		return ERR_PTR(ret);
	}
	taskshared_pool_hold(pool);
	thread->pool = pool;
	return thread;
}

/* Arm the hooks, then let the scheduler and everybody else see the thread. */
static int taskshared_slot_go_live(struct taskshared_thread *thread)
{
	int ret;

	ret = taskshared_probes_get();
	if (ret)
		return ret;

	preempt_disable();
	preempt_notifier_register(&thread->notifier);
	__this_cpu_write(taskshared_running, thread);
	WRITE_ONCE(thread->info->tid, thread->tid);
	preempt_enable();
	return 0;
}

static void taskshared_slot_go_live_work(struct callback_head *work)
{
	struct taskshared_thread *thread = container_of(work, struct taskshared_thread, work);
	int ret;

	if (!(current->flags & PF_EXITING)) {
		ret = taskshared_slot_go_live(thread);
		if (!ret)
			return;
		/* -EINTR: it was killed. */
		if (ret != -EINTR)
			pr_warn_ratelimited("%s[%d] gets no slot: the hooks cannot be armed (error %d)\n",
					    current->comm, thread->tid, ret);
	}
	taskshared_slot_free(thread);
}

/* The calling thread, NULL if it has no slot. Task context. */
struct taskshared_thread *taskshared_slot_current(void)
{
	struct taskshared_thread *thread;

	preempt_disable();
	thread = __this_cpu_read(taskshared_running);
	preempt_enable();
	return thread;
}

/* The slot current has, NULL if none, or why it cannot have one in @pool. */
static struct taskshared_thread *taskshared_slot_find(struct taskshared_pool *pool)
{
	struct taskshared_thread *thread = taskshared_slot_current();

	if (thread && WARN_ON_ONCE(thread->pool != pool))
		return ERR_PTR(-EINVAL);
	return thread;
}

/**
 * taskshared_slot_get() - get or create the calling thread's slot
 * @pool: the pool of current's mm
 *
 * Context: process context, no locks held.
 * Return: the thread, or an ERR_PTR().
 */
struct taskshared_thread *taskshared_slot_get(struct taskshared_pool *pool)
{
	struct taskshared_thread *thread = taskshared_slot_find(pool);
	int ret;

	if (thread)
		return thread;
	thread = taskshared_slot_alloc(pool);
	if (IS_ERR(thread))
		return thread;

	ret = taskshared_slot_go_live(thread);
	if (ret) {
		taskshared_slot_free(thread);
		return ERR_PTR(ret);
	}
	return thread;
}

/**
 * taskshared_slot_get_deferred() - the same under mmap_lock
 * @pool: the pool of current's mm
 *
 * The slot goes live before the thread is back in user mode.
 *
 * Context: process context, in a system call.
 * Return: the thread, or an ERR_PTR().
 */
struct taskshared_thread *taskshared_slot_get_deferred(struct taskshared_pool *pool)
{
	struct taskshared_thread *thread = taskshared_slot_find(pool);

	if (thread)
		return thread;
	thread = taskshared_slot_alloc(pool);
	if (IS_ERR(thread))
		return thread;

	init_task_work(&thread->work, taskshared_slot_go_live_work);
	if (task_work_add(current, &thread->work, TWA_RESUME)) {
		taskshared_slot_free(thread);
		return ERR_PTR(-ESRCH);
	}
	return thread;
}

/* Cut a running delay, if any, and hide the thread from the scheduler. */
static void taskshared_slot_go_dark(struct taskshared_thread *thread)
{
	preempt_disable();
	local_irq_disable();
	taskshared_delay_cut(thread, TASKSHARED_ENDED);
	local_irq_enable();
	__this_cpu_write(taskshared_running, NULL);
	preempt_notifier_unregister(&thread->notifier);
	preempt_enable();

	taskshared_probes_put();
	taskshared_slot_free(thread);
}

/**
 * taskshared_slot_release() - release the calling thread's slot
 *
 * Context: process context, no locks held.
 * Return: 0, or -ENOENT if it has none.
 */
int taskshared_slot_release(void)
{
	struct taskshared_thread *thread = taskshared_slot_current();

	if (!thread)
		return -ENOENT;
	taskshared_slot_go_dark(thread);
	return 0;
}

static void taskshared_slot_leave_work(struct callback_head *work)
{
	taskshared_slot_go_dark(container_of(work, struct taskshared_thread, work));
}

/**
 * taskshared_slot_leave() - current exits or has called exec
 * @mode: how task work is to run: at exit it does anyhow
 *
 * Context: current's own, in a tracepoint: must not sleep.
 */
void taskshared_slot_leave(enum task_work_notify_mode mode)
{
	struct taskshared_thread *thread = taskshared_slot_current();

	/* A task may die between exec and its return to user mode. */
	if (!thread || thread->leaving)
		return;
	thread->leaving = true;
	init_task_work(&thread->work, taskshared_slot_leave_work);
	WARN_ON_ONCE(task_work_add(current, &thread->work, mode));
}

/**
 * taskshared_slot_signal() - a signal is being delivered to the calling thread
 * @handled: a handler is to run
 *
 * Ends a delay, and takes back a request: what the thread asked for was not meant for
 * a handler, which may take long.
 *
 * Context: the thread's own, in a tracepoint.
 */
void taskshared_slot_signal(bool handled)
{
	struct taskshared_thread *thread = taskshared_slot_current();

	if (!thread)
		return;
	taskshared_slot_cut(TASKSHARED_ENDED);
	if (handled && READ_ONCE(thread->info->sched_delay) == TASK_PREEMPT_DELAY_REQ)
		WRITE_ONCE(thread->info->sched_delay, 0);
}

/**
 * taskshared_slot_cut() - end the calling thread's delay
 * @cause: TASKSHARED_YIELDED or TASKSHARED_ENDED
 *
 * The pass through the scheduler is made on the way to user mode.
 *
 * Context: the thread's own, any.
 * Return: 1 if a delay was running, 0 if not.
 */
int taskshared_slot_cut(enum taskshared_counter cause)
{
	struct taskshared_thread *thread;
	unsigned long flags;
	bool was;

	local_irq_save(flags);
	thread = __this_cpu_read(taskshared_running);
	was = thread && taskshared_delay_cut(thread, cause);
	local_irq_restore(flags);
	return was;
}
