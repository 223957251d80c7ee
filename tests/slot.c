// SPDX-License-Identifier: MIT
/*
 * Pools, pages and slots: who gets which, what it holds, and when it goes.
 */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "kselftest_harness.h"
#include "helpers/after_exec.h"

#define SLOTS_PER_PAGE	32
#define GONE_MS		5000

/* Somewhere in the owner's cache line, where the kernel never writes. */
static volatile __u8 *mark_of(struct task_sharedinfo *slot)
{
	return &slot->__reserved_owner[40];
}

static struct task_sharedinfo *at(void *window, long long offset)
{
	return (struct task_sharedinfo *)((char *)window + offset);
}

static bool tid_is(struct task_sharedinfo *slot, pid_t tid)
{
	return *(volatile __u32 *)&slot->tid == (__u32)tid;
}

FIXTURE(slot) {
	int fd;
};

FIXTURE_SETUP(slot)
{
	self->fd = tst_open();
	ASSERT_LE(0, self->fd)
		TH_LOG("%s: %s", TASKSHARED_DEVICE, strerror(errno));
	/* What an earlier test held must be gone before this one counts. */
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 0 && tst_state("pages") == 0, GONE_MS))
		TH_LOG("slots %lld, pages %lld at the start", tst_state("slots"),
		       tst_state("pages"));
}

FIXTURE_TEARDOWN(slot)
{
	close(self->fd);
}

TEST_F(slot, info)
{
	struct taskshared_info info = { 0 };

	ASSERT_EQ(0, ioctl(self->fd, TASKSHARED_IOC_INFO, &info));
	EXPECT_EQ(0, info.flags);
	EXPECT_EQ(TASKSHARED_ABI_VERSION, info.abi_version);
	EXPECT_EQ(TASKSHARED_FEATURE_DELAY | TASKSHARED_FEATURE_SCHED_YIELD |
		  TASKSHARED_FEATURE_WINDOW, info.features & 7);
	EXPECT_EQ(TASKSHARED_SLOT_SIZE, info.slot_size);
	EXPECT_EQ(50000, info.cap_ns);
	EXPECT_EQ(TASKSHARED_WINDOW, info.window_offset);
	EXPECT_LE(4 * tst_page_size(), info.window_size);
	EXPECT_EQ(0, info.window_size % tst_page_size());
	/* Asking gives nobody a slot. */
	EXPECT_EQ(0, tst_state("slots"));
}

TEST_F(slot, by_open_and_mmap_alone)
{
	struct task_sharedinfo *slot, *page;
	int i;

	page = tst_map_page(self->fd);
	ASSERT_NE(NULL, page);
	slot = tst_find(page, tst_page_size(), gettid());
	ASSERT_NE(NULL, slot)
		TH_LOG("no slot with tid %d in the page", gettid());

	EXPECT_EQ(0, (uintptr_t)slot % TST_SLOT_SIZE);
	EXPECT_EQ(0, slot->sched_delay);
	EXPECT_TRUE(tst_is_fresh(slot));
	for (i = 0; i < SLOTS_PER_PAGE; i++)
		if (&page[i] != slot)
			EXPECT_TRUE(tst_is_zero(&page[i], TST_SLOT_SIZE));
	EXPECT_EQ(1, tst_state("slots"));
	EXPECT_EQ(1, tst_state("pages"));
}

TEST_F(slot, same_one_every_time)
{
	struct taskshared_slot where = { 0 };
	struct task_sharedinfo *slot, *again;
	char *window;
	int other;

	slot = tst_slot(self->fd);
	ASSERT_NE(NULL, slot);
	*mark_of(slot) = 0x5a;

	again = tst_slot(self->fd);
	ASSERT_NE(NULL, again);
	EXPECT_NE(slot, again);
	EXPECT_EQ(0x5a, *mark_of(again));

	other = tst_open();
	ASSERT_LE(0, other);
	again = tst_slot(other);
	ASSERT_NE(NULL, again);
	EXPECT_EQ(0x5a, *mark_of(again));
	*mark_of(again) = 0xa5;
	EXPECT_EQ(0xa5, *mark_of(slot));

	ASSERT_EQ(0, ioctl(other, TASKSHARED_IOC_SLOT, &where));
	EXPECT_EQ(gettid(), where.tid);
	EXPECT_EQ(0, where.offset % TST_SLOT_SIZE);
	window = tst_map_window(other, 0);
	ASSERT_NE(NULL, window);
	EXPECT_EQ(0xa5, *mark_of(at(window, (long long)where.offset)));
	EXPECT_EQ(1, tst_state("slots"));
}

