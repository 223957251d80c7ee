// SPDX-License-Identifier: MIT
/*
 * A thread that is stopped, traced, frozen or killed in the middle of a delay. Nothing
 * runs on granted time that should not run at all, and afterwards it goes on as before.
 * By others, on two CPUs that take turns, and by itself, in virtual time.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "helpers/after_exec.h"
#include "helpers/life_fixture.h"
#include "helpers/taskshared_test.h"

#define GROUP		"/sys/fs/cgroup/taskshared_held"

/*
 * Seen from outside: a child that shares the memory requests beside a hog on CPU 0, so
 * this process, on CPU 1, sees in its slot when a delay begins, and does something to
 * the child there and then.
 */
FIXTURE(seen) {
	struct tst_hog hog;
	int fd;
	void *window;
	pid_t pid;
	struct task_sharedinfo *slot;
	/* The child's */
	volatile long long offset;
};

static int request_always(void *arg)
{
	FIXTURE_DATA(seen) *self = arg;
	struct task_sharedinfo *slot;

	tst_pin(0);
	self->offset = tst_slot_offset(self->fd);
	slot = at(self->window, self->offset);
	while (1)
		tst_look(slot);
	return 0;
}

static void start_seen(struct __test_metadata *_metadata, FIXTURE_DATA(seen) *self)
{
	self->offset = -2;
	self->pid = tst_start_sharing(request_always, self, 0);
	ASSERT_LT(0, self->pid);
	ASSERT_TRUE(tst_wait_until(self->offset != -2, GONE_MS));
	ASSERT_LE(0, self->offset);
	self->slot = at(self->window, self->offset);
	EXPECT_EQ(self->pid, tid_of(self->slot));
}

static void kill_seen(struct __test_metadata *_metadata, FIXTURE_DATA(seen) *self)
{
	pid_t pid = self->pid;

	self->pid = 0;
	EXPECT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(256 + SIGKILL, tst_wait_child(pid));
	EXPECT_TRUE(tst_wait_until(!tid_of(self->slot), GONE_MS));
	EXPECT_EQ(0, tst_state("slots"));
	EXPECT_TRUE(tst_is_zero(self->slot, TST_SLOT_SIZE));
	EXPECT_TRUE(no_delay_runs());
}

FIXTURE_SETUP(seen)
{
	if (tst_cpus() < 2)
		SKIP(return, "who looks at a delay of another thread needs a CPU of its own");
	begin(_metadata, &self->hog);
	ASSERT_EQ(0, tst_pin(1));
	self->fd = tst_open();
	ASSERT_LE(0, self->fd);
	self->window = tst_map_window(self->fd, tst_page_size());
	ASSERT_NE(NULL, self->window);
	start_seen(_metadata, self);
}

FIXTURE_TEARDOWN(seen)
{
	if (self->pid > 0)
		kill_seen(_metadata, self);
	munmap(self->window, tst_page_size());
	close(self->fd);
	end(_metadata, &self->hog);
}

/* It is stopped, however that came about: no delay goes on meanwhile. */
static void expect_still(struct __test_metadata *_metadata, FIXTURE_DATA(seen) *self)
{
	struct taskshared_counters first, later;

	EXPECT_EQ(0, tst_counters(self->fd, self->pid, &first));
	EXPECT_EQ(0, first.active);
	EXPECT_NE(TASK_PREEMPT_DELAY_GRANTED, word_of(self->slot));
	EXPECT_EQ(self->pid, tid_of(self->slot));
	tst_sleep(5 * TST_MSEC);
	EXPECT_EQ(0, tst_counters(self->fd, self->pid, &later));
	EXPECT_EQ(first.requested, later.requested);
}

static uint64_t grants(FIXTURE_DATA(seen) *self)
{
	struct taskshared_counters counters;

	return tst_counters(self->fd, self->pid, &counters) ? 0 : counters.granted;
}

static void expect_going_on(struct __test_metadata *_metadata, FIXTURE_DATA(seen) *self,
			    uint64_t before)
{
	EXPECT_TRUE(tst_wait_until(grants(self) > before, DELAY_MS))
		TH_LOG("no delays any more");
}

TEST_F(seen, killed_in_a_delay)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		ASSERT_TRUE(sees_delay(self->slot));
		kill_seen(_metadata, self);
		start_seen(_metadata, self);
	}
}

TEST_F(seen, stopped_in_a_delay)
{
	uint64_t before;
	int i, status;

	for (i = 0; i < ROUNDS; i++) {
		ASSERT_TRUE(sees_delay(self->slot));
		ASSERT_EQ(0, kill(self->pid, SIGSTOP));
		ASSERT_EQ(self->pid, waitpid(self->pid, &status, WUNTRACED));
		expect_still(_metadata, self);
		before = grants(self);
		ASSERT_EQ(0, kill(self->pid, SIGCONT));
		expect_going_on(_metadata, self, before);
	}
}

