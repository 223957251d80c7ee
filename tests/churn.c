// SPDX-License-Identifier: MIT
/*
 * Threads, processes, mappings and files that come and go as fast as they can, on
 * several CPUs, with delays all the while. At the end nothing of it is left.
 * TASKSHARED_CHURN_S says for how many seconds.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define DEFAULT_S	8
#define CHILD_THREADS	2
#define EXEC		"TASKSHARED_TEST_CHURN_EXEC"

struct churner {
	const char *name;
	void (*step)(struct churner *self);
	int fd;
	uint64_t random;
	volatile bool *stop;
	pthread_t thread;
	uint64_t steps;
	uint64_t failures;
	int error;
};

static void failed(struct churner *self)
{
	if (!self->failures++)
		self->error = errno;
}

/* A short life with a slot: a few requests, and an end in the middle of one. */
static void *short_life(void *arg)
{
	struct churner *self = arg;
	struct task_sharedinfo *slot = tst_slot(self->fd);
	int i;

	if (!slot)
		return (void *)1;
	for (i = 0; i < 50; i++) {
		tst_request(slot);
		if (slot->sched_delay == TASK_PREEMPT_DELAY_GRANTED)
			sched_yield();
	}
	munmap(tst_page_of(slot), tst_page_size());
	return NULL;
}

static void threads_step(struct churner *self)
{
	pthread_t threads[4];
	void *result;
	int i, count;

	for (count = 0; count < 4; count++)
		if (pthread_create(&threads[count], NULL, short_life, self))
			break;
	for (i = 0; i < count; i++) {
		pthread_join(threads[i], &result);
		if (result)
			failed(self);
	}
}

static int child_with_threads(void)
{
	struct tst_crew crew = {
		.fd = tst_open(), .count = CHILD_THREADS, .work = tst_request_for_ever,
	};

	if (crew.fd < 0 || tst_crew_start(&crew))
		return 1;
	while (1)
		pause();
}

/* A process with threads, killed whatever it is doing just then. */
static void kill_step(struct churner *self)
{
	int code;
	pid_t child = fork();

	if (child < 0) {
		failed(self);
		return;
	}
	if (!child)
		_exit(child_with_threads());
	tst_sleep(tst_random(&self->random) % (6 * TST_MSEC));
	kill(child, SIGKILL);
	code = tst_wait_child(child);
	if (code != 256 + SIGKILL)
		failed(self);
}

/* exec in a process that has slots, from the first thread or another one. */
static void *exec_itself(void *arg)
{
	char *const argv[] = { (char *)"churn", NULL };
	char *const environment[] = { (char *)EXEC "=1", NULL };

	tst_slot(*(int *)arg);
	execve("/proc/self/exe", argv, environment);
	_exit(99);
}

static void __attribute__((constructor)) after_exec(void)
{
	if (getenv(EXEC))
		_exit(0);
}

static void exec_step(struct churner *self)
{
	struct tst_crew crew = { .count = 2, .work = tst_request_for_ever };
	pthread_t thread;
	pid_t child = fork();

	if (child < 0) {
		failed(self);
		return;
	}
	if (!child) {
		crew.fd = tst_open();
		if (crew.fd < 0 || !tst_slot(crew.fd) || tst_crew_start(&crew))
			_exit(98);
		if (tst_random(&self->random) & 1)
			exec_itself(&crew.fd);
		if (pthread_create(&thread, NULL, exec_itself, &crew.fd))
			_exit(97);
		while (1)
			pause();
	}
	if (tst_wait_child(child))
		failed(self);
}

/* Mappings of page and window, cut and dropped, with the file closed before. */
static void mapping_step(struct churner *self)
{
	size_t page_size = tst_page_size();
	int fd = tst_open();
	char *window, *page;

	if (fd < 0) {
		failed(self);
		return;
	}
	window = tst_map_window(fd, 8 * page_size);
	page = tst_map_page(fd);
	if (!window || !page)
		failed(self);
	close(fd);
	if (page)
		munmap(page, page_size);
	if (window) {
		*(volatile char *)(window + 40) = 1;
		/* Each part once: the hole may be another thread's by then. */
		munmap(window + page_size, 2 * page_size);
		munmap(window, page_size);
		munmap(window + 3 * page_size, 5 * page_size);
	}
}