/* mmap alone shows each thread the page its own slot is in. */
static void find_by_mmap(struct tst_member *member)
{
	struct task_sharedinfo *slot;
	int *found = member->crew->arg;

	if (member->error)
		return;
	slot = tst_slot(member->crew->fd);
	if (!slot)
		return;
	if ((size_t)slot % tst_page_size() == (size_t)member->offset % tst_page_size())
		__atomic_add_fetch(found, 1, __ATOMIC_SEQ_CST);
	munmap(tst_page_of(slot), tst_page_size());
}

TEST_F(slot, hundred_threads)
{
	int found = 0;
	struct tst_crew crew = {
		.fd = self->fd, .count = 100, .work = find_by_mmap, .arg = &found,
	};
	size_t page_size = tst_page_size();
	unsigned int i, in_page[4] = { 0 };
	char *window;

	window = tst_map_window(self->fd, 0);
	ASSERT_NE(NULL, window);
	ASSERT_EQ(0, tst_crew_start(&crew));
	EXPECT_EQ(100, tst_state("slots"));
	EXPECT_EQ(4, tst_state("pages"));

	for (i = 0; i < crew.count; i++) {
		struct tst_member *member = &crew.members[i];

		ASSERT_EQ(0, member->error);
		ASSERT_LT((size_t)member->offset / page_size, 4);
		in_page[(size_t)member->offset / page_size]++;
		EXPECT_TRUE(tid_is(at(window, member->offset), member->tid));
		/* Memory of its own: nobody's mark is in another one's slot. */
		EXPECT_EQ(0, *mark_of(at(window, member->offset)));
		*mark_of(at(window, member->offset)) = (__u8)(i + 1);
	}
	for (i = 0; i < crew.count; i++)
		EXPECT_EQ(i + 1, *mark_of(at(window, crew.members[i].offset)));
	for (i = 0; i < 4; i++)
		EXPECT_LT(0, in_page[i]);
	printf("# slots in the pages: %u %u %u %u\n", in_page[0], in_page[1], in_page[2],
	       in_page[3]);

	EXPECT_TRUE(tst_wait_until(*(volatile int *)&found == 100, GONE_MS))
		TH_LOG("%d of 100 threads found their slot by mmap alone", found);
	/* The window alone: the mappings of find_by_mmap() are gone again. */
	EXPECT_TRUE(tst_wait_until(tst_count_mappings() == 1, GONE_MS));
	tst_crew_stop(&crew);
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 0, GONE_MS));
}

TEST_F(slot, reuse_is_zeroed)
{
	struct tst_crew crew = { .fd = self->fd, .count = SLOTS_PER_PAGE };
	struct task_sharedinfo *page;
	unsigned int i;

	page = tst_map_window(self->fd, tst_page_size());
	ASSERT_NE(NULL, page);
	ASSERT_EQ(0, tst_crew_start(&crew));
	for (i = 0; i < crew.count; i++)
		ASSERT_EQ(0, crew.members[i].error);
	EXPECT_EQ(1, tst_state("pages"));

	memset(page, 0xff, tst_page_size());
	tst_crew_stop(&crew);
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 0, GONE_MS));
	for (i = 0; i < SLOTS_PER_PAGE; i++)
		EXPECT_TRUE(tst_is_zero(&page[i], TST_SLOT_SIZE))
			TH_LOG("slot %u was not scrubbed when its owner exited", i);

	/* What is written to a slot that nobody has must not greet the next owner. */
	memset(page, 0xee, tst_page_size());
	ASSERT_EQ(0, tst_crew_start(&crew));
	EXPECT_EQ(1, tst_state("pages"));
	for (i = 0; i < crew.count; i++) {
		struct tst_member *member = &crew.members[i];

		ASSERT_EQ(0, member->error);
		EXPECT_TRUE(tid_is(at(page, member->offset), member->tid));
		EXPECT_TRUE(tst_is_fresh(at(page, member->offset)))
			TH_LOG("the slot at %lld was not scrubbed before reuse", member->offset);
	}
	tst_crew_stop(&crew);
}

