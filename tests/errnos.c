// SPDX-License-Identifier: MIT
/*
 * Every error of the interface, provoked once on purpose. After each of them
 * nothing is changed: the slot, its counters, the pool and the mappings are what
 * they were.
 *
 * Not provoked: ENOSPC, because a pool takes 4096 pages, and only threads take
 * slots: 131,072 of them are more than a process may have by default (pid_max)
 * and more memory than a guest has; and EBUSY, for which something else has to
 * hold the hooks (a livepatch on schedule()).
 */

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define SLOTS_PER_PAGE	32
#define IOC(nr, size)	_IOC(_IOC_READ | _IOC_WRITE, TASKSHARED_IOC_MAGIC, nr, size)

/* The calls with a structure, by number. */
static const struct {
	const char *name;
	unsigned int nr;
	size_t size;
} calls[] = {
	{ "INFO", 0, sizeof(struct taskshared_info) },
	{ "SLOT", 1, sizeof(struct taskshared_slot) },
	{ "COUNTERS", 4, sizeof(struct taskshared_counters) },
};

/* What a failing call must not change. */
struct state {
	struct task_sharedinfo slot;
	struct taskshared_counters counters;
	long long slots, pages, pools, files;
	int mappings;
};

static void take_state(int fd, struct task_sharedinfo *slot, struct state *state)
{
	memset(state, 0, sizeof(*state));
	memcpy(&state->slot, slot, sizeof(state->slot));
	tst_counters(fd, 0, &state->counters);
	state->slots = tst_state("slots");
	state->pages = tst_state("pages");
	state->pools = tst_state("pools");
	state->files = tst_state("files");
	state->mappings = tst_count_mappings();
}

FIXTURE(errnos) {
	int fd;
	struct task_sharedinfo *slot;
	struct state before;
};

FIXTURE_SETUP(errnos)
{
	self->fd = tst_open();
	ASSERT_LE(0, self->fd)
		TH_LOG("%s: %s", TASKSHARED_DEVICE, strerror(errno));
	self->slot = tst_slot(self->fd);
	ASSERT_NE(NULL, self->slot);
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 1 && tst_state("pools") == 1, 5000));
	/* Something to lose. */
	memset(self->slot->__reserved_owner, 0x5a, sizeof(self->slot->__reserved_owner));
	take_state(self->fd, self->slot, &self->before);
	ASSERT_EQ(1, self->before.slots);
	ASSERT_EQ(1, self->before.mappings);
}

FIXTURE_TEARDOWN(errnos)
{
	close(self->fd);
}

/* The call fails with this errno and has no effect. */
#define EXPECT_ERRNO(expected, call) do {					\
	struct state after;							\
	errno = 0;								\
	EXPECT_EQ(-1, (long)(call))						\
		TH_LOG("%s should fail with %s", #call, strerror(expected));	\
	EXPECT_EQ(expected, errno)						\
		TH_LOG("%s: %s", #call, strerror(errno));			\
	take_state(self->fd, self->slot, &after);				\
	EXPECT_EQ(0, memcmp(&self->before, &after, sizeof(after)))		\
		TH_LOG("%s has changed something", #call);			\
} while (0)

TEST_F(errnos, enotty)
{
	char buffer[256] = { 0 };

	EXPECT_ERRNO(ENOTTY, ioctl(self->fd, _IO(TASKSHARED_IOC_MAGIC, 5)));
	EXPECT_ERRNO(ENOTTY, ioctl(self->fd, _IO(TASKSHARED_IOC_MAGIC, 255)));
	EXPECT_ERRNO(ENOTTY, ioctl(self->fd, IOC(5, 64), buffer));
	EXPECT_ERRNO(ENOTTY, ioctl(self->fd, _IO('t', 2), 0));
	EXPECT_ERRNO(ENOTTY, ioctl(self->fd, _IOWR('t', 0, struct taskshared_info), buffer));
	EXPECT_ERRNO(ENOTTY, ioctl(self->fd, 0, 0));
}

TEST_F(errnos, einval_flags)
{
	unsigned int i, bit;
	union {
		__u32 flags;
		char bytes[256];
	} arg;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		for (bit = 0; bit < 32; bit++) {
			memset(&arg, 0, sizeof(arg));
			arg.flags = 1U << bit;
			EXPECT_ERRNO(EINVAL, ioctl(self->fd, IOC(calls[i].nr, calls[i].size), &arg));
			EXPECT_EQ(1U << bit, arg.flags);
			EXPECT_TRUE(tst_is_zero(arg.bytes + 4, sizeof(arg) - 4));
		}
	}
}

/* Calls that take no argument are often made without one: any value will do. */
TEST_F(errnos, no_argument_is_looked_at)
{
	unsigned long some[] = { 0, 1, 0x1000, (unsigned long)&some, ~0UL };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(some); i++) {
		EXPECT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_YIELD, some[i]));
		EXPECT_EQ(gettid(), self->slot->tid);
		EXPECT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_RELEASE, some[i]));
		EXPECT_EQ(0, self->slot->tid);
		ASSERT_LE(0, tst_slot_offset(self->fd));
	}
	EXPECT_FALSE(tst_is_zero(some, sizeof(some)));
}

