/* SPDX-License-Identifier: MIT */
/* The simplest BPF scheduler (sched_ext): no callbacks, so the kernel's first come, first served. */
#ifndef TASKSHARED_BPF_SCHEDULER_H
#define TASKSHARED_BPF_SCHEDULER_H

#include <stdbool.h>

/* Is the running kernel built with sched_ext? */
bool bpf_scheduler_known(void);

/*
 * Starts one, for all tasks of the fair class or, if @partial, for those alone that ask
 * for SCHED_EXT. Returns what bpf_scheduler_stop() wants, or -1 and errno.
 */
int bpf_scheduler_start(bool partial);
/* It is gone when this returns; gives whether it was still there. */
bool bpf_scheduler_stop(int scheduler);
bool bpf_scheduler_runs(void);

#endif /* TASKSHARED_BPF_SCHEDULER_H */