TEST_F(slot, release_and_get_again)
{
	struct taskshared_counters counters;
	struct task_sharedinfo *slot;

	slot = tst_slot(self->fd);
	ASSERT_NE(NULL, slot);
	EXPECT_EQ(0, tst_counters(self->fd, 0, &counters));
	EXPECT_EQ(gettid(), counters.tid);
	memset((char *)slot, 0x77, offsetof(struct task_sharedinfo, tid));

	EXPECT_EQ(0, tst_call(self->fd, TASKSHARED_IOC_RELEASE, NULL));
	EXPECT_EQ(0, slot->tid);
	EXPECT_TRUE(tst_is_zero(slot, TST_SLOT_SIZE));
	EXPECT_EQ(0, tst_state("slots"));
	EXPECT_EQ(ENOENT, tst_call(self->fd, TASKSHARED_IOC_RELEASE, NULL));
	EXPECT_EQ(-1, tst_counters(self->fd, 0, &counters));
	EXPECT_EQ(ESRCH, errno);
	/* The mapping holds the page, and whatever is in it harms nobody. */
	memset((char *)slot, 0x33, TST_SLOT_SIZE);

	slot = tst_slot(self->fd);
	ASSERT_NE(NULL, slot);
	EXPECT_TRUE(tid_is(slot, gettid()));
	EXPECT_TRUE(tst_is_fresh(slot));
	ASSERT_EQ(0, tst_counters(self->fd, 0, &counters));
	EXPECT_EQ(0, counters.requested);
	EXPECT_EQ(1, tst_state("slots"));
}

TEST_F(slot, kept_after_close_and_munmap)
{
	struct task_sharedinfo *slot;
	long long offset;

	slot = tst_slot(self->fd);
	ASSERT_NE(NULL, slot);
	offset = tst_slot_offset(self->fd);
	*mark_of(slot) = 0x42;

	close(self->fd);
	EXPECT_TRUE(tid_is(slot, gettid()));
	EXPECT_EQ(0x42, *mark_of(slot));
	*mark_of(slot) = 0x43;
	munmap(tst_page_of(slot), tst_page_size());
	EXPECT_EQ(0, tst_count_mappings());
	EXPECT_EQ(1, tst_state("slots"));

	self->fd = tst_open();
	ASSERT_LE(0, self->fd);
	slot = tst_slot(self->fd);
	ASSERT_NE(NULL, slot);
	EXPECT_EQ(0x43, *mark_of(slot));
	EXPECT_EQ(offset, tst_slot_offset(self->fd));
}

TEST_F(slot, gone_after_thread_exit)
{
	struct tst_crew crew = { .fd = self->fd, .count = 1 };
	struct taskshared_counters counters;
	struct task_sharedinfo *page;
	long long offset;
	pid_t tid;

	page = tst_map_window(self->fd, tst_page_size());
	ASSERT_NE(NULL, page);
	ASSERT_EQ(0, tst_crew_start(&crew));
	ASSERT_EQ(0, crew.members[0].error);
	tid = crew.members[0].tid;
	offset = crew.members[0].offset;
	/* Any thread of the process may ask for another one's counters. */
	EXPECT_EQ(0, tst_counters(self->fd, tid, &counters));
	EXPECT_EQ(tid, counters.tid);
	tst_crew_stop(&crew);

	EXPECT_TRUE(tst_wait_until(tid_is(at(page, offset), 0), GONE_MS));
	EXPECT_EQ(0, tst_state("slots"));
	EXPECT_EQ(-1, tst_counters(self->fd, tid, &counters));
	EXPECT_EQ(ESRCH, errno);
}

