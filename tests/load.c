// SPDX-License-Identifier: MIT
/*
 * Loading and unloading, and the delay_us parameter. Loads the module itself,
 * from the file that TASKSHARED_KO names or /taskshared.ko: it must not be
 * loaded when this begins.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "helpers/taskshared_test.h"

#define ROUNDS		50
#define KPROBES		"/sys/kernel/debug/kprobes/list"
/* The hooks stay armed for a second after the last slot is gone. */
#define DISARMED_MS	4000

static bool is_loaded(void)
{
	return !access("/sys/module/taskshared", F_OK);
}

/* The kernel log from the moment of log_open(). */
static int log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* Counts the module's own lines and keeps the last one. */
static int log_lines(int fd, char *last, size_t size)
{
	char record[2048], *text;
	int lines = 0;
	ssize_t got;

	last[0] = '\0';
	while ((got = read(fd, record, sizeof(record) - 1)) > 0 || (got < 0 && errno == EPIPE)) {
		if (got < 0)
			continue;
		record[got] = '\0';
		text = strchr(record, ';');
		if (!text || strncmp(++text, "taskshared: ", 12))
			continue;
		/* Said by the kernel of every such module, once. */
		if (strstr(text, "taint"))
			continue;
		text[strcspn(text, "\n")] = '\0';
		printf("# log: %s\n", text);
		snprintf(last, size, "%s", text);
		lines++;
	}
	return lines;
}

/* Kprobes in the kernel: those that are armed, or all of them; -1 on error. */
static int count_kprobes(bool armed)
{
	FILE *list = fopen(KPROBES, "re");
	char line[512];
	int count = 0;

	if (!list)
		return -1;
	while (fgets(line, sizeof(line), list))
		count += !armed || !strstr(line, "[DISABLED]");
	fclose(list);
	return count;
}

FIXTURE(load) {
	int kprobes;
};

FIXTURE_SETUP(load)
{
	if (is_loaded())
		tst_unload_soon();
	ASSERT_FALSE(is_loaded())
		TH_LOG("the module is loaded, and in use");
	ASSERT_EQ(0, access(tst_module_file(), R_OK))
		TH_LOG("%s: %s", tst_module_file(), strerror(errno));
	self->kprobes = count_kprobes(false);
	EXPECT_EQ(0, self->kprobes)
		TH_LOG("%d kprobes (-1: no %s) before the module was loaded", self->kprobes,
		       KPROBES);
}

FIXTURE_TEARDOWN(load)
{
	if (is_loaded())
		EXPECT_TRUE(tst_unload_soon());
	EXPECT_EQ(self->kprobes, count_kprobes(false));
	EXPECT_FALSE(tst_schedule_is_traced());
	EXPECT_EQ(-1, access(TASKSHARED_DEVICE, F_OK));
	EXPECT_EQ(-1, access("/sys/kernel/debug/taskshared", F_OK));
}

TEST_F(load, one_line_in_the_log)
{
	struct utsname name;
	char line[1024];
	int fd;

	/* The first time the kernel adds lines of its own. */
	ASSERT_EQ(0, tst_load(""));
	ASSERT_EQ(0, tst_unload());

	uname(&name);
	fd = log_open();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tst_load("delay_us=30"));
	EXPECT_EQ(1, log_lines(fd, line, sizeof(line)));
	EXPECT_NE(NULL, strstr(line, name.release))
		TH_LOG("no kernel release %s in: %s", name.release, line);
	EXPECT_NE(NULL, strstr(line, "30 us"))
		TH_LOG("no cap in: %s", line);
	EXPECT_TRUE(strstr(line, "exit_to_user_mode") || strstr(line, "irqentry_exit"))
		TH_LOG("no probe site in: %s", line);

	/* Use leaves no trace in it. */
	EXPECT_EQ(0, close(tst_open()));
	EXPECT_EQ(0, tst_unload());
	EXPECT_EQ(0, log_lines(fd, line, sizeof(line)));
	close(fd);
}

