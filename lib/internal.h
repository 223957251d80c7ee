/* SPDX-License-Identifier: MIT */
/* What the files of libtaskshared know of each other. Nothing here is exported. */
#ifndef TASKSHARED_INTERNAL_H
#define TASKSHARED_INTERNAL_H

#include <signal.h>
#include <stddef.h>

#include "taskshared.h"

/*
 * taskshared_tls.nest of a thread that has not tried to attach. Far enough from
 * -1 that no number of unbalanced begins and ends gets there.
 */
#define NEST_UNATTACHED (-0x40000000)
#define NEST_OUTSIDE (-1)

/*
 * Left in taskshared_tls.dummy by a thread that lost its slot inside a section:
 * sends the outermost end to the slow path, which makes it unattached.
 */
#define DUMMY_REATTACH 2

/* attach.c: the calling thread's slot */
int thread_setup(void);
void thread_lose_slot(struct taskshared_tls *t);

/* device.c: what the process has */
int device_get(void);
int device_ioctl(unsigned long request, void *arg);
struct task_sharedinfo *device_slot(const struct taskshared_slot *where);
void device_forget(void);

/* section.c; on x86-64 called from stubs.S */
#if defined(__x86_64__) && !defined(__ILP32__)
#define TASKSHARED_STUBS
#endif
void section_begin(void);
void section_end(void);

/* fork.c */
int fork_setup(void);

/*
 * sys.c: the system calls, in a form that is no cancellation point, keeps errno
 * and returns negative errno values.
 */
int sys_open_device(void);
void sys_close(int fd);
int sys_ioctl(int fd, unsigned long request, void *arg);
int sys_map(int fd, size_t size, __u64 offset, void **where);
int sys_same_file(int fd, __u64 *id);
void sys_block_signals(sigset_t *saved);
void sys_restore_signals(const sigset_t *saved);

#endif /* TASKSHARED_INTERNAL_H */
