// SPDX-License-Identifier: MIT
/*
 * The system calls that the library makes. A test replaces this file by a
 * device that is not there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

/* libc leaves its error in errno, which belongs to the program: give it back. */
static long result(long ret, int saved)
{
	if (ret == -1)
		ret = -errno;
	errno = saved;
	return ret;
}

/*
 * Not open() and close(): they are cancellation points. Not 0, 1 or 2: a program
 * that runs with these closed means them to stay so.
 */
int sys_open_device(void)
{
	int saved = errno, fd, high;

	do {
		fd = result(syscall(SYS_openat, AT_FDCWD, TASKSHARED_DEVICE,
				    O_RDWR | O_CLOEXEC),
			    saved);
	} while (fd == -EINTR);
	if (fd < 0 || fd > 2)
		return fd;
	high = result(fcntl(fd, F_DUPFD_CLOEXEC, 3), saved);
	sys_close(fd);
	return high;
}

void sys_close(int fd)
{
	int saved = errno;

	result(syscall(SYS_close, fd), saved);
}

int sys_ioctl(int fd, unsigned long request, void *arg)
{
	int saved = errno;

	return result(ioctl(fd, request, arg), saved);
}

int sys_map(int fd, size_t size, __u64 offset, void **where)
{
	int saved = errno;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       (off_t)offset);

	if (p == MAP_FAILED)
		return result(-1, saved);
	*where = p;
	return 0;
}

/*
 * Is @fd the device? With *@id == 0: remember what it is. A program may have
 * closed our descriptor, and the number may be a file of its own by now.
 */
int sys_same_file(int fd, __u64 *id)
{
	int saved = errno;
	struct stat st;

	if (result(fstat(fd, &st), saved) < 0 || !S_ISCHR(st.st_mode))
		return 0;
	if (!*id)
		*id = st.st_rdev;
	return *id == st.st_rdev;
}

/* All but those that report a fault of the code that runs now. */
void sys_block_signals(sigset_t *saved)
{
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGSEGV);
	sigdelset(&set, SIGBUS);
	sigdelset(&set, SIGFPE);
	sigdelset(&set, SIGILL);
	sigdelset(&set, SIGTRAP);
	sigdelset(&set, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &set, saved);
}

void sys_restore_signals(const sigset_t *saved)
{
	pthread_sigmask(SIG_SETMASK, saved, NULL);
}