/* The tracer reaches neither the request nor what the kernel wrote. */
static void expect_out_of_reach(struct __test_metadata *_metadata, FIXTURE_DATA(seen) *self)
{
	struct task_sharedinfo before = *self->slot;
	char *bytes = (char *)self->slot;
	size_t i;

	for (i = 0; i < TST_SLOT_SIZE; i += sizeof(long)) {
		errno = 0;
		EXPECT_EQ(-1, ptrace(PTRACE_PEEKDATA, self->pid, bytes + i, NULL));
		EXPECT_EQ(EIO, errno);
		errno = 0;
		EXPECT_EQ(-1, ptrace(PTRACE_POKEDATA, self->pid, bytes + i, (void *)-1L));
		EXPECT_EQ(EIO, errno);
	}
	EXPECT_EQ(0, memcmp(&before, (void *)self->slot, sizeof(before)));
}

static void trace_on(struct __test_metadata *_metadata, FIXTURE_DATA(seen) *self, int how)
{
	int status;

	ASSERT_EQ(0, ptrace(how, self->pid, NULL, NULL));
	if (how == PTRACE_SINGLESTEP)
		ASSERT_EQ(self->pid, waitpid(self->pid, &status, __WALL));
}

TEST_F(seen, ptrace_attach_in_a_delay)
{
	uint64_t before;
	int i, status;

	for (i = 0; i < ROUNDS; i++) {
		before = grants(self);
		ASSERT_TRUE(sees_delay(self->slot));
		ASSERT_EQ(0, ptrace(PTRACE_ATTACH, self->pid, NULL, NULL));
		ASSERT_EQ(self->pid, waitpid(self->pid, &status, __WALL));
		EXPECT_TRUE(WIFSTOPPED(status));
		expect_still(_metadata, self);
		if (!i)
			expect_out_of_reach(_metadata, self);
		ASSERT_EQ(0, ptrace(PTRACE_DETACH, self->pid, NULL, NULL));
		expect_going_on(_metadata, self, before);
	}
}

TEST_F(seen, ptrace_interrupt_and_steps)
{
	uint64_t before;
	int i, status;

	ASSERT_EQ(0, ptrace(PTRACE_SEIZE, self->pid, NULL, NULL));
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_TRUE(sees_delay(self->slot));
		ASSERT_EQ(0, ptrace(PTRACE_INTERRUPT, self->pid, NULL, NULL));
		ASSERT_EQ(self->pid, waitpid(self->pid, &status, __WALL));
		expect_still(_metadata, self);
		before = grants(self);
		trace_on(_metadata, self, PTRACE_CONT);
		expect_going_on(_metadata, self, before);
	}
	ASSERT_EQ(0, ptrace(PTRACE_INTERRUPT, self->pid, NULL, NULL));
	ASSERT_EQ(self->pid, waitpid(self->pid, &status, __WALL));
	for (i = 0; i < 200; i++)
		trace_on(_metadata, self, PTRACE_SINGLESTEP);
	expect_still(_metadata, self);
	/* Killed while it is stopped. */
}

static bool frozen_is(const char *what)
{
	char text[256];

	return tst_read_file(GROUP "/cgroup.events", text, sizeof(text)) > 0 && strstr(text, what);
}

TEST_F(seen, frozen_in_a_delay)
{
	uint64_t before;
	char word[16];
	int i;

	ASSERT_TRUE(!mkdir(GROUP, 0755) || errno == EEXIST);
	snprintf(word, sizeof(word), "%d", self->pid);
	ASSERT_EQ(0, tst_write_file(GROUP "/cgroup.procs", word, 0));
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_TRUE(sees_delay(self->slot));
		ASSERT_EQ(0, tst_write_file(GROUP "/cgroup.freeze", "1", 0));
		ASSERT_TRUE(tst_wait_until(frozen_is("frozen 1"), GONE_MS));
		expect_still(_metadata, self);
		before = grants(self);
		ASSERT_EQ(0, tst_write_file(GROUP "/cgroup.freeze", "0", 0));
		expect_going_on(_metadata, self, before);
	}
	/* A frozen one can still be killed. */
	ASSERT_EQ(0, tst_write_file(GROUP "/cgroup.freeze", "1", 0));
	ASSERT_TRUE(tst_wait_until(frozen_is("frozen 1"), GONE_MS));
	kill_seen(_metadata, self);
	EXPECT_TRUE(tst_wait_until(!rmdir(GROUP), GONE_MS));
}

/*
 * By its own hand, and in virtual time, so that it is sure to be in the delay: whatever
 * ends it or holds it up there, the delay is over, and is counted as ended otherwise.
 */
FIXTURE(alone) {
	struct tst_hog hog;
};

FIXTURE_SETUP(alone)
{
	begin(_metadata, &self->hog);
}

FIXTURE_TEARDOWN(alone)
{
	end(_metadata, &self->hog);
}

static void end_by_exit(void)
{
	_exit(0);
}