TEST_F(errnos, einval_small_structure)
{
	char arg[256] = { 0 };
	unsigned int i;
	size_t size;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		for (size = 0; size < calls[i].size; size += size < 8 ? 1 : 8)
			EXPECT_ERRNO(EINVAL, ioctl(self->fd, IOC(calls[i].nr, size), arg));
	EXPECT_TRUE(tst_is_zero(arg, sizeof(arg)));
}

/* A program built for a later version asks for something unknown here. */
TEST_F(errnos, e2big)
{
	static char arg[16384];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		const size_t sizes[] = {
			calls[i].size + 1, calls[i].size + 8, 4096, 8192, 16383,
		};

		for (j = 0; j < ARRAY_SIZE(sizes); j++) {
			memset(arg, 0, sizeof(arg));
			arg[sizes[j] - 1] = 1;
			EXPECT_ERRNO(E2BIG, ioctl(self->fd, IOC(calls[i].nr, sizes[j]), arg));
			EXPECT_TRUE(tst_is_zero(arg, sizes[j] - 1));
		}
	}
}

/* ... or just has room for what is not there. */
TEST_F(errnos, larger_structure_is_taken)
{
	struct taskshared_counters *counters;
	struct taskshared_slot *slot;
	struct taskshared_info *info;
	static char arg[16384];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		const size_t sizes[] = {
			calls[i].size + 1, calls[i].size + 8, 4096, 8192, 16383,
		};

		for (j = 0; j < ARRAY_SIZE(sizes); j++) {
			memset(arg, 0, sizeof(arg));
			/* Behind the structure: not the kernel's to read or write. */
			arg[sizes[j]] = 0x6b;
			EXPECT_EQ(0, ioctl(self->fd, IOC(calls[i].nr, sizes[j]), arg))
				TH_LOG("%s with %zu bytes: %s", calls[i].name, sizes[j],
				       strerror(errno));
			EXPECT_TRUE(tst_is_zero(arg + calls[i].size, sizes[j] - calls[i].size));
			EXPECT_EQ(0x6b, arg[sizes[j]]);
			info = (void *)arg;
			slot = (void *)arg;
			counters = (void *)arg;
			if (calls[i].nr == 0)
				EXPECT_EQ(TASKSHARED_SLOT_SIZE, info->slot_size);
			if (calls[i].nr == 1)
				EXPECT_EQ(gettid(), slot->tid);
			if (calls[i].nr == 4)
				EXPECT_EQ(gettid(), counters->tid);
		}
	}
}