/* A page goes with its last slot, mapping and file, and not before. */
TEST_F(slot, pages_go)
{
	struct tst_crew crew = { .fd = self->fd, .count = 3 * SLOTS_PER_PAGE };
	void *page;
	int other;

	ASSERT_EQ(0, tst_crew_start(&crew));
	EXPECT_EQ(3, tst_state("pages"));
	tst_crew_stop(&crew);
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 0, GONE_MS));

	other = tst_open();
	page = tst_map_window(other, tst_page_size());
	ASSERT_NE(NULL, page);
	close(other);
	close(self->fd);
	/* A mapping holds its file, and the page it shows. */
	EXPECT_LE(1, tst_state("pages"));
	EXPECT_TRUE(tst_is_zero(page, tst_page_size()));
	munmap(page, tst_page_size());
	EXPECT_TRUE(tst_wait_until(tst_state("pages") == 0, GONE_MS))
		TH_LOG("pages %lld, files %lld", tst_state("pages"), tst_state("files"));
	EXPECT_EQ(0, tst_state("pools"));

	self->fd = tst_open();
	ASSERT_LE(0, self->fd);
}

TEST_F(slot, window_shows_pages_added_later)
{
	struct tst_crew crew = { .fd = self->fd, .count = 2 * SLOTS_PER_PAGE };
	char *window;
	unsigned int i;

	window = tst_map_window(self->fd, 2 * tst_page_size());
	ASSERT_NE(NULL, window);
	EXPECT_EQ(0, tst_state("pages"));
	ASSERT_EQ(0, tst_crew_start(&crew));
	for (i = 0; i < crew.count; i++) {
		ASSERT_EQ(0, crew.members[i].error);
		EXPECT_TRUE(tid_is(at(window, crew.members[i].offset), crew.members[i].tid));
	}
	tst_crew_stop(&crew);
}

static void read_byte(const volatile void *address)
{
	(void)*(const volatile char *)address;
}

/* fork */

struct forked {
	int fd;
	struct task_sharedinfo *slot;
	void *window;
};

static int check_fork_child(void *arg)
{
	struct taskshared_counters counters = { 0 };
	struct taskshared_info info = { 0 };
	struct taskshared_slot where = { 0 };
	struct forked *parent = arg;
	struct task_sharedinfo *slot;
	int fd;

	if (tst_count_mappings() != 0)
		return 1;
	if (tst_call(parent->fd, TASKSHARED_IOC_INFO, &info) != EPERM)
		return 2;
	if (tst_call(parent->fd, TASKSHARED_IOC_SLOT, &where) != EPERM)
		return 3;
	if (tst_call(parent->fd, TASKSHARED_IOC_RELEASE, NULL) != EPERM)
		return 4;
	if (tst_call(parent->fd, TASKSHARED_IOC_YIELD, NULL) != EPERM)
		return 5;
	if (tst_call(parent->fd, TASKSHARED_IOC_COUNTERS, &counters) != EPERM)
		return 6;
	if (tst_map_page(parent->fd) || errno != EPERM)
		return 7;
	if (tst_map_window(parent->fd, tst_page_size()) || errno != EPERM)
		return 8;

	fd = tst_open();
	if (fd < 0)
		return 9;
	/* The parent's slot is none of its business, nor is the parent's tid. */
	if (!tst_counters(fd, getppid(), &counters) || errno != ESRCH)
		return 10;
	if (tst_call(fd, TASKSHARED_IOC_RELEASE, NULL) != ENOENT)
		return 11;
	slot = tst_slot(fd);
	if (!slot || !tst_is_fresh(slot))
		return 12;
	if (tst_state("slots") != 2 || tst_state("pools") != 2)
		return 13;
	memset(tst_page_of(slot), 0x66, tst_page_size());
	return 0;
}

static int touch_parent_slot(void *arg)
{
	struct forked *parent = arg;

	read_byte(parent->slot);
	return 0;
}

