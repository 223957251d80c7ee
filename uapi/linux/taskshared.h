/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * taskshared: a slot of memory that a thread shares with the kernel.
 *
 * This header is the specification of /dev/taskshared.
 *
 * What it is for
 * --------------
 * A thread that loses the CPU while it holds a user-space lock makes every
 * waiter spin or sleep for a whole time slice. With one plain store to its
 * slot a thread says "I am in a short critical section". If the scheduler asks
 * for the CPU in that moment, the kernel lets the thread run on for at most
 * the *cap* (50 us unless the administrator chose less), then takes the CPU.
 *
 * The flow, for one thread:
 *
 *	fd = open("/dev/taskshared", O_RDWR | O_CLOEXEC);
 *	page = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
 *	slot = the one of the page's slots whose tid field is gettid();
 *
 *	slot->sched_delay = TASK_PREEMPT_DELAY_REQ;
 *	... the critical section ...
 *	was = slot->sched_delay;
 *	slot->sched_delay = 0;
 *	if (was == TASK_PREEMPT_DELAY_GRANTED)
 *		ioctl(fd, TASKSHARED_IOC_YIELD);	or sched_yield()
 *
 * Between the last load and the store that follows it an interrupt can still
 * grant a delay, which the thread then does not see: it keeps the CPU until the
 * cap, and a section begun before that is denied. A read-modify-write that is one
 * instruction (on x86 an AND or CMPXCHG without lock prefix) closes that window:
 * the kernel writes the word only on the CPU on which the thread runs.
 *
 * When a delay is granted
 * -----------------------
 * Decided in one place only: the thread is about to return to user mode from an
 * interrupt or exception, and the scheduler asks for the CPU.
 *
 *	no slot, or sched_delay is not REQ	schedules as always
 *	return from a system call		schedules as always; the request
 *						stays for later
 *	other exit work is pending (signal,	schedules as always; the request
 *	  uprobe, livepatch)			stays for later
 *	task work (of the kernel's own) is	no obstacle: it is done inside the
 *	  pending				delay; so is a livepatch's or io_uring's
 *						work that comes when one is running
 *	the thread is not of the fair class	schedules as always; the request
 *						stays for later
 *	a real-time, deadline or stop task	schedules as always; the request
 *	  waits for the CPU, one that a BPF	stays for later
 *	  scheduler runs does, or core
 *	  scheduling is in use
 *	REQ, and no delay is running		GRANTED: the thread runs on, a timer
 *						enforces the cap
 *	REQ again while a delay is running	DENIED: it schedules
 *	the cap is reached			it schedules at once, counted as
 *						expired
 *	a signal is delivered in a delay	it schedules before the handler runs
 *	a breakpoint is hit in a delay, of	it schedules before the probe's work is
 *	  a uprobe or a debugger		done
 *	a signal that has a handler is		the request is taken back: sched_delay
 *	  delivered to a thread that has	reads 0, and the handler gets no delay
 *	  requested				but for a request of its own
 *
 * Fair is a thread that the fair class runs, SCHED_BATCH and SCHED_IDLE included,
 * and neither one that inherited a higher priority nor one of a BPF scheduler.
 *
 * A delay ends the moment the thread passes through the scheduler for any
 * reason, even if the scheduler picks the same thread again; sched_delay then
 * reads 0 instead of GRANTED. (Inside a system call or exception such a pass may go
 * unseen if the same thread is picked again: then the delay ends with the next one, at
 * the cap at the latest.) The next delay needs a pass first: delays cannot be chained.
 * The time is charged to the thread, as any other: who takes more now gets less later.
 *
 * The cap binds in user mode; a system call made inside a delay is not interrupted on
 * kernels that do not preempt system calls, and the time past the cap shows in the
 * counters as overrun_ns. That is exact if the thread then leaves the CPU or returns
 * to user mode; if it passes through the scheduler inside the call and goes on, it
 * may be counted as up to twice as long.
 *
 * Pools, pages, slots
 * -------------------
 * A process (its mm) has one *pool* of pages, however often it opens the device.
 * Each page has slots of TASKSHARED_SLOT_SIZE bytes. Pages are zeroed, pinned,
 * charged to the memory cgroup and to RLIMIT_MEMLOCK of the user, and never
 * shared between processes. A page is added when all slots are taken. A page
 * whose slots are all free goes when no file of the pool is open any more (a
 * mapping holds its file).
 *
 * A thread keeps its slot until it exits, calls exec, or releases it. The slot
 * is scrubbed then, and again before the next thread gets it. fork: the child
 * has no slot, no mapping, and a pool of its own once it opens the device; every
 * call on a file it inherited fails with EPERM.
 *
 * mmap
 * ----
 *	offset 0, length of one page	gives the calling thread its slot (the
 *					one it has, or a new one) and maps the
 *					page it is in
 *	offset TASKSHARED_WINDOW,	maps the pool from its first page on; pages
 *	any length up to		that are added later appear in it; touching
 *	  window_size			a page that is not there yet: SIGBUS
 *
 *	EINVAL	another offset or length, or MAP_PRIVATE
 *	EPERM	PROT_EXEC, or the file was opened by another process
 *	ENOMEM	no memory, or RLIMIT_MEMLOCK is reached
 *	ENOSPC	the pool has all the pages it may have
 *	EDQUOT	the user's processes have all the slots they may have (max_slots)
 *
 * A slot that mmap gave is live, and its tid field readable, when mmap returns.
 * Should the kernel refuse to arm the hooks in that moment (it says so in the
 * kernel log), no slot carries the thread's tid.
 *
 * The mapping is not inherited by fork, cannot grow, cannot become executable,
 * is not part of a core dump, and cannot be the target of direct I/O.
 */
#ifndef _UAPI_LINUX_TASKSHARED_H
#define _UAPI_LINUX_TASKSHARED_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define TASKSHARED_DEVICE	"/dev/taskshared"
#define TASKSHARED_ABI_VERSION	1
#define TASKSHARED_SLOT_SIZE	128

/* mmap offset of the window that shows every page of the pool. */
#define TASKSHARED_WINDOW	0x10000000UL

/*
 * Values of sched_delay. 0: no request.
 *
 * REQ		written by the thread: delay me
 * GRANTED	written by the kernel over REQ: a delay is running
 * DENIED	written by the kernel over REQ: asked again inside a delay
 */
#define TASK_PREEMPT_DELAY_REQ		1
#define TASK_PREEMPT_DELAY_GRANTED	2
#define TASK_PREEMPT_DELAY_DENIED	3

/* The option of task_getshared(), see libtaskshared. */
#define TASK_SHAREDINFO			1

/**
 * struct task_sharedinfo - one thread's slot
 * @sched_delay: TASK_PREEMPT_DELAY_*. Written by the owning thread at any time
 *	(0 or REQ), by the kernel only on the CPU on which that thread runs, when
 *	it is on its way out of the kernel or off the CPU: REQ becomes GRANTED or
 *	DENIED, or 0 when a signal is delivered; GRANTED becomes 0 when the delay
 *	ends. Read by both. A naturally aligned 16-bit word, loads and stores are
 *	atomic. 0 when the slot is given out. The kernel trusts no value in it:
 *	others than REQ are no request.
 * @tid: The owner, as gettid() tells it to the owner itself; 0: the slot is
 *	free. Written by the kernel when the slot is given out and when it is
 *	released, read by anybody in the process. An aligned 32-bit word, atomic.
 *
 * Two cache lines on purpose: the owner writes to the first one alone, the kernel
 * publishes in the second one, so who polls the second one never slows the
 * owner's store. All bytes without a name are zero, and stay reserved for
 * later fields, each announced by a bit of taskshared_info.features.
 */
struct task_sharedinfo {
	volatile __u16 sched_delay;
	__u8 __reserved_owner[62];

	__u32 tid;
	__u8 __reserved_kernel[60];
} __attribute__((aligned(TASKSHARED_SLOT_SIZE)));

/*
 * ioctl
 * -----
 * The size of each structure is part of the ioctl number, and the kernel takes
 * smaller (older) and larger (newer) ones than its own: what a smaller one lacks
 * is taken as zero, what a larger one has in addition must be zero on entry and
 * stays zero (else E2BIG). Errors change nothing.
 *
 * All calls:
 *	EPERM	the file was opened by another process (before fork or exec, or
 *		passed): open the device yourself
 *	ENOTTY	no such call
 *	EINVAL	unknown bits in flags, or a structure smaller than that of ABI
 *		version 1
 *	E2BIG	a larger structure with something in it this kernel does not know
 *	EFAULT	the argument is not readable or writable memory
 */
#define TASKSHARED_IOC_MAGIC	0xBD

/* Features of the running module; a bit stays set once it was introduced. */
#define TASKSHARED_FEATURE_DELAY	(1ULL << 0) /* sched_delay is honoured */
#define TASKSHARED_FEATURE_SCHED_YIELD	(1ULL << 1) /* sched_yield() ends a delay */
#define TASKSHARED_FEATURE_WINDOW	(1ULL << 2) /* mmap at TASKSHARED_WINDOW */

/*
 * What keeps the module from granting delays. None of it does any harm but that.
 *
 * KPROBES	kprobes, which the hook needs, are switched off (debugfs:
 *		kprobes/enabled)
 * FTRACE	ftrace is switched off (sysctl kernel.ftrace_enabled)
 * LOST		many requests in a row went unseen on some CPU: something else that
 *		redirects schedule() seems to be in the way (or a thread is preempted
 *		in the kernel again and again); until one is decided on there, or the
 *		hooks are armed anew
 * CAP		an online CPU has no timer that works; no delays there
 *
 * While KPROBES or FTRACE is set no first slot can be had (EAGAIN), and no delay.
 */
#define TASKSHARED_HEALTH_KPROBES	(1U << 0)
#define TASKSHARED_HEALTH_FTRACE	(1U << 1)
#define TASKSHARED_HEALTH_LOST		(1U << 2)
#define TASKSHARED_HEALTH_CAP		(1U << 3)

/**
 * struct taskshared_info - what the module can do
 * @flags: in: 0
 * @abi_version: out: version of this interface; grows only when an old program
 *	could notice
 * @features: out: TASKSHARED_FEATURE_*
 * @slot_size: out: bytes from one slot to the next
 * @cap_ns: out: longest delay at this moment, in nanoseconds; 0: delays are off
 * @window_offset: out: mmap offset of the window
 * @window_size: out: greatest length of a window, in bytes
 * @health: out: TASKSHARED_HEALTH_*: why delays are not granted though the module is
 *	loaded; 0: all is well
 * @reserved: out: 0
 */
struct taskshared_info {
	__u32 flags;
	__u32 abi_version;
	__u64 features;
	__u32 slot_size;
	__u32 cap_ns;
	__u64 window_offset;
	__u64 window_size;
	__u32 health;
	__u32 reserved;
};

/**
 * struct taskshared_slot - where the calling thread's slot is
 * @flags: in: 0
 * @tid: out: the thread's id, as in the slot
 * @offset: out: offset of the slot from the start of the window, in bytes
 */
struct taskshared_slot {
	__u32 flags;
	__u32 tid;
	__u64 offset;
};

/**
 * struct taskshared_counters - what happened to a thread's requests
 * @flags: in: 0
 * @tid: in: a thread of this process that has a slot, by the id in that slot;
 *	0: the calling thread. out: its id
 * @requested: decisions that found a request (a request that nobody wanted to
 *	interrupt is never seen); the sum of granted, denied and refused_*
 * @granted: delays begun
 * @denied: requests found while a delay was running
 * @yielded: delays ended by the yield call or sched_yield(), before the cap
 * @expired: delays ended by the cap
 * @ended: delays ended otherwise: the thread blocked, was denied, got a signal,
 *	or lost the CPU
 * @active: delays running now: granted - yielded - expired - ended; 0 or 1
 * @refused_off: requests found while delays were off (delay_us=0, or ftrace or
 *	kprobes switched off)
 * @refused_work: ... while other exit work was pending, a signal, or the end of the
 *	group's quota; or before the pass through the scheduler that a delay which was
 *	cut short still owes
 * @refused_class: ... while the thread was not of the fair class
 * @refused_rt: ... while a real-time, deadline or stop task may have been waiting
 *	for the CPU (or one of a BPF scheduler, or with core scheduling in use)
 * @refused_cap: ... while the cap could not be armed on that CPU
 * @delay_ns: length of all ended delays, from the decision to the pass through
 *	the scheduler
 * @delay_max_ns: length of the longest one
 * @overrun_ns: time spent past the cap
 *
 * All values count from the moment the thread got its slot, are kept in kernel
 * memory, and form one consistent snapshot. Times are in nanoseconds of
 * CLOCK_MONOTONIC.
 */
struct taskshared_counters {
	__u32 flags;
	__u32 tid;
	__u64 requested;
	__u64 granted;
	__u64 denied;
	__u64 yielded;
	__u64 expired;
	__u64 ended;
	__u64 active;
	__u64 refused_off;
	__u64 refused_work;
	__u64 refused_class;
	__u64 refused_rt;
	__u64 refused_cap;
	__u64 delay_ns;
	__u64 delay_max_ns;
	__u64 overrun_ns;
};

/* What is here, and how much of it. */
#define TASKSHARED_IOC_INFO	_IOWR(TASKSHARED_IOC_MAGIC, 0, struct taskshared_info)

/*
 * Get or create the calling thread's slot.
 *	ENOMEM	no memory, or RLIMIT_MEMLOCK is reached
 *	ENOSPC	the pool has all the pages it may have
 *	EDQUOT	the user's processes have all the slots they may have (max_slots)
 *	EBUSY	the hooks could not be armed: something else holds them (livepatch)
 *	EAGAIN	the hooks are switched off: see health in struct taskshared_info
 *	EINTR	the thread was killed
 */
#define TASKSHARED_IOC_SLOT	_IOWR(TASKSHARED_IOC_MAGIC, 1, struct taskshared_slot)

/*
 * Release the calling thread's slot; a running delay ends. No argument.
 *	ENOENT	the thread has no slot
 */
#define TASKSHARED_IOC_RELEASE	_IO(TASKSHARED_IOC_MAGIC, 2)

/*
 * Give the CPU back. Returns 1 if a delay was running, 0 if not (then nothing
 * happens). No argument.
 */
#define TASKSHARED_IOC_YIELD	_IO(TASKSHARED_IOC_MAGIC, 3)

/*
 * Counters of a thread.
 *	ESRCH	no thread of this process with that id has a slot
 */
#define TASKSHARED_IOC_COUNTERS	_IOWR(TASKSHARED_IOC_MAGIC, 4, struct taskshared_counters)

#endif /* _UAPI_LINUX_TASKSHARED_H */
