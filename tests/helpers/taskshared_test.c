// SPDX-License-Identifier: MIT
/* See taskshared_test.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include <linux/capability.h>

#include "taskshared_test.h"

#define TOTALS	 "/sys/kernel/debug/taskshared/totals"
#define STATE	 "/sys/kernel/debug/taskshared/state"
#define DELAY_US "/sys/module/taskshared/parameters/delay_us"

/* The module */

const char *tst_module_file(void)
{
	const char *path = getenv("TASKSHARED_KO");

	return path ? path : "/taskshared.ko";
}

int tst_insmod(const char *file, const char *parameters)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), error = 0;

	if (fd < 0)
		return errno;
	if (syscall(SYS_finit_module, fd, parameters, 0))
		error = errno;
	close(fd);
	return error;
}

int tst_rmmod(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? errno : 0;
}

int tst_load(const char *parameters)
{
	return tst_insmod(tst_module_file(), parameters);
}

int tst_unload(void)
{
	return tst_rmmod("taskshared");
}

bool tst_unload_soon(void)
{
	return tst_wait_until(!tst_unload(), 5000);
}

/* The device */

size_t tst_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int tst_open(void)
{
	return open(TASKSHARED_DEVICE, O_RDWR | O_CLOEXEC);
}

static void *map(int fd, size_t size, off_t offset)
{
	void *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	return area == MAP_FAILED ? NULL : area;
}

void *tst_map_page(int fd)
{
	return map(fd, tst_page_size(), 0);
}

void *tst_map_window(int fd, size_t size)
{
	struct taskshared_info info = { 0 };

	if (!size) {
		if (ioctl(fd, TASKSHARED_IOC_INFO, &info))
			return NULL;
		size = info.window_size;
	}
	return map(fd, size, TASKSHARED_WINDOW);
}

struct task_sharedinfo *tst_find(void *area, size_t size, pid_t tid)
{
	struct task_sharedinfo *slots = area, *found = NULL;
	size_t i;

	for (i = 0; i < size / sizeof(*slots); i++) {
		if (*(volatile __u32 *)&slots[i].tid != (__u32)tid)
			continue;
		if (found) {
			errno = EEXIST;
			return NULL;
		}
		found = &slots[i];
	}
	if (!found)
		errno = ENOENT;
	return found;
}

struct task_sharedinfo *tst_slot(int fd)
{
	void *page = tst_map_page(fd);

	return page ? tst_find(page, tst_page_size(), gettid()) : NULL;
}

long long tst_slot_offset(int fd)
{
	struct taskshared_slot slot = { 0 };

	if (ioctl(fd, TASKSHARED_IOC_SLOT, &slot))
		return -1;
	return (long long)slot.offset;
}

bool tst_is_zero(const volatile void *area, size_t count)
{
	const volatile unsigned char *bytes = area;
	size_t i;

	for (i = 0; i < count; i++)
		if (bytes[i])
			return false;
	return true;
}

int tst_count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	if (!maps)
		return -1;
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, TASKSHARED_DEVICE) != NULL;
	fclose(maps);
	return count;
}

void *tst_page_of(const struct task_sharedinfo *slot)
{
	return (void *)((uintptr_t)slot & ~(tst_page_size() - 1));
}

bool tst_is_fresh(const struct task_sharedinfo *slot)
{
	size_t tid = offsetof(struct task_sharedinfo, tid), after = tid + sizeof(slot->tid);

	return tst_is_zero(slot, tid) &&
	       tst_is_zero((const char *)slot + after, sizeof(*slot) - after);
}

int tst_call(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) < 0 ? errno : 0;
}

bool tst_vm_flags(const void *address, char *flags, size_t size)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	bool inside = false, found = false;
	char line[512];

	if (!smaps)
		return false;
	while (!found && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = (unsigned long)address >= start && (unsigned long)address < end;
		else if (inside && !strncmp(line, "VmFlags:", 8)) {
			snprintf(flags, size, "%s", line + 8);
			found = true;
		}
	}
	fclose(smaps);
	return found;
}

/* Figures */

/* Every field of struct taskshared_counters that counts something. */
#define FIELDS(X)								\
	X(requested) X(granted) X(denied) X(yielded) X(expired) X(ended) X(active) \
	X(refused_off) X(refused_work) X(refused_class) X(refused_rt) X(refused_cap) \
	X(delay_ns) X(delay_max_ns) X(overrun_ns)

int tst_counters(int fd, pid_t tid, struct taskshared_counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	counters->tid = (__u32)tid;
	return ioctl(fd, TASKSHARED_IOC_COUNTERS, counters);
}

ssize_t tst_read_file(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t got;

	if (fd < 0)
		return -1;
	while (used < size - 1 && (got = read(fd, buffer + used, size - 1 - used)) > 0)
		used += (size_t)got;
	buffer[used] = '\0';
	close(fd);
	return (ssize_t)used;
}

