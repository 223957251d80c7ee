// SPDX-License-Identifier: MIT
/*
 * Ways into user mode that look like that from an interrupt, or are exceptions: no
 * delay is longer for them, none follows another, and the counters add up. For
 * virtual time on one CPU.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "helpers/delay_fixture.h"

/*
 * Stays in user mode, so long that the tick finds the thread there as a rule: in the
 * kernel it may be preempted there and then. Not always as long: else who was once
 * switched away at the end of a system call would be again in every time slice.
 */
static void stay_in_user_mode(void)
{
	static uint64_t random = 0x656e747279;

	tst_spin(10 * TST_USEC + tst_random(&random) % (20 * TST_USEC));
}

/*
 * What holds for each. A delay may find its cap reached in the kernel, which shows
 * as overrun; and the scheduler may pick the same thread again, now and then.
 */
static void check_delays(struct __test_metadata *_metadata, const char *name,
			 const struct taskshared_counters *counters, long switches)
{
	const char *message;

	printf("# %s: %ld involuntary switches\n", name, switches);
	EXPECT_TRUE(tst_adds_up(counters, &message))
		TH_LOG("%s: %s", name, message);
	EXPECT_EQ(0, counters->active);
	EXPECT_LE(ENOUGH / 2, counters->granted);
	EXPECT_LE((long)counters->granted, 2 * switches + 10)
		TH_LOG("%s: one delay after the other", name);
	EXPECT_LE(counters->delay_ns, counters->granted * CAP + counters->overrun_ns);
	EXPECT_LE(counters->delay_max_ns, CAP + INTERRUPTED);
	EXPECT_LE(counters->overrun_ns, counters->granted * INTERRUPTED);
}

/* rt_sigreturn leaves no number of a system call behind, as an interrupt does. */

static struct task_sharedinfo *handler_slot;
static volatile unsigned int handler_left;

static void request_in_handler(int signal)
{
	(void)signal;
	tst_request(handler_slot);
	handler_left = handler_slot->sched_delay;
}

TEST_F(delay, return_from_a_signal_handler)
{
	struct sigaction action = { .sa_handler = request_in_handler };
	struct taskshared_counters counters;
	unsigned int handlers = 0, by_return = 0;
	long switches;
	uint64_t end;

	handler_slot = self->slot;
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	start_hogs(_metadata, self, 1);
	switches = tst_involuntary_switches();
	end = tst_now() + RUN;
	while (tst_now() < end) {
		syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
		handlers++;
		by_return += handler_left == TASK_PREEMPT_DELAY_REQ &&
			     self->slot->sched_delay == TASK_PREEMPT_DELAY_GRANTED;
		stay_in_user_mode();
	}
	switches = tst_involuntary_switches() - switches;
	counters = settle(_metadata, self, "handlers");
	printf("# handlers: %u ran, %u delays began between one's end and the thread's next step\n",
	       handlers, by_return);
	EXPECT_LE(1000, handlers);
	check_delays(_metadata, "handlers", &counters, switches);
}

/* So does a tracer that cancels a system call. */

/**
 * struct traced - what a traced child found out
 * @counters: its own, at the end
 * @switches: involuntary ones
 * @cancelled: calls that were
 * @done: all of this is there
 */
struct traced {
	struct taskshared_counters counters;
	long switches;
	unsigned int cancelled;
	bool done;
};

static void run_traced(struct traced *traced)
{
	uint64_t end = tst_now() + RUN;
	struct task_sharedinfo *slot;
	int fd = tst_open(), i;
	long switches;

	slot = tst_slot(fd);
	if (!slot || ptrace(PTRACE_TRACEME, 0, NULL, NULL) || raise(SIGSTOP))
		return;
	switches = tst_involuntary_switches();
	while (tst_now() < end) {
		for (i = 0; i < 8; i++) {
			tst_request(slot);
			traced->cancelled += syscall(SYS_getppid) < 0;
		}
		/* A traced thread sleeps so often that it never uses up a time slice. */
		tst_request(slot);
		tst_spin(6 * TST_MSEC);
	}
	traced->switches = tst_involuntary_switches() - switches;
	slot->sched_delay = 0;
	ioctl(fd, TASKSHARED_IOC_YIELD, 0);
	traced->done = tst_counters(fd, 0, &traced->counters) == 0;
}

/* Until the child ends: false if something is wrong. */
static bool cancel_calls(pid_t child)
{
	struct user_regs_struct regs;
	int status;

	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		if (ptrace(PTRACE_GETREGS, child, NULL, &regs))
			return false;
		/* At the entry alone; at the exit the number is gone. */
		if (regs.orig_rax == SYS_getppid) {
			regs.orig_rax = -1;
			if (ptrace(PTRACE_SETREGS, child, NULL, &regs))
				return false;
		}
		if (ptrace(PTRACE_SYSCALL, child, NULL, NULL))
			return false;
	}
	return WIFEXITED(status);
}