/* The same thread lets go and takes again. */
static void release_step(struct churner *self)
{
	struct task_sharedinfo *slot = tst_slot(self->fd);
	uint64_t end = tst_now() + tst_random(&self->random) % (300 * TST_USEC);

	if (!slot) {
		failed(self);
		return;
	}
	while (tst_now() < end)
		tst_request(slot);
	munmap(tst_page_of(slot), tst_page_size());
	if (ioctl(self->fd, TASKSHARED_IOC_RELEASE, 0))
		failed(self);
}

/* Migrates in the middle of whatever it is. */
static void migrate_step(struct churner *self)
{
	long long offset = tst_slot_offset(self->fd);

	if (offset < 0 || tst_pin((int)(tst_random(&self->random) % (unsigned int)tst_cpus())))
		failed(self);
	release_step(self);
}

static void cap_step(struct churner *self)
{
	static const char * const values[] = { "5", "50", "20", "0", "50", "50" };

	if (tst_write_delay_us(values[tst_random(&self->random) % ARRAY_SIZE(values)]))
		failed(self);
	tst_sleep(5 * TST_MSEC);
}

/* Reads what others are just writing. */
static void look_step(struct churner *self)
{
	struct taskshared_counters totals;
	const char *message;
	char text[16384];

	if (tst_totals(&totals) || !tst_adds_up(&totals, &message)) {
		errno = ERANGE;
		failed(self);
	}
	if (tst_read_file("/sys/kernel/debug/taskshared/threads", text, sizeof(text)) < 0)
		failed(self);
	tst_sleep(TST_MSEC);
}

static void *churn(void *arg)
{
	struct churner *self = arg;

	while (!*self->stop) {
		self->step(self);
		self->steps++;
	}
	return NULL;
}

FIXTURE(churn) {
	int fd;
};

FIXTURE_SETUP(churn)
{
	self->fd = tst_open();
	ASSERT_LE(0, self->fd)
		TH_LOG("%s: %s", TASKSHARED_DEVICE, strerror(errno));
}

FIXTURE_TEARDOWN(churn)
{
	tst_write_delay_us("50");
	if (self->fd >= 0)
		close(self->fd);
}

TEST_F_TIMEOUT(churn, everything_at_once, 600)
{
	struct churner churners[] = {
		{ .name = "threads", .step = threads_step },
		{ .name = "threads", .step = threads_step },
		{ .name = "threads", .step = threads_step },
		{ .name = "kill", .step = kill_step },
		{ .name = "exec", .step = exec_step },
		{ .name = "mapping", .step = mapping_step },
		{ .name = "release", .step = release_step },
		{ .name = "migrate", .step = migrate_step },
		{ .name = "cap", .step = cap_step },
		{ .name = "look", .step = look_step },
	};
	const char *word = getenv("TASKSHARED_CHURN_S"), *message;
	uint64_t seconds = word ? strtoul(word, NULL, 10) : DEFAULT_S;
	struct taskshared_counters totals;
	volatile bool stop = false;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(churners); i++) {
		churners[i].fd = self->fd;
		churners[i].stop = &stop;
		churners[i].random = 0x2545f4914f6cdd1dULL + i;
		ASSERT_EQ(0, pthread_create(&churners[i].thread, NULL, churn, &churners[i]));
	}
	tst_sleep(seconds * TST_SEC);
	stop = true;
	for (i = 0; i < ARRAY_SIZE(churners); i++) {
		pthread_join(churners[i].thread, NULL);
		printf("# %s: %llu steps\n", churners[i].name,
		       (unsigned long long)churners[i].steps);
		EXPECT_LE(1, churners[i].steps);
		EXPECT_EQ(0, churners[i].failures)
			TH_LOG("%s: the first one: %s", churners[i].name,
			       strerror(churners[i].error));
	}
	close(self->fd);
	self->fd = -1;

	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 0, 10000))
		TH_LOG("%lld slots left", tst_state("slots"));
	EXPECT_TRUE(tst_wait_until(tst_state("pages") == 0 && tst_state("pools") == 0 &&
				   tst_state("files") == 0, 10000))
		TH_LOG("left: pools %lld, files %lld, pages %lld", tst_state("pools"),
		       tst_state("files"), tst_state("pages"));
	ASSERT_EQ(0, tst_totals(&totals));
	tst_print_counters("totals", &totals);
	EXPECT_TRUE(tst_adds_up(&totals, &message))
		TH_LOG("%s", message);
	EXPECT_EQ(0, totals.active);
	EXPECT_LE(1, totals.granted);
}

TEST_HARNESS_MAIN