static void end_by_kill(void)
{
	raise(SIGKILL);
}

static void end_by_fault(void)
{
	*(volatile int *)NULL = 0;
}

static void end_of_thread(void)
{
	pthread_exit(NULL);
}

/* @quick: long before the cap; others end in the kernel, when the cap is reached. */
static const struct {
	const char *name;
	void (*end)(void);
	int code;
	bool quick;
} ends[] = {
	{ "exit", end_by_exit, 0, false },
	{ "SIGKILL", end_by_kill, 256 + SIGKILL, true },
	{ "a fault", end_by_fault, 256 + SIGSEGV, true },
	{ "the end of the thread", end_of_thread, 0, false },
	{ "exec", exec_again, 0, false },
};

static int end_in_delay(void *which)
{
	struct task_sharedinfo *slot;
	int fd;

	slot = begin_life(&fd);
	if (!slot)
		return 90;
	prepare_exec(fd, 0);
	if (!enter_delay(slot))
		return 91;
	ends[*(unsigned int *)which].end();
	return 92;
}

TEST_F(alone, ends_in_a_delay)
{
	struct taskshared_counters before, after;
	unsigned int i;
	int round;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		ASSERT_EQ(0, tst_totals(&before));
		for (round = 0; round < ROUNDS; round++)
			ASSERT_EQ(ends[i].code, tst_in_child(end_in_delay, &i))
				TH_LOG("%s", ends[i].name);
		EXPECT_TRUE(tst_nothing_held_soon());
		ASSERT_EQ(0, tst_totals(&after));
		after = tst_difference(&after, &before);
		tst_print_counters(ends[i].name, &after);
		/* More, if a console's thread has ended one before the child could look. */
		EXPECT_LE(ROUNDS, after.granted);
		EXPECT_EQ(after.granted,
			  ends[i].quick ? after.ended : after.ended + after.expired);
	}
}

static void hold_by_stop(void)
{
	raise(SIGSTOP);
}

static bool stops(pid_t child)
{
	int status;

	return waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status);
}

static bool release_stopped(pid_t child)
{
	return !kill(child, SIGCONT);
}

static bool release_traced(pid_t child)
{
	return !ptrace(PTRACE_CONT, child, NULL, NULL);
}

static void hold_by_freezer(void)
{
	tst_write_file(GROUP "/cgroup.freeze", "1", 0);
}

static bool freezes(pid_t child)
{
	(void)child;
	return tst_wait_until(frozen_is("frozen 1"), GONE_MS);
}

static bool release_frozen(pid_t child)
{
	(void)child;
	return !tst_write_file(GROUP "/cgroup.freeze", "0", 0);
}

static const struct {
	const char *name;
	bool traced;
	void (*hold)(void);
	bool (*held)(pid_t child);
	bool (*release)(pid_t child);
} holds[] = {
	{ "stopped", false, hold_by_stop, stops, release_stopped },
	{ "traced", true, hold_by_stop, stops, release_traced },
	{ "frozen", false, hold_by_freezer, freezes, release_frozen },
};

/* It is held up so often, and goes on. */
static int held_in_delays(unsigned int which)
{
	struct taskshared_counters counters;
	struct task_sharedinfo *slot;
	int fd, i;

	if (tst_write_file(GROUP "/cgroup.procs", "0", 0))
		return 1;
	if (holds[which].traced && ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		return 2;
	slot = begin_life(&fd);
	for (i = 0; i < ROUNDS; i++) {
		if (!slot || !enter_delay(slot))
			return 3;
		holds[which].hold();
		if (tid_of(slot) != gettid() || word_of(slot) == TASK_PREEMPT_DELAY_GRANTED)
			return 4;
	}
	if (tst_counters(fd, 0, &counters) || counters.granted < ROUNDS)
		return 5;
	printf("# %s: %llu of %d\n", holds[which].name, (unsigned long long)counters.ended,
	       ROUNDS);
	fflush(stdout);
	return counters.ended == counters.granted ? 0 : 6;
}

static void hold_up(struct __test_metadata *_metadata, unsigned int which)
{
	pid_t child;
	int i;

	fflush(NULL);
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(held_in_delays(which));
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_TRUE(holds[which].held(child));
		EXPECT_TRUE(no_delay_runs());
		EXPECT_EQ(1, tst_state("slots"));
		ASSERT_TRUE(holds[which].release(child));
	}
	EXPECT_EQ(0, tst_wait_child(child))
		TH_LOG("%s: the number is that of the check in held_in_delays()",
		       holds[which].name);
}

TEST_F(alone, held_up_in_a_delay)
{
	unsigned int i;

	ASSERT_TRUE(!mkdir(GROUP, 0755) || errno == EEXIST);
	for (i = 0; i < ARRAY_SIZE(holds); i++)
		hold_up(_metadata, i);
	EXPECT_TRUE(tst_wait_until(!rmdir(GROUP), GONE_MS));
}

TEST_HARNESS_MAIN