static void *efault_without_slot(void *arg)
{
	struct taskshared_counters counters;
	unsigned long result = 0;
	int fd = *(int *)arg;
	void *page;

	/* Readable, so that the call is made; not writable, so that it cannot answer. */
	page = mmap(NULL, tst_page_size(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ioctl(fd, TASKSHARED_IOC_SLOT, page) != -1 || errno != EFAULT)
		result |= 1;
	/* The counters tell whether the thread has got a slot all the same. */
	if (tst_counters(fd, 0, &counters) != -1 || errno != ESRCH)
		result |= 2;
	munmap(page, tst_page_size());
	return (void *)result;
}

TEST_F(errnos, efault)
{
	size_t page_size = tst_page_size();
	char *pages, *read_only;
	unsigned int i, j;
	pthread_t thread;
	void *result;

	pages = mmap(NULL, 2 * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	ASSERT_NE(MAP_FAILED, pages);
	/* Not unmapped: the hole would be the first place for another mapping. */
	ASSERT_EQ(0, mprotect(pages + page_size, page_size, PROT_NONE));
	read_only = mmap(NULL, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, read_only);

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		void *bad[] = {
			NULL, (void *)8, pages + page_size, pages + page_size - 8,
			(void *)0xffffffff81000000UL, (void *)0x8000000000000000UL,
			(void *)~0UL, read_only,
		};

		for (j = 0; j < ARRAY_SIZE(bad); j++)
			EXPECT_ERRNO(EFAULT, ioctl(self->fd, IOC(calls[i].nr, calls[i].size),
						   bad[j]));
		/* A longer structure whose tail is not there. */
		EXPECT_ERRNO(EFAULT, ioctl(self->fd, IOC(calls[i].nr, calls[i].size + 8),
					   pages + page_size - calls[i].size));
		EXPECT_TRUE(tst_is_zero(pages, page_size - 256));
	}

	ASSERT_EQ(0, pthread_create(&thread, NULL, efault_without_slot, &self->fd));
	pthread_join(thread, &result);
	EXPECT_EQ(0, (unsigned long)result & 1);
	EXPECT_EQ(0, (unsigned long)result & 2)
		TH_LOG("IOC_SLOT gave a slot and failed with EFAULT: errors change nothing");
}

TEST_F(errnos, einval_mmap)
{
	size_t page_size = tst_page_size();
	struct taskshared_info info = { 0 };
	const int rw = PROT_READ | PROT_WRITE;
	unsigned int i;

	ASSERT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_INFO, &info));

	const struct {
		size_t size;
		off_t offset;
	} bad[] = {
		{ 2 * page_size, 0 },
		{ page_size, (off_t)page_size },
		{ page_size, TASKSHARED_WINDOW - (off_t)page_size },
		{ page_size, TASKSHARED_WINDOW + (off_t)page_size },
		{ page_size, (off_t)1 << 40 },
		{ info.window_size + page_size, TASKSHARED_WINDOW },
		{ info.window_size, 0 },
	};

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_ERRNO(EINVAL, mmap(NULL, bad[i].size, rw, MAP_SHARED, self->fd,
					  bad[i].offset));
	EXPECT_ERRNO(EINVAL, mmap(NULL, page_size, rw, MAP_PRIVATE, self->fd, 0));
	EXPECT_ERRNO(EINVAL, mmap(NULL, page_size, rw, MAP_PRIVATE, self->fd, TASKSHARED_WINDOW));
	EXPECT_ERRNO(EINVAL, mmap(NULL, page_size, PROT_READ, MAP_PRIVATE, self->fd, 0));
}

TEST_F(errnos, not_executable)
{
	size_t page_size = tst_page_size();
	const int rw = PROT_READ | PROT_WRITE, rx = PROT_READ | PROT_EXEC;
	void *page = tst_page_of(self->slot);
	char *window;

	EXPECT_ERRNO(EPERM, mmap(NULL, page_size, rx, MAP_SHARED, self->fd, 0));
	EXPECT_ERRNO(EPERM, mmap(NULL, page_size, rw | PROT_EXEC, MAP_SHARED, self->fd, 0));
	EXPECT_ERRNO(EPERM, mmap(NULL, page_size, rx, MAP_SHARED, self->fd, TASKSHARED_WINDOW));
	EXPECT_ERRNO(EACCES, mprotect(page, page_size, rx));
	EXPECT_ERRNO(EACCES, mprotect(page, page_size, rw | PROT_EXEC));

	window = tst_map_window(self->fd, page_size);
	ASSERT_NE(NULL, window);
	take_state(self->fd, self->slot, &self->before);
	EXPECT_ERRNO(EACCES, mprotect(window, page_size, rx));
}

TEST_F(errnos, cannot_grow)
{
	size_t page_size = tst_page_size();
	void *page = tst_page_of(self->slot);
	char *window;

	EXPECT_ERRNO(EFAULT, mremap(page, page_size, 2 * page_size, MREMAP_MAYMOVE));
	EXPECT_ERRNO(EFAULT, mremap(page, page_size, 2 * page_size, 0));
	window = tst_map_window(self->fd, 2 * page_size);
	ASSERT_NE(NULL, window);
	take_state(self->fd, self->slot, &self->before);
	EXPECT_ERRNO(EFAULT, mremap(window, 2 * page_size, 4 * page_size, MREMAP_MAYMOVE));
	EXPECT_EQ(gettid(), self->slot->tid);
}

/* SIGBUS behind the last page of the pool */

static sigjmp_buf jump;

static void on_sigbus(int signal)
{
	(void)signal;
	siglongjmp(jump, 1);
}