bool tst_file_has(const char *path, const char *text)
{
	FILE *file = fopen(path, "re");
	char line[1024];
	bool has = false;

	while (file && !has && fgets(line, sizeof(line), file))
		has = strstr(line, text);
	if (file)
		fclose(file);
	return has;
}

bool tst_schedule_is_traced(void)
{
	FILE *list = fopen("/sys/kernel/tracing/enabled_functions", "re");
	bool traced = false;
	char line[512];

	while (list && fgets(line, sizeof(line), list))
		traced = traced || !strncmp(line, "schedule ", 9);
	if (list)
		fclose(list);
	return traced;
}

int tst_write_file(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags), error = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		error = errno;
	close(fd);
	return error;
}

/* The value behind "name " at the start of a line; -1 if there is none. */
static long long value_of(const char *text, const char *name)
{
	size_t length = strlen(name);
	const char *line;

	for (line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, length) && line[length] == ' ')
			return strtoll(line + length, NULL, 10);
	}
	errno = ENOENT;
	return -1;
}

long long tst_state(const char *name)
{
	char text[4096];

	if (tst_read_file(STATE, text, sizeof(text)) < 0)
		return -1;
	return value_of(text, name);
}

bool tst_nothing_held(void)
{
	return !tst_state("slots") && !tst_state("pages") && !tst_state("files") &&
	       !tst_state("pools");
}

bool tst_nothing_held_soon(void)
{
	return tst_wait_until(tst_nothing_held(), 10000);
}