static int touch_parent_window(void *arg)
{
	struct forked *parent = arg;

	read_byte(parent->window);
	return 0;
}

TEST_F(slot, fork_child_starts_clean)
{
	struct forked parent = { .fd = self->fd };
	struct task_sharedinfo *page;
	int i;

	parent.slot = tst_slot(self->fd);
	ASSERT_NE(NULL, parent.slot);
	parent.window = tst_map_window(self->fd, tst_page_size());
	ASSERT_NE(NULL, parent.window);

	EXPECT_EQ(0, tst_in_child(check_fork_child, &parent))
		TH_LOG("the number is that of the check in check_fork_child()");
	EXPECT_EQ(256 + SIGSEGV, tst_in_child(touch_parent_slot, &parent));
	EXPECT_EQ(256 + SIGSEGV, tst_in_child(touch_parent_window, &parent));

	/* Nothing the child wrote is here, and its end took nothing away. */
	EXPECT_TRUE(tid_is(parent.slot, gettid()));
	EXPECT_TRUE(tst_is_fresh(parent.slot));
	page = parent.window;
	for (i = 0; i < SLOTS_PER_PAGE; i++)
		if (!tid_is(&page[i], gettid()))
			EXPECT_TRUE(tst_is_zero(&page[i], TST_SLOT_SIZE));
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 1 && tst_state("pools") == 1, GONE_MS));
}

/* A child that shares the memory: vfork() and its like */

struct sharing {
	int fd;
	pid_t tid;
	long long offset;
	int error;
	bool exec;
	bool stay;
};

static int sharing_child(void *arg)
{
	struct sharing *self = arg;

	self->tid = gettid();
	self->offset = tst_slot_offset(self->fd);
	self->error = self->offset < 0 ? errno : 0;
	if (self->exec)
		exec_again();
	while (self->stay)
		pause();
	_exit(self->exec ? 99 : 0);
}

TEST_F(slot, child_that_shares_memory)
{
	struct sharing child = { .fd = self->fd };
	struct task_sharedinfo *page;
	long long offset;
	pid_t pid;

	page = tst_map_window(self->fd, tst_page_size());
	ASSERT_NE(NULL, page);
	offset = tst_slot_offset(self->fd);
	ASSERT_LE(0, offset);

	pid = tst_start_sharing(sharing_child, &child, CLONE_VFORK);
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, tst_wait_child(pid));
	EXPECT_EQ(pid, child.tid);
	EXPECT_EQ(0, child.error);
	EXPECT_NE(offset, child.offset);
	EXPECT_TRUE(tst_wait_until(tid_is(at(page, child.offset), 0), GONE_MS));
	EXPECT_TRUE(tid_is(at(page, offset), gettid()));

	/* The same, killed while it has its slot. */
	child = (struct sharing){ .fd = self->fd, .offset = -2, .stay = true };
	pid = tst_start_sharing(sharing_child, &child, 0);
	ASSERT_LT(0, pid);
	EXPECT_TRUE(tst_wait_until(*(volatile long long *)&child.offset != -2, GONE_MS));
	EXPECT_EQ(0, child.error);
	EXPECT_TRUE(tid_is(at(page, child.offset), pid));
	EXPECT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(256 + SIGKILL, tst_wait_child(pid));
	EXPECT_TRUE(tst_wait_until(tid_is(at(page, child.offset), 0), GONE_MS));
	EXPECT_TRUE(tid_is(at(page, offset), gettid()));
	EXPECT_EQ(1, tst_state("slots"));
}

/* exec */

static void *exec_thread(void *arg)
{
	struct sharing *self = arg;

	tst_slot(self->fd);
	sharing_child(self);
	return NULL;
}

static int exec_from_main(void *arg)
{
	struct sharing self = { .fd = tst_open(), .exec = true };

	(void)arg;
	if (self.fd < 0 || !tst_slot(self.fd))
		return 90;
	prepare_exec(self.fd, 0);
	return sharing_child(&self);
}

