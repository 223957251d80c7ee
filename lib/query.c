// SPDX-License-Identifier: MIT
/*
 * Questions to the module.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

static int ask(unsigned long request, void *arg)
{
	int err;

	err = device_get();
	if (err)
		return err;
	err = device_ioctl(request, arg);
	return err < 0 ? err : 0;
}

int taskshared_get_info(struct taskshared_info *info)
{
	if (!info)
		return -EFAULT;
	memset(info, 0, sizeof(*info));
	return ask(TASKSHARED_IOC_INFO, info);
}

int taskshared_get_counters(pid_t tid, struct taskshared_counters *counters)
{
	if (!counters)
		return -EFAULT;
	if (tid < 0)
		return -ESRCH;
	memset(counters, 0, sizeof(*counters));
	counters->tid = tid;
	return ask(TASKSHARED_IOC_COUNTERS, counters);
}

int taskshared_status(void)
{
	int err;

	if (taskshared_tls.slot)
		return 0;
	err = device_get();
	return err ? err : taskshared_tls.error;
}