static bool sigbus_at(volatile char *address, bool write)
{
	if (sigsetjmp(jump, 1))
		return true;
	if (write)
		*address = 1;
	else
		(void)*address;
	return false;
}

TEST_F(errnos, sigbus_beyond_the_pool)
{
	struct sigaction action = { .sa_handler = on_sigbus };
	size_t page_size = tst_page_size();
	struct taskshared_info info = { 0 };
	char *window;

	ASSERT_EQ(0, sigaction(SIGBUS, &action, NULL));
	ASSERT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_INFO, &info));
	window = tst_map_window(self->fd, 0);
	ASSERT_NE(NULL, window);
	EXPECT_FALSE(sigbus_at(window, false));
	EXPECT_TRUE(sigbus_at(window + page_size, false));
	EXPECT_TRUE(sigbus_at(window + page_size, true));
	EXPECT_TRUE(sigbus_at(window + info.window_size - 1, true));
	EXPECT_EQ(1, tst_state("pages"));
	EXPECT_EQ(gettid(), self->slot->tid);
}

/* EPERM: a file that another process opened, by fork and by message */

static int open_and_send(void *arg)
{
	int fd = tst_open();

	return fd < 0 || !tst_slot(fd) || tst_send_fd(*(int *)arg, fd);
}

TEST_F(errnos, eperm)
{
	size_t page_size = tst_page_size();
	const int rw = PROT_READ | PROT_WRITE;
	char arg[256] = { 0 };
	int fd, ends[2];
	unsigned int i;

	/* The child is gone when its file is used here: its pool must still be sound. */
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	ASSERT_EQ(0, tst_in_child(open_and_send, &ends[1]));
	fd = tst_receive_fd(ends[0]);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 1, 5000));
	take_state(self->fd, self->slot, &self->before);

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		EXPECT_ERRNO(EPERM, ioctl(fd, IOC(calls[i].nr, calls[i].size), arg));
	EXPECT_ERRNO(EPERM, ioctl(fd, TASKSHARED_IOC_RELEASE, 0));
	EXPECT_ERRNO(EPERM, ioctl(fd, TASKSHARED_IOC_YIELD, 0));
	EXPECT_ERRNO(EPERM, mmap(NULL, page_size, rw, MAP_SHARED, fd, 0));
	EXPECT_ERRNO(EPERM, mmap(NULL, page_size, rw, MAP_SHARED, fd, TASKSHARED_WINDOW));
	close(fd);
	EXPECT_TRUE(tst_wait_until(tst_state("pools") == 1 && tst_state("files") ==
				   self->before.files - 1, 5000));
}

/* ESRCH and ENOENT */

static void *no_slot(void *arg)
{
	struct taskshared_counters counters;
	unsigned long result = 0;
	int fd = *(int *)arg;

	if (ioctl(fd, TASKSHARED_IOC_RELEASE, 0) != -1 || errno != ENOENT)
		result |= 1;
	if (tst_counters(fd, 0, &counters) != -1 || errno != ESRCH)
		result |= 2;
	if (tst_counters(fd, gettid(), &counters) != -1 || errno != ESRCH)
		result |= 4;
	/* Nothing to yield, and no slot is given for asking. */
	if (ioctl(fd, TASKSHARED_IOC_YIELD, 0) != 0)
		result |= 8;
	if (tst_state("slots") != 1)
		result |= 16;
	return (void *)result;
}

static int slot_in_child(void *arg)
{
	const int *pipes = arg;
	int fd = tst_open();
	char byte;

	if (fd < 0 || !tst_slot(fd) || write(pipes[1], "", 1) != 1)
		return 1;
	return read(pipes[2], &byte, 1) != 0;
}