/* exec ends all other threads, and the one that calls it takes the leader's id. */
static int exec_from_thread(void *arg)
{
	struct sharing self = { .fd = tst_open(), .exec = true };
	struct tst_crew crew = { .fd = self.fd, .count = 10 };
	pthread_t thread;

	(void)arg;
	if (self.fd < 0 || !tst_slot(self.fd) || tst_crew_start(&crew))
		return 90;
	prepare_exec(self.fd, 0);
	if (pthread_create(&thread, NULL, exec_thread, &self))
		return 91;
	while (1)
		pause();
}

TEST_F(slot, exec_gives_the_slot_back)
{
	EXPECT_EQ(0, tst_in_child(exec_from_main, NULL))
		TH_LOG("the number is that of the check in check_after_exec()");
	EXPECT_EQ(0, tst_in_child(exec_from_thread, NULL));
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 0, GONE_MS));
}

/* The exec of a child that shares the memory takes nothing from the parent. */
TEST_F(slot, vfork_and_exec)
{
	struct sharing child = { .exec = true };
	struct task_sharedinfo *slot;
	pid_t pid;

	slot = tst_slot(self->fd);
	ASSERT_NE(NULL, slot);
	*mark_of(slot) = 0x21;
	child.fd = self->fd;
	prepare_exec(self->fd, 1);
	pid = tst_start_sharing(sharing_child, &child, CLONE_VFORK);
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, tst_wait_child(pid))
		TH_LOG("the number is that of the check in check_after_exec()");
	EXPECT_EQ(0, child.error);
	EXPECT_TRUE(tid_is(slot, gettid()));
	EXPECT_EQ(0x21, *mark_of(slot));
	EXPECT_EQ(0, tst_call(self->fd, TASKSHARED_IOC_YIELD, NULL));
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 1, GONE_MS));
}

/* SIGKILL */

struct victim {
	int ready;
};

static int fifty_threads(void *arg)
{
	struct tst_crew crew = { .fd = tst_open(), .count = 50, .work = tst_request_for_ever };
	struct victim *victim = arg;
	unsigned int i;

	if (crew.fd < 0 || tst_crew_start(&crew))
		return 1;
	for (i = 0; i < crew.count; i++)
		if (crew.members[i].error)
			return 2;
	if (write(victim->ready, "", 1) != 1)
		return 3;
	while (1)
		pause();
}

TEST_F(slot, killed_with_fifty_threads)
{
	struct taskshared_counters totals;
	struct victim victim;
	const char *message;
	int round, ends[2];
	pid_t pid;
	char byte;

	for (round = 0; round < 5; round++) {
		ASSERT_EQ(0, pipe(ends));
		victim.ready = ends[1];
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(fifty_threads(&victim));
		close(ends[1]);
		ASSERT_EQ(1, read(ends[0], &byte, 1));
		EXPECT_EQ(50, tst_state("slots"));
		EXPECT_EQ(2, tst_state("pages"));
		tst_sleep(20 * TST_MSEC);
		EXPECT_EQ(0, kill(pid, SIGKILL));
		EXPECT_EQ(256 + SIGKILL, tst_wait_child(pid));
		close(ends[0]);
		EXPECT_TRUE(tst_wait_until(tst_state("slots") == 0 && tst_state("pages") == 0,
					   GONE_MS))
			TH_LOG("slots %lld, pages %lld", tst_state("slots"), tst_state("pages"));
	}
	ASSERT_EQ(0, tst_totals(&totals));
	EXPECT_TRUE(tst_adds_up(&totals, &message))
		TH_LOG("%s", message);
	EXPECT_EQ(0, totals.active);
	tst_print_counters("totals", &totals);
}

/* What the mapping is not good for */