TEST_F(load, bad_delay_us_is_refused)
{
	static const struct {
		const char *parameters;
		int error;
	} bad[] = {
		{ "delay_us=1", ERANGE }, { "delay_us=4", ERANGE }, { "delay_us=51", ERANGE },
		{ "delay_us=50000", ERANGE }, { "delay_us=-1", EINVAL },
		{ "delay_us=abc", EINVAL }, { "delay_us=", EINVAL }, { "delay_us=10x", EINVAL },
		{ "delay_us=5.5", EINVAL },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(bad[i].error, tst_load(bad[i].parameters))
			TH_LOG("insmod with %s", bad[i].parameters);
		EXPECT_FALSE(is_loaded());
		EXPECT_EQ(-1, access(TASKSHARED_DEVICE, F_OK));
		if (is_loaded())
			tst_unload();
	}
	EXPECT_EQ(0, count_kprobes(false));
}

TEST_F(load, good_delay_us_is_taken)
{
	static const struct {
		const char *parameters;
		long value;
	} good[] = {
		{ "", 50 }, { "delay_us=0", 0 }, { "delay_us=5", 5 }, { "delay_us=50", 50 },
	};
	struct taskshared_info info;
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		ASSERT_EQ(0, tst_load(good[i].parameters));
		EXPECT_EQ(good[i].value, tst_read_delay_us());
		fd = tst_open();
		ASSERT_LE(0, fd);
		memset(&info, 0, sizeof(info));
		EXPECT_EQ(0, ioctl(fd, TASKSHARED_IOC_INFO, &info));
		EXPECT_EQ(good[i].value * 1000, info.cap_ns);
		close(fd);
		EXPECT_EQ(0, tst_unload());
	}
}

TEST_F(load, delay_us_at_run_time)
{
	static const struct {
		const char *text;
		int error;
		long value;
	} writes[] = {
		{ "5", 0, 5 }, { "4", ERANGE, 5 }, { "51", ERANGE, 5 }, { "abc", EINVAL, 5 },
		{ "50", 0, 50 }, { "1", ERANGE, 50 }, { "-1", EINVAL, 50 },
		{ "-20", EINVAL, 50 }, { "4294967301", ERANGE, 50 },
		{ "0", 0, 0 }, { "4", ERANGE, 0 }, { "20\n", 0, 20 },
		{ "20 30", EINVAL, 20 }, { "18446744073709551621", ERANGE, 20 },
	};
	struct taskshared_info info;
	unsigned int i;
	int fd;

	ASSERT_EQ(0, tst_load(""));
	fd = tst_open();
	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(writes); i++) {
		EXPECT_EQ(writes[i].error, tst_write_delay_us(writes[i].text))
			TH_LOG("writing '%s'", writes[i].text);
		EXPECT_EQ(writes[i].value, tst_read_delay_us())
			TH_LOG("after writing '%s'", writes[i].text);
		memset(&info, 0, sizeof(info));
		EXPECT_EQ(0, ioctl(fd, TASKSHARED_IOC_INFO, &info));
		EXPECT_EQ(writes[i].value * 1000, info.cap_ns);
	}
	close(fd);
}

/* Is anything in the kernel's text changed for the module? */
static bool is_hooked(void)
{
	return count_kprobes(true) > 0 || tst_schedule_is_traced();
}

/* A program that holds something of the module until it is killed. */
enum hold { HOLD_FILE, HOLD_MAPPING, HOLD_SLOT };

