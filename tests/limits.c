// SPDX-License-Identifier: MIT
/*
 * Limits: what a user and a control group may take, and that much of it is as cheap as
 * little. RLIMIT_MEMLOCK is in errnos.c. For virtual time: one case compares
 * how long things take.
 */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define MAX_SLOTS	"/sys/module/taskshared/parameters/max_slots"
#define MAX_SLOTS_STD	"32768"
#define GROUP		"/sys/fs/cgroup/taskshared_limits"
#define SLOTS_PER_PAGE	32
#define UNLIMITED	RLIM_INFINITY

FIXTURE(limits)
{
	int fd;
};

FIXTURE_SETUP(limits)
{
	self->fd = tst_open();
	ASSERT_LE(0, self->fd)
		TH_LOG("%s: %s", TASKSHARED_DEVICE, strerror(errno));
}

/* Whatever was refused, nothing of it is left. */
FIXTURE_TEARDOWN(limits)
{
	EXPECT_EQ(0, tst_write_file(MAX_SLOTS, MAX_SLOTS_STD, 0));
	close(self->fd);
	EXPECT_TRUE(tst_wait_until(tst_state("pools") == 0, 10000));
	EXPECT_EQ(0, tst_state("slots"));
	EXPECT_EQ(0, tst_state("pages"));
}

/* max_slots */

/* As many threads as @arg get a slot, one more does not, and later it does. */
static int quota_of_threads(void *arg)
{
	const unsigned int quota = *(const unsigned int *)arg;
	struct tst_crew crew = { .count = quota + 1 };
	unsigned int i, good = 0, refused = 0;

	if (tst_become_user(TST_NOBODY, UNLIMITED))
		return 1;
	crew.fd = tst_open();
	if (crew.fd < 0 || tst_crew_start(&crew))
		return 2;
	for (i = 0; i < crew.count; i++) {
		good += crew.members[i].error == 0;
		refused += crew.members[i].error == EDQUOT;
	}
	if (good != quota || refused != 1)
		return 3;
	/* By mmap it is the same error. */
	if (tst_map_page(crew.fd) || errno != EDQUOT || tst_count_mappings())
		return 4;
	tst_crew_stop(&crew);
	return tst_wait_until(tst_slot_offset(crew.fd) >= 0, 5000) ? 0 : 5;
}

/* 0, or why this user's process got no slot. */
static int gets_slot(void *arg)
{
	int fd;

	if (tst_become_user(*(const uid_t *)arg, UNLIMITED))
		return 1;
	fd = tst_open();
	return tst_slot_offset(fd) < 0 ? errno : 0;
}

/* A process of this user with a slot; it waits to be killed. */
static pid_t start_holder(uid_t uid)
{
	pid_t holder;
	int ends[2];
	char byte = 1;

	if (pipe(ends))
		return -1;
	holder = fork();
	if (!holder) {
		byte = (char)gets_slot(&uid);
		if (write(ends[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	if (read(ends[0], &byte, 1) != 1 || byte)
		holder = -1;
	close(ends[0]);
	close(ends[1]);
	return holder;
}

TEST_F(limits, edquot_by_max_slots)
{
	uid_t nobody = TST_NOBODY, other = TST_NOBODY - 1;
	unsigned int quota = SLOTS_PER_PAGE + 1;
	pid_t holder;

	ASSERT_EQ(0, tst_write_file(MAX_SLOTS, "33", 0));
	EXPECT_EQ(0, tst_in_child(quota_of_threads, &quota))
		TH_LOG("the number is that of the check in quota_of_threads()");

	/* All processes of a user count together, and not those of another one. */
	ASSERT_EQ(0, tst_write_file(MAX_SLOTS, "1", 0));
	holder = start_holder(nobody);
	ASSERT_LT(0, holder);
	EXPECT_EQ(EDQUOT, tst_in_child(gets_slot, &nobody));
	EXPECT_EQ(0, tst_in_child(gets_slot, &other));
	kill(holder, SIGKILL);
	tst_wait_child(holder);
	EXPECT_TRUE(tst_wait_until(!tst_in_child(gets_slot, &nobody), 5000));

	/* 0 is none at all; but root is not bound. */
	ASSERT_EQ(0, tst_write_file(MAX_SLOTS, "0", 0));
	EXPECT_EQ(EDQUOT, tst_in_child(gets_slot, &other));
	EXPECT_EQ(0, tst_slot_offset(self->fd));
	EXPECT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_RELEASE));
}

/* Two threads that need a new page at once */

#define RACES		1000
#define RACE_SPREAD	(8 * TST_USEC)

/**
 * struct race - who comes into the middle of another thread's first slot
 * @begin: both wait for each other, the thread then until @at
 * @at: when it takes a slot
 * @error: errno, if it got none
 */
struct race {
	int fd;
	pthread_barrier_t begin, end;
	uint64_t at;
	int error;
};

/* Of a real-time class, so that it really comes when it is time. */
static void *come_into_it(void *arg)
{
	struct race *race = arg;
	struct timespec at;
	unsigned int i;

	for (i = 0; i < RACES; i++) {
		pthread_barrier_wait(&race->begin);
		at = tst_timespec(race->at);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		race->error = tst_slot_offset(race->fd) < 0 ? errno : 0;
		ioctl(race->fd, TASKSHARED_IOC_RELEASE);
		pthread_barrier_wait(&race->end);
	}
	return NULL;
}

/* How many of the two got no slot, though one page is enough for both. */
static int race_once(struct race *race, uint64_t *random)
{
	uint64_t mine;
	int failed;

	race->fd = tst_open();
	race->at = tst_now() + 100 * TST_USEC;
	mine = race->at - tst_random(random) % RACE_SPREAD;
	pthread_barrier_wait(&race->begin);
	while (tst_now() < mine)
		;
	failed = tst_slot_offset(race->fd) < 0;
	ioctl(race->fd, TASKSHARED_IOC_RELEASE);
	pthread_barrier_wait(&race->end);
	failed += race->error != 0;
	close(race->fd);
	return failed;
}

static int race_for_one_page(void *unused)
{
	struct race race = { .fd = -1 };
	uint64_t random = 0x72616365;
	unsigned int i, failed = 0;
	pthread_t thread;

	(void)unused;
	pthread_barrier_init(&race.begin, NULL, 2);
	pthread_barrier_init(&race.end, NULL, 2);
	if (tst_set_fifo(1) || tst_become_user(TST_NOBODY, tst_page_size()))
		return 1;
	if (pthread_create(&thread, NULL, come_into_it, &race) || tst_set_fifo(0))
		return 2;
	for (i = 0; i < RACES; i++)
		failed += race_once(&race, &random);
	pthread_join(thread, NULL);
	printf("# one page for two threads: %u refused in %u races\n", failed, RACES);
	fflush(NULL);
	return failed ? 3 : 0;
}

TEST_F(limits, one_page_is_enough_for_two)
{
	/* The hooks stay armed meanwhile. */
	ASSERT_EQ(0, tst_pin(0));
	ASSERT_EQ(0, tst_slot_offset(self->fd));
	EXPECT_EQ(0, tst_in_child(race_for_one_page, NULL))
		TH_LOG("the number is that of the check in race_for_one_page()");
	EXPECT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_RELEASE));
}

