// SPDX-License-Identifier: MIT
/*
 * task_getshared(), for programs written for the system call of that name.
 */
#include <errno.h>

#include "internal.h"

int task_getshared(int option, int flags, void *uaddr)
{
	int err = 0;

	if (option != TASK_SHAREDINFO || flags)
		err = -EINVAL;
	else if (!uaddr)
		err = -EFAULT;
	else
		err = taskshared_attach();
	if (err) {
		errno = -err;
		return -1;
	}
	*(struct task_sharedinfo **)uaddr = taskshared_get_slot();
	return 0;
}