static pid_t start_holder(enum hold what)
{
	int ends[2], fd;
	void *page;
	pid_t pid;
	char byte;

	if (pipe(ends))
		return -1;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		fd = tst_open();
		if (fd < 0)
			_exit(1);
		if (what != HOLD_FILE) {
			page = tst_map_page(fd);
			if (!page)
				_exit(1);
			if (what == HOLD_SLOT)
				munmap(page, tst_page_size());
			else if (ioctl(fd, TASKSHARED_IOC_RELEASE, 0))
				_exit(1);
			close(fd);
		}
		if (write(ends[1], "", 1) != 1)
			_exit(1);
		while (1)
			pause();
	}
	close(ends[1]);
	if (pid > 0 && read(ends[0], &byte, 1) != 1)
		pid = -1;
	close(ends[0]);
	return pid;
}

TEST_F(load, rmmod_refuses_while_in_use)
{
	static const char * const names[] = {
		[HOLD_FILE] = "an open file",
		[HOLD_MAPPING] = "a mapping alone",
		[HOLD_SLOT] = "a slot alone",
	};
	int i, error;
	pid_t pid;

	for (i = HOLD_FILE; i <= HOLD_SLOT; i++) {
		ASSERT_EQ(0, tst_load(""));
		pid = start_holder(i);
		ASSERT_LT(0, pid);
		error = tst_unload();
		EXPECT_TRUE(error == EBUSY || error == EWOULDBLOCK)
			TH_LOG("rmmod while a program has %s: %s", names[i], strerror(error));
		EXPECT_TRUE(is_loaded());
		EXPECT_EQ(0, kill(pid, SIGKILL));
		EXPECT_EQ(256 + SIGKILL, tst_wait_child(pid));
		EXPECT_TRUE(tst_unload_soon())
			TH_LOG("rmmod after the end of a program that had %s", names[i]);
		EXPECT_FALSE(is_loaded());
	}
}

TEST_F(load, armed_only_while_a_slot_exists)
{
	int round;
	pid_t pid;

	ASSERT_EQ(0, tst_load(""));
	EXPECT_FALSE(is_hooked());
	EXPECT_EQ(0, tst_state("armed"));

	/* A file alone arms nothing. */
	pid = start_holder(HOLD_FILE);
	ASSERT_LT(0, pid);
	EXPECT_FALSE(is_hooked());
	kill(pid, SIGKILL);
	tst_wait_child(pid);

	/* Twice, so that disarming has not been for good. */
	for (round = 0; round < 2; round++) {
		pid = start_holder(HOLD_SLOT);
		ASSERT_LT(0, pid);
		EXPECT_TRUE(is_hooked());
		EXPECT_EQ(1, tst_state("armed"));
		printf("# while a slot exists: %d kprobes armed, schedule() %s by ftrace\n",
		       count_kprobes(true), tst_schedule_is_traced() ? "diverted" : "untouched");
		kill(pid, SIGKILL);
		tst_wait_child(pid);
		EXPECT_TRUE(tst_wait_until(!is_hooked(), DISARMED_MS));
		EXPECT_EQ(0, count_kprobes(true));
		/* After the hooks are gone it still waits for who may be in them. */
		EXPECT_TRUE(tst_wait_until(tst_state("armed") == 0, DISARMED_MS));
	}
}

/* One that is killed in the middle of asking for delays, beside a competitor. */
static int requester(void *arg)
{
	uint64_t end = tst_now() + 10 * TST_MSEC;
	struct tst_hog hog;
	struct task_sharedinfo *slot = tst_slot(tst_open());

	(void)arg;
	if (!slot || tst_pin(0) || tst_hogs_start(&hog, 1, 0))
		return 1;
	while (tst_now() < end)
		tst_request(slot);
	return 0;
}

TEST_F_TIMEOUT(load, fifty_times, 120)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, tst_load(""))
			TH_LOG("round %d", i);
		/* Also just after use, when the hooks are still armed. */
		if (i % 2)
			ASSERT_EQ(0, tst_in_child(requester, NULL));
		ASSERT_TRUE(tst_unload_soon())
			TH_LOG("round %d", i);
		ASSERT_EQ(0, count_kprobes(false))
			TH_LOG("round %d left kprobes", i);
	}
}

TEST_HARNESS_MAIN
