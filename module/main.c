// SPDX-License-Identifier: GPL-2.0-only
/* Set-up, and its exact reverse. */

#include <linux/module.h>
#include <linux/rcupdate.h>

#include "cap.h"
#include "counters.h"
#include "delay.h"
#include "device.h"
#include "health.h"
#include "probes.h"
#include "waiter.h"

static int __init taskshared_init(void)
{
	int ret;

	taskshared_health_init();
	ret = taskshared_delay_init();
	if (ret)
		return ret;
	ret = taskshared_waiter_init();
	if (ret)
		return ret;
	ret = taskshared_cap_init();
	if (ret)
		return ret;
	ret = taskshared_probes_init();
	if (ret)
		goto cap;
	taskshared_counters_init();
	ret = taskshared_device_init();
	if (ret)
		goto counters;

	taskshared_probes_announce();
	return 0;

counters:
	taskshared_counters_exit();
	taskshared_probes_exit();
cap:
	taskshared_cap_exit();
	synchronize_rcu_tasks();
	return ret;
}

/* No file is open and no thread has a slot, else the module would be in use. */
static void __exit taskshared_exit(void)
{
	taskshared_device_exit();
	taskshared_counters_exit();
	taskshared_probes_exit();
	taskshared_cap_exit();
	/*
	 * Nothing enters the module's text any more. A task that a probe diverted into
	 * it, or that let go of the last slot from task work, may still be there,
	 * preempted: wait until each has scheduled or is in user mode.
	 */
	synchronize_rcu_tasks();
}

module_init(taskshared_init);
module_exit(taskshared_exit);

MODULE_DESCRIPTION("Slots shared between threads and the kernel: short delays of preemption");
MODULE_AUTHOR("The taskshared developers");
MODULE_VERSION(TASKSHARED_VERSION);
MODULE_LICENSE("GPL");
