// SPDX-License-Identifier: MIT
/*
 * A device in memory that takes the place of sys.c: slots by thread id, a window
 * that a forked child does not have, one valid descriptor number at a time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake.h"

#define SLOTS 1024

struct fake fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct task_sharedinfo *window;
static int valid_fd = 1000;
static pid_t owner;

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.info.abi_version = TASKSHARED_ABI_VERSION;
	fake.info.features = TASKSHARED_FEATURE_DELAY |
			     TASKSHARED_FEATURE_SCHED_YIELD |
			     TASKSHARED_FEATURE_WINDOW;
	fake.info.slot_size = TASKSHARED_SLOT_SIZE;
	fake.info.cap_ns = 50000;
	fake.info.window_offset = TASKSHARED_WINDOW;
	fake.info.window_size = SLOTS * TASKSHARED_SLOT_SIZE;
}

void fake_restart(void)
{
	taskshared_detach();
	device_forget();
	memset(&taskshared_tls, 0, sizeof(taskshared_tls));
	taskshared_tls.nest = NEST_UNATTACHED;
	fake_reset();
}

void fake_lose_fd(void)
{
	valid_fd++;
}

int fake_users(void)
{
	int i, n = 0;

	for (i = 0; window && i < SLOTS; i++)
		n += !!window[i].tid;
	return n;
}

static struct task_sharedinfo *find(__u32 tid)
{
	int i;

	for (i = 0; i < SLOTS; i++) {
		if (window[i].tid == tid)
			return &window[i];
	}
	return NULL;
}

int sys_open_device(void)
{
	if (fake.open_error)
		return fake.open_error;
	__atomic_fetch_add(&fake.opens, 1, __ATOMIC_RELAXED);
	if (owner != getpid()) {
		owner = getpid();
		window = NULL;
		pthread_mutex_init(&lock, NULL);
		valid_fd++;
	}
	if (!window) {
		window = mmap(NULL, SLOTS * sizeof(*window),
			      PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(window, SLOTS * sizeof(*window), MADV_DONTFORK);
	}
	return valid_fd;
}

void sys_close(int fd)
{
	(void)fd;
	fake.closes++;
}

static int ioctl_slot(struct taskshared_slot *where)
{
	__u32 tid = gettid();
	struct task_sharedinfo *slot;

	if (fake.slot_error)
		return fake.slot_error;
	pthread_mutex_lock(&lock);
	slot = find(tid);
	if (!slot) {
		slot = find(0);
		slot->tid = tid;
	}
	pthread_mutex_unlock(&lock);
	where->tid = tid;
	where->offset = (char *)slot - (char *)window;
	__atomic_fetch_add(&fake.slots, 1, __ATOMIC_RELAXED);
	return 0;
}

static int ioctl_release(void)
{
	struct task_sharedinfo *slot;

	pthread_mutex_lock(&lock);
	slot = find(gettid());
	if (slot)
		memset(slot, 0, sizeof(*slot));
	pthread_mutex_unlock(&lock);
	if (!slot)
		return -ENOENT;
	__atomic_fetch_add(&fake.releases, 1, __ATOMIC_RELAXED);
	return 0;
}

int sys_ioctl(int fd, unsigned long request, void *arg)
{
	if (fd != valid_fd)
		return -EBADF;
	if (owner != getpid())
		return -EPERM;
	switch (request) {
	case TASKSHARED_IOC_INFO:
		if (fake.info_error)
			return fake.info_error;
		memcpy(arg, &fake.info, sizeof(fake.info));
		return 0;
	case TASKSHARED_IOC_SLOT:
		return ioctl_slot(arg);
	case TASKSHARED_IOC_RELEASE:
		return ioctl_release();
	case TASKSHARED_IOC_YIELD:
		__atomic_fetch_add(&fake.yields, 1, __ATOMIC_RELAXED);
		return 1;
	case TASKSHARED_IOC_COUNTERS:
		((struct taskshared_counters *)arg)->granted = 7;
		return 0;
	}
	return -ENOTTY;
}

int sys_map(int fd, size_t size, __u64 offset, void **where)
{
	(void)fd;
	(void)size;
	if (fake.map_error)
		return fake.map_error;
	if (offset != TASKSHARED_WINDOW)
		return -EINVAL;
	fake.maps++;
	*where = window;
	return 0;
}

int sys_same_file(int fd, __u64 *id)
{
	*id = 1;
	return fd == valid_fd;
}

void sys_block_signals(sigset_t *saved)
{
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGTRAP);
	pthread_sigmask(SIG_SETMASK, &set, saved);
}

void sys_restore_signals(const sigset_t *saved)
{
	pthread_sigmask(SIG_SETMASK, saved, NULL);
}
