// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cap timer: one hrtimer per CPU, started from an irq_work.
 *
 * The decision is made in a context that may not touch a timer, so it raises a
 * self-interrupt that does. That interrupt is also what makes the timer work on
 * kernels that leave the clock event device unprogrammed until the exit of the
 * timer interrupt (7.1 and later): its own exit programs it.
 *
 * The timer is not cancelled when a delay ends early: one interrupt that finds
 * nothing to do is cheaper than reprogramming the device at each end. It trusts
 * nothing it did not check: the CPU, the thread that runs, and the deadline.
 */

#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <asm/irq_regs.h>

#include "cap.h"
#include "compat.h"
#include "health.h"
#include "slot.h"

#define TASKSHARED_DELAY_US_MIN	5
#define TASKSHARED_DELAY_US_MAX	50

/*
 * The timer is set this much before the cap: what lies between its expiry and the
 * pass through the scheduler, another timer that expires at the same time included.
 */
#define TASKSHARED_CAP_LEAD_NS	2000

/* When to look again, at the earliest, after a delay that its cap finds in the kernel. */
#define TASKSHARED_CAP_WATCH_NS	10000

/**
 * struct taskshared_cap - the timer of one CPU
 * @ready: the CPU is online and its timer was seen to work
 * @failed: the CPU is online and its timer was seen not to work
 * @expires: when the timer is to fire, for the newest delay on this CPU
 * @work: starts the timer
 * @timer: fires at @expires
 * @trial: completed by the first expiry, while the timer is tried
 *
 * Touched by its own CPU alone, except at set-up and teardown.
 */
struct taskshared_cap {
	bool ready;
	bool failed;
	u64 expires;
	struct irq_work work;
	struct hrtimer timer;
	struct completion *trial;
};

static DEFINE_PER_CPU(struct taskshared_cap, taskshared_cap);
static enum cpuhp_state taskshared_cap_state;

static unsigned int taskshared_delay_us = TASKSHARED_DELAY_US_MAX;

static int taskshared_delay_us_set(const char *val, const struct kernel_param *kp)
{
	unsigned int us;
	int ret;

	ret = kstrtouint(val, 0, &us);
	if (ret)
		return ret;
	if (us && (us < TASKSHARED_DELAY_US_MIN || us > TASKSHARED_DELAY_US_MAX)) {
		pr_err("delay_us=%u is out of range: 0 (no delays) or %d to %d\n", us,
		       TASKSHARED_DELAY_US_MIN, TASKSHARED_DELAY_US_MAX);
		return -ERANGE;
	}
	WRITE_ONCE(taskshared_delay_us, us);
	return 0;
}

static const struct kernel_param_ops taskshared_delay_us_ops = {
	.set = taskshared_delay_us_set,
	.get = param_get_uint,
};

module_param_cb(delay_us, &taskshared_delay_us_ops, &taskshared_delay_us, 0644);
MODULE_PARM_DESC(delay_us, "Longest delay in microseconds: 0 (no delays) or 5 to 50 (default 50); delays that are running keep the cap they began with");

/* The cap of delays granted from now on, in ns; 0: none is. */
u32 taskshared_cap_ns(void)
{
	return READ_ONCE(taskshared_delay_us) * NSEC_PER_USEC;
}
NOKPROBE_SYMBOL(taskshared_cap_ns);

/**
 * taskshared_cap_arm() - have the delay that begins now end at @deadline
 * @deadline: in ns of CLOCK_MONOTONIC
 *
 * Context: interrupts off, NMI-like; the timer is started by the interrupt that
 * comes as soon as they are on.
 * Return: false if it cannot be done on this CPU.
 */
bool taskshared_cap_arm(u64 deadline)
{
	struct taskshared_cap *cap = this_cpu_ptr(&taskshared_cap);

	if (!READ_ONCE(cap->ready))
		return false;
	cap->expires = deadline - TASKSHARED_CAP_LEAD_NS;
	irq_work_queue(&cap->work);
	return true;
}
NOKPROBE_SYMBOL(taskshared_cap_arm);

/* Hard interrupt on the CPU that raised it. */
static void taskshared_cap_start(struct irq_work *work)
{
	struct taskshared_cap *cap = container_of(work, struct taskshared_cap, work);
	struct taskshared_thread *thread = __this_cpu_read(taskshared_running);

	if (thread)
		taskshared_delay_confirm(thread);
	hrtimer_start(&cap->timer, ns_to_ktime(cap->expires), HRTIMER_MODE_ABS_PINNED_HARD);
}

/*
 * Does this interrupt end in the scheduler, and no hook will see that? From user mode
 * it always does, but the hooks may have been switched off since the delay began.
 */
static bool taskshared_cap_unseen(void)
{
	if (user_mode(get_irq_regs()))
		return taskshared_health_switched_off();
	return preempt_model_preemptible() && preempt_count() == HARDIRQ_OFFSET;
}