TEST_F(delay, return_from_a_cancelled_system_call)
{
	struct traced *traced = mmap(NULL, sizeof(*traced), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	ASSERT_NE(MAP_FAILED, traced);
	start_hogs(_metadata, self, 1);
	child = fork();
	if (!child) {
		run_traced(traced);
		_exit(0);
	}
	EXPECT_TRUE(cancel_calls(child));
	ASSERT_TRUE(traced->done);
	tst_print_counters("cancelled", &traced->counters);
	printf("# cancelled: %u calls\n", traced->cancelled);
	EXPECT_LE(100, traced->cancelled);
	check_delays(_metadata, "cancelled", &traced->counters, traced->switches);
}

/* Page faults, in sections and in delays. */

#define PAGES	16

/* Gives how many of the faults were inside a delay. */
static unsigned int touch(FIXTURE_DATA(delay) *self, volatile char *area)
{
	unsigned int i, inside = 0;

	for (i = 0; i < PAGES; i++) {
		inside += tst_look(self->slot) == TASK_PREEMPT_DELAY_GRANTED;
		area[i * tst_page_size()] = 1;
		stay_in_user_mode();
	}
	return inside;
}

TEST_F(delay, page_faults)
{
	size_t size = PAGES * tst_page_size();
	char *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct taskshared_counters counters;
	unsigned int inside = 0;
	long switches;
	uint64_t end;

	ASSERT_NE(MAP_FAILED, area);
	start_hogs(_metadata, self, 1);
	switches = tst_involuntary_switches();
	end = tst_now() + RUN;
	while (tst_now() < end) {
		inside += touch(self, area);
		ASSERT_EQ(0, madvise(area, size, MADV_DONTNEED));
	}
	switches = tst_involuntary_switches() - switches;
	counters = settle(_metadata, self, "faults");
	printf("# faults: %u of them in a delay\n", inside);
	EXPECT_LE(2 * ENOUGH, inside);
	check_delays(_metadata, "faults", &counters, switches);
	munmap(area, size);
}

/* A uprobe in a delay: what it makes the kernel do is not done on granted time. */

#define UPROBES	"/sys/kernel/tracing/uprobe_events"
#define UPROBE	"tst_entry"
#define ENABLE	"/sys/kernel/tracing/events/uprobes/" UPROBE "/enable"

static __attribute__((noinline, noclone)) void probed(void)
{
	asm volatile("nop");
}

/* Where in the program's file a function is; 0 if it cannot be told. */
static unsigned long file_offset(void (*function)(void))
{
	unsigned long addr = (unsigned long)function, start, end, offset, found = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[256];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    addr >= start && addr < end)
			found = addr - start + offset;
	if (maps)
		fclose(maps);
	return found;
}

/* Gives 0 or the errno. */
static int put_uprobe(void)
{
	char program[128] = "", event[256];
	int error;

	if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return errno;
	snprintf(event, sizeof(event), "p:" UPROBE " %s:0x%lx", program, file_offset(probed));
	error = tst_write_file(UPROBES, event, O_APPEND);
	return error ? error : tst_write_file(ENABLE, "1", 0);
}

TEST_F(delay, uprobe_ends_a_delay)
{
	struct taskshared_counters counters;
	unsigned int seen = 0, gave = 0, still = 0;
	uint64_t end, progress;

	ASSERT_EQ(0, put_uprobe());
	start_hogs(_metadata, self, 1);
	end = tst_now() + RUN;
	while (tst_now() < end) {
		if (tst_look(self->slot) != TASK_PREEMPT_DELAY_GRANTED)
			continue;
		seen++;
		progress = hog_progress(self);
		probed();
		still += self->slot->sched_delay == TASK_PREEMPT_DELAY_GRANTED;
		gave += hog_progress(self) != progress;
	}
	counters = settle(_metadata, self, "uprobe");
	EXPECT_EQ(0, tst_write_file(ENABLE, "0", 0));
	EXPECT_EQ(0, tst_write_file(UPROBES, "-:" UPROBE, O_APPEND));
	printf("# uprobe: %u hit in a delay, the hog ran in %u of them\n", seen, gave);
	EXPECT_LE(ENOUGH, seen);
	EXPECT_EQ(0, still)
		TH_LOG("the delay went on behind the probe");
	/* The scheduler may pick the same thread again, but not as a rule. */
	EXPECT_LE(seen, gave * 4);
	EXPECT_LE(seen * 19, counters.ended * 20);
	/* Short: a look at the word and the way into the kernel. */
	EXPECT_LE(counters.delay_ns, counters.granted * 10 * TST_USEC);
}

/* A long system call inside a delay: counted, with its true length. */

#define FDS	1000

TEST_F(delay, system_call_inside_a_delay)
{
	static struct pollfd fds[FDS];
	struct taskshared_counters before, after;
	static struct timed_hog hog;
	unsigned int seen = 0, over = 0, wrong = 0;
	uint64_t granted, end, truth, counted;
	int ends[2], i;

	ASSERT_EQ(0, pipe(ends));
	for (i = 0; i < FDS; i++)
		fds[i] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	ASSERT_EQ(0, timed_hog_start(&hog));
	end = tst_now() + RUN;
	while (tst_now() < end) {
		tst_counters(self->fd, 0, &before);
		while (tst_look(self->slot) != TASK_PREEMPT_DELAY_GRANTED && tst_now() < end)
			;
		granted = tst_now();
		if (granted >= end)
			break;
		if (poll(fds, FDS, 0))
			abort();
		tst_counters(self->fd, 0, &after);
		/* Another one ended meanwhile, or the same thread was picked again. */
		if (after.expired != before.expired + 1 || after.granted != before.granted + 1 ||
		    hog.begin < granted)
			continue;
		seen++;
		truth = hog.begin - granted;
		counted = after.overrun_ns - before.overrun_ns;
		over += counted > INTERRUPTED;
		/* Between the two: the way out of the kernel, and a switch. */
		wrong += counted + CAP + 2 * TOLERANCE < truth ||
			 counted + CAP > truth + 2 * TOLERANCE;
	}
	settle(_metadata, self, "long call");
	timed_hog_stop(&hog);
	printf("# long call: %u delays, %u of them far over the cap, %u with a wrong overrun\n",
	       seen, over, wrong);
	EXPECT_LE(ENOUGH, seen);
	EXPECT_LE(wrong * 10, seen);
}

TEST_HARNESS_MAIN
