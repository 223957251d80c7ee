/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every difference between kernel releases, offered under the name and with the
 * meaning of the newest one. No other file asks for a version.
 */
#ifndef _TASKSHARED_COMPAT_H
#define _TASKSHARED_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "taskshared needs Linux 6.1 or later"
#endif

/* Otherwise se.cfs_rq, the way to a run queue, is not there. */
#ifndef CONFIG_FAIR_GROUP_SCHED
#error "taskshared needs a kernel with CONFIG_FAIR_GROUP_SCHED"
#endif

/* 6.3 made vm_flags constant and introduced functions that change it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set,
				vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

/* 6.13 introduced hrtimer_setup(), 6.15 removed hrtimer_init(). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

/* 6.2 renamed ftrace_instruction_pointer_set(). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define ftrace_regs_set_instruction_pointer ftrace_instruction_pointer_set
#endif

/* 6.16 added an argument to the sched_process_exit tracepoint. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#define TASKSHARED_EXIT_PROBE_ARGS void *data, struct task_struct *task
#else
#define TASKSHARED_EXIT_PROBE_ARGS void *data, struct task_struct *task, bool group_dead
#endif

/*
 * The bits by which the scheduler asks for the CPU. The lazy one came with 6.13, and
 * to the rt flavours of Debian's older kernels as a patch (CONFIG_PREEMPT_LAZY).
 */
#ifdef _TIF_NEED_RESCHED_LAZY
#define TASKSHARED_TIF_RESCHED (_TIF_NEED_RESCHED | _TIF_NEED_RESCHED_LAZY)
#else
#define TASKSHARED_TIF_RESCHED _TIF_NEED_RESCHED
#endif

/*
 * Forget that the scheduler asked for the CPU: the thread flags
 * (clear_tsk_need_resched() takes the lazy one along; in the rt flavour of 6.1 that
 * has a call of its own) and the folded bit in the preempt count. Interrupts are
 * off, so that the two stay in step.
 */
static inline void taskshared_clear_resched(void)
{
	clear_tsk_need_resched(current);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0) && defined(CONFIG_PREEMPT_LAZY)
	clear_tsk_need_resched_lazy(current);
#endif
	clear_preempt_need_resched();
}

/* Ask for the CPU. Interrupts are off, for the same reason. */
static inline void taskshared_set_resched(void)
{
	set_tsk_need_resched(current);
	set_preempt_need_resched();
}

#endif /* _TASKSHARED_COMPAT_H */