int tst_totals(struct taskshared_counters *totals)
{
	long long value;
	char text[4096];

	memset(totals, 0, sizeof(*totals));
	if (tst_read_file(TOTALS, text, sizeof(text)) < 0)
		return -1;
#define READ(field)					\
	value = value_of(text, #field);			\
	if (value < 0)					\
		return -1;				\
	totals->field = (__u64)value;
	FIELDS(READ)
#undef READ
	return 0;
}

bool tst_adds_up(const struct taskshared_counters *c, const char **message)
{
	*message = "";
	if (c->requested != c->granted + c->denied + c->refused_off + c->refused_work +
			    c->refused_class + c->refused_rt + c->refused_cap)
		*message = "requested is not granted + denied + refused_*";
	else if (c->granted != c->yielded + c->expired + c->ended + c->active)
		*message = "granted is not yielded + expired + ended + active";
	else if (c->delay_max_ns > c->delay_ns)
		*message = "the longest delay is longer than all of them together";
	else
		return true;
	return false;
}

struct taskshared_counters tst_difference(const struct taskshared_counters *a,
					  const struct taskshared_counters *b)
{
	struct taskshared_counters d = *a;

#define SUBTRACT(field) d.field -= b->field;
	FIELDS(SUBTRACT)
#undef SUBTRACT
	d.delay_max_ns = a->delay_max_ns;
	return d;
}

void tst_add(struct taskshared_counters *sum, const struct taskshared_counters *one)
{
	__u64 longest = sum->delay_max_ns;

#define ADD(field) sum->field += one->field;
	FIELDS(ADD)
#undef ADD
	sum->delay_max_ns = longest;
}

bool tst_same(const struct taskshared_counters *a, const struct taskshared_counters *b,
	      const char **message)
{
	struct taskshared_counters other = *b;
	static char text[96];

	*message = "";
	other.delay_max_ns = a->delay_max_ns;
#define COMPARE(field)							\
	if (a->field != other.field) {					\
		snprintf(text, sizeof(text), #field " is %llu and %llu",	\
			 (unsigned long long)a->field,			\
			 (unsigned long long)other.field);		\
		*message = text;					\
		return false;						\
	}
	FIELDS(COMPARE)
#undef COMPARE
	return true;
}

void tst_print_counters(const char *name, const struct taskshared_counters *c)
{
	uint64_t ended = c->granted - c->active;

	printf("# %s:", name);
#define PRINT(field)							\
	if (c->field)							\
		printf(" " #field " %llu", (unsigned long long)c->field);
	FIELDS(PRINT)
#undef PRINT
	if (ended)
		printf(" (mean %llu ns)", (unsigned long long)(c->delay_ns / ended));
	printf("\n");
}

int tst_write_delay_us(const char *value)
{
	return tst_write_file(DELAY_US, value, 0);
}

long tst_read_delay_us(void)
{
	char text[32];

	if (tst_read_file(DELAY_US, text, sizeof(text)) <= 0)
		return -1;
	return strtol(text, NULL, 10);
}

/* Clocks and waiting */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * TST_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t tst_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

bool tst_late(uint64_t end)
{
	static __thread unsigned int calls;

	return ++calls % 65536 == 0 && tst_now() > end;
}

uint64_t tst_cpu_time(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

long tst_involuntary_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}

void tst_spin(uint64_t ns)
{
	uint64_t end = tst_now() + ns;
	volatile unsigned int i;

	while (tst_now() < end)
		for (i = 0; i < 400; i++)
			;
}

void tst_sleep(uint64_t ns)
{
	struct timespec ts = tst_timespec(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

/* CPUs and threads */

int tst_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

bool tst_preempt_rt(void)
{
	struct utsname name;

	return !uname(&name) && strstr(name.version, "PREEMPT_RT");
}

int tst_cpus(void)
{
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int tst_set_fifo(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param);
}

static void *hog(void *arg)
{
	struct tst_hog *self = arg;

	tst_pin(self->cpu);
	while (!self->stop)
		self->progress++;
	return NULL;
}

int tst_hogs_start(struct tst_hog *hogs, unsigned int count, int cpu)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		hogs[i] = (struct tst_hog){ .cpu = cpu };
		errno = pthread_create(&hogs[i].thread, NULL, hog, &hogs[i]);
		if (errno) {
			tst_hogs_stop(hogs, i);
			return -1;
		}
	}
	return 0;
}

void tst_hogs_stop(struct tst_hog *hogs, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		hogs[i].stop = true;
	for (i = 0; i < count; i++)
		pthread_join(hogs[i].thread, NULL);
}

static void *member(void *arg)
{
	struct tst_member *self = arg;
	struct tst_crew *crew = self->crew;

	self->tid = gettid();
	self->took = tst_now();
	self->offset = tst_slot_offset(crew->fd);
	self->error = self->offset < 0 ? errno : 0;
	self->took = tst_now() - self->took;
	pthread_barrier_wait(&crew->ready);
	if (crew->work)
		crew->work(self);
	pthread_barrier_wait(&crew->end);
	return NULL;
}

int tst_crew_start(struct tst_crew *crew)
{
	pthread_attr_t attr;
	unsigned int i;

	crew->leave = false;
	crew->members = calloc(crew->count, sizeof(*crew->members));
	if (!crew->members)
		return -1;
	pthread_barrier_init(&crew->ready, NULL, crew->count + 1);
	pthread_barrier_init(&crew->end, NULL, crew->count + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 * 1024);
	for (i = 0; i < crew->count; i++) {
		crew->members[i].crew = crew;
		/* The threads before this one wait for ever: the caller has failed. */
		errno = pthread_create(&crew->members[i].thread, &attr, member, &crew->members[i]);
		if (errno)
			return -1;
	}
	pthread_attr_destroy(&attr);
	pthread_barrier_wait(&crew->ready);
	return 0;
}

void tst_crew_stop(struct tst_crew *crew)
{
	unsigned int i;

	crew->leave = true;
	pthread_barrier_wait(&crew->end);
	for (i = 0; i < crew->count; i++)
		pthread_join(crew->members[i].thread, NULL);
	pthread_barrier_destroy(&crew->ready);
	pthread_barrier_destroy(&crew->end);
	free(crew->members);
	crew->members = NULL;
}

void tst_request_for_ever(struct tst_member *member)
{
	struct task_sharedinfo *slot = tst_slot(member->crew->fd);

	while (slot && !member->crew->leave)
		tst_request(slot);
}

int tst_wait_child(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

int tst_become_user(uid_t uid, rlim_t memlock)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = 1 << CAP_DAC_OVERRIDE, .permitted = 1 << CAP_DAC_OVERRIDE },
	};
	struct rlimit limit = { memlock, memlock };

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || prctl(PR_SET_KEEPCAPS, 1))
		return -1;
	if (setgid(uid) || setuid(uid) || syscall(SYS_capset, &header, data))
		return -1;
	/* So that its own files in /proc stay its own. */
	return prctl(PR_SET_DUMPABLE, 1);
}

int tst_in_child(int (*check)(void *arg), void *arg)
{
	pid_t child;

	/* What is still in the buffer would be printed twice. */
	fflush(NULL);
	child = fork();
	if (!child) {
		int code = check(arg);

		fflush(NULL);
		_exit(code);
	}
	return child < 0 ? -1 : tst_wait_child(child);
}

pid_t tst_start_sharing(int (*run)(void *arg), void *arg, int flags)
{
	static char stack[64 * 1024] __attribute__((aligned(16)));

	return clone(run, stack + sizeof(stack), CLONE_VM | SIGCHLD | flags, arg);
}

int tst_send_fd(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

int tst_receive_fd(int socket)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	int fd = -1;

	if (recvmsg(socket, &message, 0) != 1)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (header)
		memcpy(&fd, CMSG_DATA(header), sizeof(int));
	return fd;
}
