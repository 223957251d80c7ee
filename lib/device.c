// SPDX-License-Identifier: MIT
/*
 * What the process has: one open file of the device and one window, in which
 * the slots of all its threads appear.
 *
 * Made once, under a lock, by the first who needs it; after that the lock is not
 * taken any more. Signals are blocked while a thread holds it, so that a handler
 * never waits for the thread it interrupted.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "internal.h"

static struct {
	pthread_mutex_t lock;
	atomic_int fd; /* -1: not open */
	atomic_bool ready;
	char *window;
	__u64 window_size;
	__u64 id;
} device = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* Does this library understand that module? */
static int check_abi(const struct taskshared_info *info)
{
	const __u64 needed =
		TASKSHARED_FEATURE_DELAY | TASKSHARED_FEATURE_WINDOW;

	if (info->abi_version > TASKSHARED_ABI_VERSION)
		return -EPROTONOSUPPORT;
	if (info->abi_version < TASKSHARED_ABI_VERSION)
		return -EPROTO;
	if ((info->features & needed) != needed)
		return -EPROTO;
	if (info->slot_size < sizeof(struct task_sharedinfo))
		return -EPROTO;
	return 0;
}

static int open_file(void)
{
	struct taskshared_info info = { 0 };
	int fd, err;

	fd = sys_open_device();
	if (fd < 0)
		return fd;
	/* Stored at once: a child forked in this moment knows what to close. */
	atomic_store(&device.fd, fd);
	device.id = 0;
	sys_same_file(fd, &device.id);

	err = sys_ioctl(fd, TASKSHARED_IOC_INFO, &info);
	/* Something else has that name, or a module without this very call. */
	if (err == -ENOTTY || err == -EINVAL)
		err = -EPROTO;
	if (!err)
		err = check_abi(&info);
	if (!err && !device.window) {
		void *window;

		err = sys_map(fd, info.window_size, info.window_offset,
			      &window);
		if (!err) {
			device.window = window;
			device.window_size = info.window_size;
		}
	}
	if (err) {
		atomic_store(&device.fd, -1);
		sys_close(fd);
	}
	return err;
}

/* Make sure that the device is open. */
int device_get(void)
{
	sigset_t signals;
	int err = 0;

	if (atomic_load_explicit(&device.ready, memory_order_acquire))
		return 0;

	/* No device without fork handlers: a child would run into the window. */
	sys_block_signals(&signals);
	err = fork_setup();
	if (!err) {
		pthread_mutex_lock(&device.lock);
		if (!device.ready)
			err = open_file();
		if (!err)
			atomic_store_explicit(&device.ready, 1,
					      memory_order_release);
		pthread_mutex_unlock(&device.lock);
	}
	sys_restore_signals(&signals);
	return err;
}

/* Not the parent's any more: nothing of it may be used, nothing be unmapped. */
void device_forget(void)
{
	int fd = atomic_exchange(&device.fd, -1);

	if (fd >= 0 && sys_same_file(fd, &device.id))
		sys_close(fd);
	device.ready = 0;
	device.window = NULL;
	device.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/*
 * A call on @fd said that this is not the device. Programs close descriptors that
 * they did not open; then the device is opened again. The window stays: other
 * threads have their slots in it.
 */
static int renew(int fd)
{
	sigset_t signals;
	int err = 0;

	sys_block_signals(&signals);
	pthread_mutex_lock(&device.lock);
	/* Unless another thread was faster. */
	if (atomic_load(&device.fd) == fd && !sys_same_file(fd, &device.id))
		err = open_file();
	pthread_mutex_unlock(&device.lock);
	sys_restore_signals(&signals);
	return err;
}

int device_ioctl(unsigned long request, void *arg)
{
	int fd = atomic_load_explicit(&device.fd, memory_order_relaxed);
	int err = sys_ioctl(fd, request, arg);

	if ((err == -EBADF || err == -ENOTTY) && !renew(fd))
		err = sys_ioctl(atomic_load(&device.fd), request, arg);
	return err;
}

/* The slot that the kernel speaks of, or NULL if that cannot be one. */
struct task_sharedinfo *device_slot(const struct taskshared_slot *where)
{
	const __u64 size = sizeof(struct task_sharedinfo);

	if (where->offset % size || device.window_size < size ||
	    where->offset > device.window_size - size)
		return NULL;
	return (struct task_sharedinfo *)(void *)(device.window +
						  where->offset);
}
