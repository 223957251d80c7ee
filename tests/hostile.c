// SPDX-License-Identifier: MIT
/*
 * The pages belong to the program: it may write anything to them, at any time,
 * and hand the ioctls anything. The kernel neither falls over nor loses count.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define SLOTS_PER_PAGE	32
#define PAGES		2
#define THREADS		6
#define RUN_MS		4000

struct attack {
	void *window;
	uint64_t writes;
	uint64_t calls;
	unsigned int slots_lost;
};

/* Bytes, words and whole slots, more often than not where something is. */
static void scribble(void *window, uint64_t *random)
{
	uint64_t r = tst_random(random);
	size_t slot = (r >> 8) % (PAGES * SLOTS_PER_PAGE);
	char *base = (char *)window + slot * TST_SLOT_SIZE;

	switch (r & 7) {
	case 0:
		memset(base, (int)(r >> 40), TST_SLOT_SIZE);
		break;
	case 1:
		*(volatile __u32 *)(base + 64) = (__u32)(r >> 32);
		break;
	case 2:
		*(volatile __u64 *)(base + ((r >> 16) & 120)) = tst_random(random);
		break;
	case 3:
		*(volatile __u8 *)(base + ((r >> 16) & 127)) = (__u8)(r >> 24);
		break;
	case 4:
		*(volatile __u16 *)base = (__u16)(r >> 48);
		break;
	default:
		*(volatile __u16 *)base = TASK_PREEMPT_DELAY_REQ;
	}
}

static void any_call(int fd, char *buffer, uint64_t *random)
{
	uint64_t r = tst_random(random);
	unsigned int nr = (r >> 8) % 6, size = (r >> 16) % 200;
	unsigned long arg;

	buffer[(r >> 32) % 200] = (r >> 40) % 4 ? 0 : (char)(r >> 44);
	arg = (r >> 48) % 8 ? (unsigned long)buffer : tst_random(random);
	switch ((r >> 52) % 16) {
	case 0:
		ioctl(fd, _IOC((r >> 4) & 3, TASKSHARED_IOC_MAGIC, nr, size), arg);
		break;
	case 1:
		ioctl(fd, TASKSHARED_IOC_RELEASE, 0);
		break;
	case 2:
		ioctl(fd, TASKSHARED_IOC_YIELD, 0);
		break;
	case 3:
		tst_slot_offset(fd);
		break;
	case 4:
		sched_yield();
		break;
	default:
		break;
	}
}

static void attack(struct tst_member *member)
{
	struct attack *attack = member->crew->arg;
	uint64_t random = 0x9e3779b97f4a7c15ULL ^ (uint64_t)member->tid << 20;
	uint64_t writes = 0, calls = 0;
	char buffer[256] = { 0 };
	unsigned int i;

	while (!member->crew->leave) {
		for (i = 0; i < 200; i++)
			scribble(attack->window, &random);
		writes += i;
		any_call(member->crew->fd, buffer, &random);
		calls++;
		if (tst_slot_offset(member->crew->fd) < 0)
			__atomic_add_fetch(&attack->slots_lost, 1, __ATOMIC_RELAXED);
	}
	__atomic_add_fetch(&attack->writes, writes, __ATOMIC_RELAXED);
	__atomic_add_fetch(&attack->calls, calls, __ATOMIC_RELAXED);
}

TEST(scribbling)
{
	struct tst_crew crew = { .count = THREADS, .work = attack };
	struct taskshared_counters totals;
	struct task_sharedinfo *slot;
	struct attack work = { 0 };
	const char *message;
	unsigned int i;

	crew.fd = tst_open();
	crew.arg = &work;
	ASSERT_LE(0, crew.fd)
		TH_LOG("%s: %s", TASKSHARED_DEVICE, strerror(errno));
	work.window = tst_map_window(crew.fd, PAGES * tst_page_size());
	ASSERT_NE(NULL, work.window);

	/* So many threads at first that the pool has the pages which are written to. */
	crew.count = PAGES * SLOTS_PER_PAGE;
	crew.work = NULL;
	ASSERT_EQ(0, tst_crew_start(&crew));
	EXPECT_EQ(PAGES, tst_state("pages"));
	tst_crew_stop(&crew);

	crew.count = THREADS;
	crew.work = attack;
	ASSERT_EQ(0, tst_crew_start(&crew));
	for (i = 0; i < crew.count; i++)
		ASSERT_EQ(0, crew.members[i].error);
	tst_sleep(RUN_MS * TST_MSEC);
	tst_crew_stop(&crew);
	printf("# %llu writes, %llu calls\n", (unsigned long long)work.writes,
	       (unsigned long long)work.calls);
	EXPECT_EQ(0, work.slots_lost);
	EXPECT_LE(1000, work.calls);

	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 0, 10000));
	ASSERT_EQ(0, tst_totals(&totals));
	tst_print_counters("totals", &totals);
	EXPECT_TRUE(tst_adds_up(&totals, &message))
		TH_LOG("%s", message);
	EXPECT_EQ(0, totals.active);
	EXPECT_LE(1, totals.granted);

	/* The next owner finds nothing of it. */
	memset(work.window, 0xdb, PAGES * tst_page_size());
	slot = tst_slot(crew.fd);
	ASSERT_NE(NULL, slot);
	EXPECT_EQ(gettid(), slot->tid);
	slot->tid = 0;
	EXPECT_TRUE(tst_is_zero(slot, TST_SLOT_SIZE));
	close(crew.fd);
}

TEST_HARNESS_MAIN