/* Threads that cannot be made */

static int too_many_for_the_group(void *unused)
{
	struct tst_crew crew = { .count = 2 * SLOTS_PER_PAGE };

	(void)unused;
	if (tst_write_file(GROUP "/cgroup.procs", "0", 0))
		return 1;
	crew.fd = tst_open();
	if (crew.fd < 0)
		return 2;
	/* With the threads that could be made, and their slots, it just ends. */
	return tst_crew_start(&crew) && errno == EAGAIN && tst_state("slots") ? 0 : 3;
}

TEST_F(limits, pids_of_a_group)
{
	ASSERT_EQ(0, tst_write_file("/sys/fs/cgroup/cgroup.subtree_control", "+pids", 0));
	ASSERT_EQ(0, mkdir(GROUP, 0755));
	EXPECT_EQ(0, tst_write_file(GROUP "/pids.max", "40", 0));
	EXPECT_EQ(0, tst_in_child(too_many_for_the_group, NULL));
	EXPECT_TRUE(tst_wait_until(!rmdir(GROUP), 5000));
}

/* Many */

#define MANY		10000
/* So many are compared, around the 100th and around the last one. */
#define SAMPLE		64

struct many {
	unsigned int released;
	uint64_t release[MANY];
};

static void release(struct tst_member *member)
{
	struct many *many = member->crew->arg;
	uint64_t begun = tst_now();

	ioctl(member->crew->fd, TASKSHARED_IOC_RELEASE);
	begun = tst_now() - begun;
	many->release[__atomic_fetch_add(&many->released, 1, __ATOMIC_RELAXED)] = begun;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t median(uint64_t *values)
{
	qsort(values, SAMPLE, sizeof(values[0]), compare);
	return values[SAMPLE / 2];
}

/* One of them in the middle of so many pages costs what one of the first costs. */
TEST_F(limits, ten_thousand_threads)
{
	struct tst_crew crew = { .fd = self->fd, .count = MANY, .work = release };
	uint64_t early[SAMPLE], late[SAMPLE], first, last;
	static struct many many;
	unsigned int i;

	/* The default is made for the guest's little memory. */
	ASSERT_EQ(0, tst_write_file("/proc/sys/kernel/threads-max", "30000", 0));
	crew.arg = &many;
	ASSERT_EQ(0, tst_crew_start(&crew))
		TH_LOG("%s", strerror(errno));
	for (i = 0; i < SAMPLE; i++) {
		early[i] = crew.members[100 - SAMPLE / 2 + i].took;
		late[i] = crew.members[MANY - SAMPLE + i].took;
	}
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0, crew.members[i].error)
			TH_LOG("thread %u: %s", i, strerror(crew.members[i].error));
	tst_crew_stop(&crew);

	first = median(early);
	last = median(late);
	printf("# to get a slot: %llu ns, with %d others %llu ns\n", (unsigned long long)first,
	       MANY, (unsigned long long)last);
	EXPECT_LE(last, 2 * first);

	ASSERT_EQ(MANY, many.released);
	first = median(many.release + MANY - 100 - SAMPLE / 2);
	last = median(many.release);
	printf("# to release it: %llu ns, with %d others %llu ns\n", (unsigned long long)first,
	       MANY, (unsigned long long)last);
	EXPECT_LE(last, 2 * first);
}