/*
 * The thread is in a system call, may stay there for long, and may pass through the
 * scheduler unseen. Look again, so often that the overrun is known to a factor of 2.
 */
static void taskshared_cap_watch(struct hrtimer *timer, const struct taskshared_thread *thread)
{
	u64 now = ktime_get_ns();
	u64 wait = now > thread->delay.deadline ? now - thread->delay.deadline : 0;

	wait = max_t(u64, wait, TASKSHARED_CAP_WATCH_NS);
	hrtimer_set_expires(timer, ns_to_ktime(now + wait));
}

static enum hrtimer_restart taskshared_cap_fire(struct hrtimer *timer)
{
	struct taskshared_cap *cap = container_of(timer, struct taskshared_cap, timer);
	struct taskshared_thread *thread;

	if (unlikely(cap->trial)) {
		complete(cap->trial);
		return HRTIMER_NORESTART;
	}

	/* Cancelled before its CPU goes, it never fires on another one. */
	if (WARN_ON_ONCE(cap != this_cpu_ptr(&taskshared_cap)))
		return HRTIMER_NORESTART;

	thread = __this_cpu_read(taskshared_running);
	if (!thread || !thread->delay.active)
		return HRTIMER_NORESTART;

	/* Left over from an earlier delay, while the newest one runs. */
	if (ktime_get_ns() < cap->expires) {
		hrtimer_set_expires(timer, ns_to_ktime(cap->expires));
		return HRTIMER_RESTART;
	}

	if (!taskshared_delay_expire(thread))
		return HRTIMER_NORESTART;
	if (taskshared_cap_unseen()) {
		taskshared_delay_pass(thread);
		return HRTIMER_NORESTART;
	}
	if (user_mode(get_irq_regs()))
		return HRTIMER_NORESTART;
	taskshared_cap_watch(timer, thread);
	return HRTIMER_RESTART;
}

/* Does the chain irq_work, timer, interrupt work on this CPU? */
static bool taskshared_cap_try(struct taskshared_cap *cap)
{
	DECLARE_COMPLETION_ONSTACK(trial);
	bool fired;

	cap->trial = &trial;
	cap->expires = ktime_get_ns() + TASKSHARED_DELAY_US_MAX * NSEC_PER_USEC;
	irq_work_queue(&cap->work);
	fired = wait_for_completion_timeout(&trial, HZ);
	irq_work_sync(&cap->work);
	hrtimer_cancel(&cap->timer);
	cap->trial = NULL;
	return fired;
}

/* In the hotplug thread of the CPU that comes, or of each one that is there. */
static int taskshared_cap_online(unsigned int cpu)
{
	struct taskshared_cap *cap = per_cpu_ptr(&taskshared_cap, cpu);

	cap->work = IRQ_WORK_INIT_HARD(taskshared_cap_start);
	hrtimer_setup(&cap->timer, taskshared_cap_fire, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED_HARD);
	if (taskshared_cap_try(cap)) {
		WRITE_ONCE(cap->ready, true);
		return 0;
	}
	WRITE_ONCE(cap->failed, true);
	pr_err("no delays on CPU %u: a timer of %u us did not fire within 1 s\n", cpu,
	       TASKSHARED_DELAY_US_MAX);
	return 0;
}

/* From here on no delay is granted on this CPU, and nothing stays armed. */
static int taskshared_cap_offline(unsigned int cpu)
{
	struct taskshared_cap *cap = per_cpu_ptr(&taskshared_cap, cpu);

	WRITE_ONCE(cap->ready, false);
	WRITE_ONCE(cap->failed, false);
	/* A decision that saw it ready had preemption off on this very CPU. */
	irq_work_sync(&cap->work);
	hrtimer_cancel(&cap->timer);
	return 0;
}

/* Any context. */
bool taskshared_cap_failed(void)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (READ_ONCE(per_cpu(taskshared_cap.failed, cpu)))
			return true;
	return false;
}

int __init taskshared_cap_init(void)
{
	int ret;

	if (hrtimer_resolution > NSEC_PER_USEC) {
		pr_err("high-resolution timers are not active (timer resolution %u ns), the cap cannot be kept; boot without highres=off\n",
		       hrtimer_resolution);
		return -ETIME;
	}

	/* Without a self-interrupt the timer would be started by the next tick. */
	if (!arch_irq_work_has_interrupt()) {
		pr_err("this CPU cannot interrupt itself (no local APIC?), the cap cannot be kept; boot without nolapic\n");
		return -ETIME;
	}

	ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "taskshared:online",
				taskshared_cap_online, taskshared_cap_offline);
	if (ret < 0) {
		pr_err("cannot follow CPUs coming and going (error %d)\n", ret);
		return ret;
	}
	taskshared_cap_state = ret;

	if (taskshared_cap_failed()) {
		taskshared_cap_exit();
		return -ETIME;
	}
	return 0;
}

void taskshared_cap_exit(void)
{
	cpuhp_remove_state(taskshared_cap_state);
}
