/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/taskshared. */
#ifndef _TASKSHARED_DEVICE_H
#define _TASKSHARED_DEVICE_H

int taskshared_device_init(void);
void taskshared_device_exit(void);

#endif /* _TASKSHARED_DEVICE_H */