#define PROCESSES	200
#define THREADS		50

static int process_of_many(int ready, int leave)
{
	struct tst_crew crew = { .count = THREADS };
	unsigned int i, bad = 0;
	char byte;

	crew.fd = tst_open();
	if (crew.fd < 0 || tst_crew_start(&crew))
		return 1;
	for (i = 0; i < crew.count; i++)
		bad += crew.members[i].error ||
		       crew.members[i].offset >= (long long)(THREADS * TST_SLOT_SIZE);
	byte = (char)bad;
	if (write(ready, &byte, 1) != 1 || read(leave, &byte, 1))
		return 2;
	tst_crew_stop(&crew);
	return bad ? 3 : 0;
}

TEST_F(limits, two_hundred_processes)
{
	int ready[2], leave[2], good = 0, i;
	pid_t child[PROCESSES];
	char byte;

	ASSERT_EQ(0, tst_write_file("/proc/sys/kernel/threads-max", "30000", 0));
	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(leave));
	for (i = 0; i < PROCESSES; i++) {
		child[i] = fork();
		ASSERT_LE(0, child[i]);
		if (!child[i]) {
			close(leave[1]);
			_exit(process_of_many(ready[1], leave[0]));
		}
	}
	for (i = 0; i < PROCESSES; i++) {
		ASSERT_EQ(1, read(ready[0], &byte, 1));
		good += !byte;
	}
	EXPECT_EQ(PROCESSES, good);
	EXPECT_EQ(PROCESSES * THREADS, tst_state("slots"));
	EXPECT_EQ(PROCESSES * 2, tst_state("pages"));
	EXPECT_EQ(PROCESSES + 1, tst_state("pools"));
	close(leave[1]);
	for (i = 0; i < PROCESSES; i++)
		EXPECT_EQ(0, tst_wait_child(child[i]));
}

#define FULL_PAGES	4
#define FULL		(FULL_PAGES * SLOTS_PER_PAGE)

struct full {
	volatile bool go[FULL];
	volatile bool gone[FULL];
};

static void release_when_told(struct tst_member *member)
{
	struct full *full = member->crew->arg;
	long me = member - member->crew->members;

	while (!full->go[me])
		tst_sleep(TST_MSEC);
	ioctl(member->crew->fd, TASKSHARED_IOC_RELEASE);
	full->gone[me] = true;
}

/* Any order of 0 to FULL - 1. */
static void shuffle(unsigned int *order)
{
	uint64_t random = 0x7461736b;
	unsigned int i, j, kept;

	for (i = 0; i < FULL; i++)
		order[i] = i;
	for (i = FULL - 1; i; i--) {
		j = tst_random(&random) % (i + 1);
		kept = order[i];
		order[i] = order[j];
		order[j] = kept;
	}
}

/* Full to the last slot, emptied in any order; and filled where it was emptied. */
TEST_F(limits, full_pages)
{
	struct tst_crew crew = { .fd = self->fd, .count = FULL, .work = release_when_told };
	struct tst_crew others = { .fd = self->fd, .count = FULL / 2 };
	struct task_sharedinfo *slot, *window;
	static struct full full;
	unsigned int order[FULL], i;

	crew.arg = &full;
	window = tst_map_window(self->fd, FULL_PAGES * tst_page_size());
	ASSERT_NE(NULL, window);
	ASSERT_EQ(0, tst_crew_start(&crew));
	EXPECT_EQ(FULL_PAGES, tst_state("pages"));
	shuffle(order);
	for (i = 0; i < FULL; i++) {
		slot = window + crew.members[order[i]].offset / (long long)TST_SLOT_SIZE;
		ASSERT_EQ((__u32)crew.members[order[i]].tid, slot->tid);
		full.go[order[i]] = true;
		ASSERT_TRUE(tst_wait_until(full.gone[order[i]], 5000));
		ASSERT_EQ(0, slot->tid);
		ASSERT_EQ(FULL - i - 1, tst_state("slots"));
		if (i != FULL / 2 - 1)
			continue;
		/* As many others find room in the same pages. */
		ASSERT_EQ(0, tst_crew_start(&others));
		EXPECT_EQ(FULL, tst_state("slots"));
		EXPECT_EQ(FULL_PAGES, tst_state("pages"));
		tst_crew_stop(&others);
		ASSERT_TRUE(tst_wait_until(tst_state("slots") == FULL / 2, 5000));
	}
	tst_crew_stop(&crew);
	/* A file is open: the pages stay. */
	EXPECT_EQ(FULL_PAGES, tst_state("pages"));
	EXPECT_EQ(0, munmap(window, FULL_PAGES * tst_page_size()));
}

TEST_HARNESS_MAIN