TEST_F(slot, mapping_is_special)
{
	struct task_sharedinfo *slot;
	char flags[512], copy[16];
	struct iovec here = { copy, sizeof(copy) }, there;
	int ends[2];

	slot = tst_slot(self->fd);
	ASSERT_NE(NULL, slot);
	/* Not even on request. */
	EXPECT_NE(0, madvise(tst_page_of(slot), tst_page_size(), MADV_DOFORK));
	EXPECT_NE(0, madvise(tst_page_of(slot), tst_page_size(), MADV_DODUMP));
	ASSERT_TRUE(tst_vm_flags(slot, flags, sizeof(flags)));
	printf("# VmFlags:%s", flags);
	EXPECT_NE(NULL, strstr(flags, " dc"))
		TH_LOG("fork copies it");
	EXPECT_NE(NULL, strstr(flags, " dd"))
		TH_LOG("it is in core dumps");
	EXPECT_NE(NULL, strstr(flags, " de"))
		TH_LOG("mremap may let it grow");

	/* Nobody gets a reference to the page, as direct I/O would. */
	there = (struct iovec){ slot, sizeof(copy) };
	ASSERT_EQ(0, pipe(ends));
	EXPECT_EQ(-1, vmsplice(ends[1], &there, 1, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, process_vm_readv(getpid(), &here, 1, &there, 1, 0));
	EXPECT_EQ(EFAULT, errno);
}

TEST_F(slot, mapping_moved_cut_and_discarded)
{
	struct tst_crew crew = { .fd = self->fd, .count = 3 * SLOTS_PER_PAGE };
	size_t page_size = tst_page_size();
	char *window, *target;
	unsigned int i;

	window = tst_map_window(self->fd, 4 * page_size);
	ASSERT_NE(NULL, window);
	ASSERT_EQ(0, tst_crew_start(&crew));
	for (i = 0; i < crew.count; i++)
		ASSERT_EQ(0, crew.members[i].error);

	/* Cut a hole: what is left of it still shows the same pages. */
	ASSERT_EQ(0, munmap(window + page_size, page_size));
	for (i = 0; i < crew.count; i++)
		if ((size_t)crew.members[i].offset / page_size != 1)
			EXPECT_TRUE(tid_is(at(window, crew.members[i].offset),
					   crew.members[i].tid));
	/* Move a part. */
	target = mmap(NULL, page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, target);
	ASSERT_EQ(target, mremap(window + 2 * page_size, page_size, page_size,
				 MREMAP_MAYMOVE | MREMAP_FIXED, target));
	for (i = 0; i < crew.count; i++)
		if ((size_t)crew.members[i].offset / page_size == 2)
			EXPECT_TRUE(tid_is(at(target, crew.members[i].offset -
						      2 * (long long)page_size),
					   crew.members[i].tid));
	/* Whether it may be discarded or not, the slots keep what is in them. */
	*mark_of(at(window, crew.members[0].offset % (long long)page_size)) = 0x19;
	madvise(window, page_size, MADV_DONTNEED);
	madvise(window, page_size, MADV_REMOVE);
	EXPECT_EQ(0x19, *mark_of(at(window, crew.members[0].offset % (long long)page_size)));
	munmap(target, page_size);
	munmap(window, page_size);
	munmap(window + 3 * page_size, page_size);
	EXPECT_EQ(0, tst_count_mappings());
	tst_crew_stop(&crew);
}

/* Pid namespaces: the id is the one that the thread itself knows. */

static int in_new_namespace(void *arg)
{
	struct taskshared_counters counters;
	struct task_sharedinfo *slot;
	int fd = tst_open();

	(void)arg;
	if (fd < 0 || gettid() != 1)
		return 1;
	slot = tst_slot(fd);
	if (!slot || slot->tid != 1)
		return 2;
	if (tst_counters(fd, 1, &counters) || counters.tid != 1)
		return 3;
	if (tst_counters(fd, 0, &counters) || counters.tid != 1)
		return 4;
	return 0;
}

static int unshare_pids(void *arg)
{
	if (unshare(CLONE_NEWPID))
		return 90;
	return tst_in_child(in_new_namespace, arg);
}

TEST_F(slot, pid_namespace)
{
	EXPECT_EQ(0, tst_in_child(unshare_pids, NULL))
		TH_LOG("the number is that of the check in in_new_namespace()");
}

TEST_HARNESS_MAIN
