/* SPDX-License-Identifier: GPL-2.0-only */
/* A thread and its slot. */
#ifndef _TASKSHARED_SLOT_H
#define _TASKSHARED_SLOT_H

#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/task_work.h>
#include <linux/types.h>

#include "counters.h"
#include "delay.h"

struct task_sharedinfo;
struct taskshared_pool;

/**
 * struct taskshared_thread - a thread that has a slot
 * @notifier: on the thread's list from going live to release
 * @info: the slot, through the kernel's own address
 * @delay: see there
 * @tally: the thread's counters
 * @pool: the pool of the slot; a reference is held
 * @index: the slot's number in the pool
 * @tid: the thread's id in its own pid namespace, constant
 * @leaving: the release is queued
 * @work: runs in the thread's own context to go live, later to release
 */
struct taskshared_thread {
	struct preempt_notifier notifier;
	struct task_sharedinfo *info;
	struct taskshared_delay delay;
	struct taskshared_tally tally;

	struct taskshared_pool *pool;
	unsigned int index;
	pid_t tid;
	bool leaving;
	struct callback_head work;
};

/*
 * The thread that runs on this CPU, if it has a slot. Written by that CPU alone,
 * in the switch callbacks and in the thread's own context with preemption off.
 * In task context with preemption off it is exactly current's.
 */
DECLARE_PER_CPU(struct taskshared_thread *, taskshared_running);

struct taskshared_thread *taskshared_slot_current(void);
struct taskshared_thread *taskshared_slot_get(struct taskshared_pool *pool);
struct taskshared_thread *taskshared_slot_get_deferred(struct taskshared_pool *pool);
int taskshared_slot_release(void);
int taskshared_slot_cut(enum taskshared_counter cause);
void taskshared_slot_signal(bool handled);
void taskshared_slot_leave(enum task_work_notify_mode mode);

#endif /* _TASKSHARED_SLOT_H */