TEST_F(errnos, esrch_and_enoent)
{
	struct taskshared_counters counters;
	int up[2], down[2], pipes[3];
	pthread_t thread;
	void *result;
	pid_t child;
	char byte;

	EXPECT_ERRNO(ESRCH, tst_counters(self->fd, 0x7fffffff, &counters));
	EXPECT_ERRNO(ESRCH, tst_counters(self->fd, -1, &counters));
	EXPECT_ERRNO(ESRCH, tst_counters(self->fd, 1, &counters));
	EXPECT_ERRNO(ESRCH, tst_counters(self->fd, getppid(), &counters));

	ASSERT_EQ(0, pthread_create(&thread, NULL, no_slot, &self->fd));
	pthread_join(thread, &result);
	EXPECT_EQ(0, (unsigned long)result);

	/* A thread with a slot, but of another process. */
	ASSERT_EQ(0, pipe(up));
	ASSERT_EQ(0, pipe(down));
	pipes[1] = up[1];
	pipes[2] = down[0];
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		close(down[1]);
		_exit(slot_in_child(pipes));
	}
	ASSERT_EQ(1, read(up[0], &byte, 1));
	take_state(self->fd, self->slot, &self->before);
	EXPECT_EQ(2, self->before.slots);
	EXPECT_ERRNO(ESRCH, tst_counters(self->fd, child, &counters));
	close(down[1]);
	EXPECT_EQ(0, tst_wait_child(child));
}

/* ENOMEM: RLIMIT_MEMLOCK */

static int limit_of_nothing(void *arg)
{
	struct taskshared_counters counters;
	int fd;

	(void)arg;
	if (tst_become_user(TST_NOBODY, 0))
		return 1;
	fd = tst_open();
	if (fd < 0)
		return 2;
	if (tst_slot_offset(fd) != -1 || errno != ENOMEM)
		return 3;
	if (tst_map_page(fd) || errno != ENOMEM)
		return 4;
	if (tst_counters(fd, 0, &counters) != -1 || errno != ESRCH)
		return 5;
	if (tst_count_mappings())
		return 6;
	return 0;
}

static int slots_of_one_page(int fd)
{
	struct tst_crew crew = { .fd = fd, .count = SLOTS_PER_PAGE + 1 };
	unsigned int i, good = 0, enomem = 0;

	if (tst_crew_start(&crew))
		return 1;
	for (i = 0; i < crew.count; i++) {
		good += crew.members[i].error == 0;
		enomem += crew.members[i].error == ENOMEM;
	}
	tst_crew_stop(&crew);
	return good == SLOTS_PER_PAGE && enomem == 1 ? 0 : 2;
}

static int limit_of_one_page(void *arg)
{
	struct taskshared_counters counters;
	int fd, result, round;
	void *page;

	(void)arg;
	if (tst_become_user(TST_NOBODY, tst_page_size()))
		return 1;
	/* Once more after everything was given back: so was the charge. */
	for (round = 0; round < 3; round++) {
		fd = tst_open();
		if (fd < 0)
			return 2;
		result = slots_of_one_page(fd);
		if (result)
			return 10 * (round + 1) + result;
		/* The threads are gone: room for this one, by mmap. */
		if (!tst_wait_until((page = tst_map_page(fd)) != NULL, 5000))
			return 3;
		if (tst_counters(fd, 0, &counters) || ioctl(fd, TASKSHARED_IOC_RELEASE, 0))
			return 4;
		if (munmap(page, tst_page_size()) || close(fd))
			return 5;
	}
	return 0;
}

/* The limit is the user's, over all processes. */
static int limit_of_the_user(void *arg)
{
	int *ends = arg;
	int status, fd;
	pid_t child;
	char byte;

	if (tst_become_user(TST_NOBODY, tst_page_size()))
		return 1;
	child = fork();
	if (!child) {
		fd = tst_open();
		byte = fd >= 0 && tst_slot_offset(fd) == 0;
		if (write(ends[1], &byte, 1) != 1)
			_exit(1);
		while (1)
			pause();
	}
	if (child < 0 || read(ends[0], &byte, 1) != 1 || !byte)
		return 2;
	fd = tst_open();
	status = tst_slot_offset(fd) == -1 && errno == ENOMEM ? 0 : 3;
	kill(child, SIGKILL);
	tst_wait_child(child);
	if (!status && !tst_wait_until(tst_slot_offset(fd) == 0, 5000))
		status = 4;
	return status;
}

TEST_F(errnos, enomem_by_rlimit_memlock)
{
	int ends[2];

	EXPECT_EQ(0, tst_in_child(limit_of_nothing, NULL))
		TH_LOG("the number is that of the check in limit_of_nothing()");
	EXPECT_EQ(0, tst_in_child(limit_of_one_page, NULL))
		TH_LOG("the number is that of the check in limit_of_one_page()");
	ASSERT_EQ(0, pipe(ends));
	EXPECT_EQ(0, tst_in_child(limit_of_the_user, ends))
		TH_LOG("the number is that of the check in limit_of_the_user()");
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 1 && tst_state("pages") == 1, 5000));
}

TEST_HARNESS_MAIN
