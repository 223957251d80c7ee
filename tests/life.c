// SPDX-License-Identifier: MIT
/*
 * Life and death: every way in which a process or a thread comes into being, changes
 * and ends, also in the middle of a delay. What it had is given back at once, what
 * others have stays, and nothing is left at the end. slot.c has the plain ways; here
 * they meet delays, other threads, and files that outlive their process. held.c has
 * threads that are stopped or killed.
 *
 * TASKSHARED_LIFE_KILLS says how many processes are killed at random moments,
 * TASKSHARED_LIFE_SEED which moments those are.
 */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "helpers/after_exec.h"
#include "helpers/life_fixture.h"
#include "helpers/taskshared_test.h"

#define BAD_PROGRAM	"/tmp/taskshared_bad_program"
#define CORE		"/tmp/taskshared_core"
#define CORE_PATTERN	"/proc/sys/kernel/core_pattern"
#define MAX_SLOTS	"/sys/module/taskshared/parameters/max_slots"
#define MAX_SLOTS_STD	"32768"

/*
 * The scenarios of this fixture play in children, so that at the end nobody has
 * anything.
 */
FIXTURE(life) {
	struct tst_hog hog;
};

FIXTURE_SETUP(life)
{
	begin(_metadata, &self->hog);
}

FIXTURE_TEARDOWN(life)
{
	end(_metadata, &self->hog);
}

/* Birth */

struct birth {
	int fd;
	bool from_thread;
};

static int check_newborn(int inherited)
{
	struct taskshared_counters counters;
	struct taskshared_info info = { 0 };
	struct task_sharedinfo *slot;
	int fd = tst_open();

	if (tst_count_mappings() || tst_call(inherited, TASKSHARED_IOC_INFO, &info) != EPERM)
		return 20;
	slot = fd < 0 ? NULL : tst_slot(fd);
	if (!slot || tid_of(slot) != getpid() || !tst_is_fresh(slot))
		return 21;
	/* The delay in which its parent was is not its own. */
	if (tst_counters(fd, 0, &counters) || counters.requested || counters.active)
		return 22;
	return 0;
}

static pid_t by_fork(int fd)
{
	pid_t child = fork();

	if (!child)
		_exit(check_newborn(fd));
	return child;
}

/* Its own slot, in the memory it borrows, and then a memory of its own. */
static pid_t by_vfork(int fd)
{
	pid_t child = vfork();

	if (!child) {
		if (tst_slot_offset(fd) < 0)
			_exit(23);
		exec_again();
		_exit(24);
	}
	return child;
}

static pid_t by_spawn(int fd)
{
	pid_t child;

	(void)fd;
	errno = posix_spawn(&child, "/proc/self/exe", NULL, NULL, exec_arguments,
			    exec_environment);
	return errno ? -1 : child;
}

/* In a delay, once in each way. The number is that of the check, of 100 on a child's. */
static int give_birth(struct birth *birth)
{
	static pid_t (* const ways[])(int fd) = { by_fork, by_vfork, by_spawn };
	struct taskshared_counters counters;
	struct task_sharedinfo *slot;
	const char *message;
	unsigned int i;
	int code;

	slot = tst_slot(birth->fd);
	if (!slot)
		return 1;
	prepare_exec(birth->fd, birth->from_thread ? 2 : 1);
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		if (!enter_delay(slot))
			return 2;
		code = tst_wait_child(ways[i](birth->fd));
		if (code)
			return 100 + code;
		if (tid_of(slot) != gettid() || word_of(slot) == TASK_PREEMPT_DELAY_GRANTED)
			return 3;
		slot->sched_delay = 0;
	}
	if (tst_counters(birth->fd, 0, &counters) || counters.granted < ARRAY_SIZE(ways))
		return 4;
	return tst_adds_up(&counters, &message) && !counters.active ? 0 : 5;
}

static void *give_birth_in_thread(void *arg)
{
	return (void *)(long)give_birth(arg);
}

static int births(void *arg)
{
	struct birth birth = { .from_thread = arg };
	pthread_t thread;
	void *result;

	if (!begin_life(&birth.fd))
		return 90;
	if (!arg)
		return give_birth(&birth);
	if (pthread_create(&thread, NULL, give_birth_in_thread, &birth))
		return 91;
	pthread_join(thread, &result);
	return (int)(long)result;
}

TEST_F(life, born_in_a_delay)
{
	EXPECT_EQ(0, tst_in_child(births, NULL))
		TH_LOG("the number is that of the check in give_birth()");
	EXPECT_EQ(0, tst_in_child(births, ""))
		TH_LOG("from another thread than the first");
}

/* A child that shares the memory outlives the one that has opened the device. */

struct orphan {
	int fd;
	pid_t parent;
	struct task_sharedinfo *slot;
	volatile bool ready;
};

static int check_orphan(struct orphan *self)
{
	struct taskshared_counters counters;
	const char *message;
	int fd;

	if (!tst_wait_until(tst_state("slots") == 1, GONE_MS))
		return 2;
	if (tid_of(self->slot) != gettid() || tst_state("pools") != 1)
		return 3;
	/* The parent's id was its slot's name: gone with it. */
	if (!tst_counters(self->fd, self->parent, &counters) || errno != ESRCH)
		return 4;
	fd = tst_open();
	if (fd < 0 || tst_slot_offset(fd) != tst_slot_offset(self->fd))
		return 5;
	if (!enter_delay(self->slot) || close(fd))
		return 6;
	if (tst_counters(self->fd, 0, &counters) || !counters.granted)
		return 7;
	return tst_adds_up(&counters, &message) ? 0 : 8;
}

static int orphan(void *arg)
{
	struct orphan *self = arg;
	long long offset = tst_slot_offset(self->fd);

	self->slot = at(self->slot, offset);
	self->ready = true;
	while (getppid() == self->parent)
		tst_sleep(TST_MSEC);
	_exit(offset < 0 ? 1 : check_orphan(self));
}

static int leaves_orphan(void *unused)
{
	static struct orphan self;

	(void)unused;
	if (!begin_life(&self.fd))
		return 90;
	self.parent = getpid();
	self.slot = tst_map_window(self.fd, tst_page_size());
	if (!self.slot || tst_start_sharing(orphan, &self, 0) < 0)
		return 91;
	return tst_wait_until(self.ready, GONE_MS) ? 0 : 92;
}

TEST_F(life, memory_outlives_its_first_process)
{
	/* The orphan becomes this one's child. */
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	EXPECT_EQ(0, tst_in_child(leaves_orphan, NULL));
	EXPECT_EQ(0, tst_wait_child(-1))
		TH_LOG("the number is that of the check in check_orphan()");
}

/* Shared descriptors, but not the memory */

static pid_t fork_sharing_files(void)
{
	return (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
}

/* Its code is the descriptor of the device that it has opened and left open. */
static int opens_for_both(int inherited)
{
	int code = check_newborn(inherited), fd = tst_open();

	return code ? 200 : fd;
}

static int shares_files(void *unused)
{
	struct taskshared_info info = { 0 };
	struct task_sharedinfo *slot;
	int fd, theirs;
	pid_t child;

	(void)unused;
	slot = begin_life(&fd);
	if (!slot)
		return 1;
	child = fork_sharing_files();
	if (!child)
		_exit(opens_for_both(fd));
	theirs = tst_wait_child(child);
	if (theirs <= fd || theirs >= 200)
		return 2;
	/* The child's memory is no more, but for its pool, which its file keeps. */
	if (!tst_wait_until(tst_state("slots") == 1, GONE_MS) || tst_state("pools") != 2)
		return 3;
	if (tst_call(theirs, TASKSHARED_IOC_INFO, &info) != EPERM)
		return 4;
	if (tst_map_window(theirs, tst_page_size()) || errno != EPERM)
		return 5;
	/* The two that the child has opened. */
	if (close(theirs) || close(theirs - 1) || tst_state("pools") != 1)
		return 6;

	/* The other way round. */
	child = fork_sharing_files();
	if (!child)
		_exit(close(fd));
	if (tst_wait_child(child) || tst_call(fd, TASKSHARED_IOC_INFO, &info) != EBADF)
		return 7;
	return tid_of(slot) == gettid() && enter_delay(slot) ? 0 : 8;
}

TEST_F(life, files_shared_memory_not)
{
	EXPECT_EQ(0, tst_in_child(shares_files, NULL))
		TH_LOG("the number is that of the check in shares_files()");
}

/* exec in a delay, while other threads are in theirs; and one that fails. */

static int exec_fails_then_works(void)
{
	struct taskshared_counters counters;
	struct task_sharedinfo *slot;
	int fd;

	slot = begin_life(&fd);
	if (!slot || !enter_delay(slot))
		return 90;
	execve("/nowhere", exec_arguments, exec_environment);
	if (errno != ENOENT || tid_of(slot) != gettid() || !enter_delay(slot))
		return 91;
	if (tst_counters(fd, 0, &counters) || counters.granted < 2)
		return 92;
	prepare_exec(fd, 0);
	exec_again();
	return 93;
}

/**
 * struct execution - how a process with four more threads calls exec
 * @call: does it; its return value is that of the process if it fails
 * @from_thread: not from the first thread
 */
struct execution {
	int (*call)(void);
	bool from_thread;
};

static void *exec_in_thread(void *arg)
{
	struct execution *execution = arg;

	_exit(execution->call());
}

static int exec_beside_others(void *arg)
{
	struct tst_crew crew = { .fd = tst_open(), .count = 4, .work = tst_request_for_ever };
	struct execution *execution = arg;
	pthread_t thread;

	if (crew.fd < 0 || tst_pin(0) || tst_crew_start(&crew))
		return 80;
	if (!execution->from_thread)
		return execution->call();
	if (pthread_create(&thread, NULL, exec_in_thread, execution))
		return 81;
	pthread_join(thread, NULL);
	return 82;
}

TEST_F(life, exec_in_a_delay)
{
	struct execution execution = { .call = exec_fails_then_works };

	EXPECT_EQ(0, tst_in_child(exec_beside_others, &execution))
		TH_LOG("the number is that of the check in check_after_exec()");
	execution.from_thread = true;
	EXPECT_EQ(0, tst_in_child(exec_beside_others, &execution))
		TH_LOG("from another thread than the first");
}

/*
 * A program that cannot be loaded, which is found out when the old one is already gone:
 * its segment lies where no program can be.
 */
static int write_bad_program(void)
{
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_phoff = sizeof(header), .e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
	};
	const Elf64_Phdr segment = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 1UL << 62,
		.p_filesz = 4096, .p_memsz = 4096, .p_align = 4096,
	};
	int fd = open(BAD_PROGRAM, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	bool written = fd >= 0 && write(fd, &header, sizeof(header)) == sizeof(header) &&
		       write(fd, &segment, sizeof(segment)) == sizeof(segment) &&
		       !ftruncate(fd, 2 * 4096);

	close(fd);
	return written ? 0 : -1;
}

static int exec_bad_program(void)
{
	struct task_sharedinfo *slot;
	int fd;

	slot = begin_life(&fd);
	if (!slot || !enter_delay(slot))
		return 90;
	execve(BAD_PROGRAM, exec_arguments, exec_environment);
	return 91;
}

TEST_F(life, exec_fails_too_late)
{
	struct execution execution = { .call = exec_bad_program };

	ASSERT_EQ(0, write_bad_program());
	/* SIGKILL or SIGSEGV: the kernel's choice. */
	EXPECT_LT(256, tst_in_child(exec_beside_others, &execution));
	EXPECT_TRUE(tst_nothing_held_soon());
	execution.from_thread = true;
	EXPECT_LT(256, tst_in_child(exec_beside_others, &execution))
		TH_LOG("from another thread than the first");
	unlink(BAD_PROGRAM);
}

/* The first thread ends before the others. */

static pid_t leader;

static void *get_slot(void *fd)
{
	return (void *)(long)(tst_slot_offset(*(int *)fd) < 0);
}

static int outlive_leader(void)
{
	struct taskshared_counters counters;
	struct task_sharedinfo *slot;
	pthread_t thread;
	void *failed;
	int fd;

	slot = begin_life(&fd);
	if (!slot)
		return 80;
	if (!tst_wait_until(tst_counters(fd, leader, &counters) && errno == ESRCH, GONE_MS))
		return 81;
	if (tst_state("slots") != 1 || tst_state("pools") != 1)
		return 82;
	if (!enter_delay(slot) || pthread_create(&thread, NULL, get_slot, &fd))
		return 83;
	pthread_join(thread, &failed);
	if (failed || tst_wait_child(by_fork(fd)))
		return 84;
	prepare_exec(fd, 0);
	exec_again();
	return 85;
}

static void *survivor(void *unused)
{
	(void)unused;
	_exit(outlive_leader());
}

static int leader_ends(void *unused)
{
	pthread_t thread;
	int fd;

	(void)unused;
	leader = gettid();
	if (!begin_life(&fd) || pthread_create(&thread, NULL, survivor, NULL))
		return 90;
	pthread_exit(NULL);
}

TEST_F(life, first_thread_ends_first)
{
	EXPECT_EQ(0, tst_in_child(leader_ends, NULL))
		TH_LOG("the number is that of the check in outlive_leader() or check_after_exec()");
}

/* SIGKILL at random moments */

static void *request_in_thread(void *fd)
{
	struct tst_crew crew = { .fd = *(int *)fd };
	struct tst_member self = { .crew = &crew };

	tst_request_for_ever(&self);
	return NULL;
}

/* How far a process has come, in memory that it shares with the one that kills it. */
enum stage { NEWBORN, OPENED, REQUESTING, RELEASED, STAGES };

/* One thread that does nothing but request, one that gets a slot and gives it up. */
static void live_until_killed(volatile enum stage *stage)
{
	int fd = tst_open(), i;
	struct task_sharedinfo *slot;
	pthread_t thread;

	*stage = OPENED;
	if (fd < 0 || pthread_create(&thread, NULL, request_in_thread, &fd))
		_exit(1);
	while (1) {
		slot = tst_slot(fd);
		if (!slot)
			_exit(2);
		*stage = REQUESTING;
		for (i = 0; i < 1000; i++)
			tst_look(slot);
		munmap(tst_page_of(slot), tst_page_size());
		if (ioctl(fd, TASKSHARED_IOC_RELEASE))
			_exit(3);
		*stage = RELEASED;
	}
}

static bool kill_at_random(uint64_t *random, volatile enum stage *stage)
{
	uint64_t moment = tst_random(random) % (1U << (14 + tst_random(random) % 10));
	volatile uint64_t i;
	pid_t child;

	*stage = NEWBORN;
	child = fork();
	if (!child)
		live_until_killed(stage);
	for (i = 0; i < moment; i++)
		;
	return child > 0 && !kill(child, SIGKILL) && tst_wait_child(child) == 256 + SIGKILL;
}

static unsigned long from_environment(const char *name, unsigned long otherwise)
{
	const char *word = getenv(name);

	return word ? strtoul(word, NULL, 0) : otherwise;
}

static int kill_many(void *shared)
{
	unsigned long kills = from_environment("TASKSHARED_LIFE_KILLS", 1000), i;
	uint64_t random = from_environment("TASKSHARED_LIFE_SEED", tst_now() | 1);
	unsigned long killed[STAGES] = { 0 };
	volatile enum stage *stage = shared;
	int fd;

	printf("# %lu kills, TASKSHARED_LIFE_SEED=%llu\n", kills, (unsigned long long)random);
	/* A file that stays open, so that what the user owes is not forgotten meanwhile. */
	if (tst_become_user(TST_NOBODY, 4 * tst_page_size()) || (fd = tst_open()) < 0)
		return 1;
	for (i = 0; i < kills; i++) {
		if (!kill_at_random(&random, stage))
			return 2;
		killed[*stage]++;
	}
	printf("# newborn %lu, opened %lu, requesting %lu, released %lu\n", killed[NEWBORN],
	       killed[OPENED], killed[REQUESTING], killed[RELEASED]);
	/* What the user paid is paid back: a page for all, and one slot. */
	if (setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ tst_page_size(), tst_page_size() }))
		return 3;
	if (!tst_wait_until(tst_slot_offset(fd) == 0, GONE_MS))
		return 4;
	if (tst_state("slots") != 1 || tst_state("pools") != 1)
		return 5;
	/* Too few to tell anything, or all at the same point? */
	for (i = 0; i < STAGES; i++)
		if (killed[i] < kills / 100)
			return 6;
	return 0;
}

TEST_F_TIMEOUT(life, killed_at_random_moments, 300)
{
	void *stage = mmap(NULL, tst_page_size(), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, stage);
	/* Each has two slots at most. */
	ASSERT_EQ(0, tst_write_file(MAX_SLOTS, "2", 0));
	EXPECT_EQ(0, tst_in_child(kill_many, stage))
		TH_LOG("the number is that of the check in kill_many()");
	EXPECT_EQ(0, tst_write_file(MAX_SLOTS, MAX_SLOTS_STD, 0));
}

/* The first slot of all makes the hooks be armed, which takes a while. */
TEST_F_TIMEOUT(life, killed_while_hooks_are_armed, 120)
{
	volatile enum stage *stage = mmap(NULL, tst_page_size(), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t random = from_environment("TASKSHARED_LIFE_SEED", tst_now() | 1);
	int i;

	ASSERT_NE(MAP_FAILED, stage);
	printf("# TASKSHARED_LIFE_SEED=%llu\n", (unsigned long long)random);
	for (i = 0; i < ROUNDS / 2; i++) {
		ASSERT_TRUE(tst_wait_until(tst_state("armed") == 0, GONE_MS));
		EXPECT_TRUE(kill_at_random(&random, stage));
		EXPECT_TRUE(tst_nothing_held_soon());
	}
}

/* pthread_cancel */

struct cancelled {
	int fd;
	void *window;
	struct task_sharedinfo *volatile slot;
	bool at_calls;
};

static void *until_cancelled(void *arg)
{
	struct cancelled *self = arg;
	struct task_sharedinfo *slot;
	int old;

	pthread_setcanceltype(self->at_calls ? PTHREAD_CANCEL_DEFERRED :
			      PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	tst_pin(0);
	slot = at(self->window, tst_slot_offset(self->fd));
	self->slot = slot;
	while (1) {
		tst_look(slot);
		if (self->at_calls)
			pthread_testcancel();
	}
	return NULL;
}

static int cancel_one(struct cancelled *self)
{
	pthread_t thread;
	void *result;

	self->slot = NULL;
	if (pthread_create(&thread, NULL, until_cancelled, self))
		return 10;
	if (!tst_wait_until(self->slot, GONE_MS) || !sees_delay(self->slot))
		return 11;
	if (pthread_cancel(thread) || pthread_join(thread, &result))
		return 12;
	if (result != PTHREAD_CANCELED)
		return 13;
	if (!tst_wait_until(!tid_of(self->slot), GONE_MS))
		return 14;
	/* The main thread has none. */
	return tst_state("slots") || !no_delay_runs() ? 15 : 0;
}

static int cancel_many(void *unused)
{
	struct cancelled self = { .fd = tst_open() };
	int i, code = 0;

	(void)unused;
	self.window = tst_map_window(self.fd, tst_page_size());
	if (!self.window || tst_pin(1))
		return 1;
	for (i = 0; i < 2 * ROUNDS && !code; i++) {
		self.at_calls = i % 2;
		code = cancel_one(&self);
	}
	return code;
}

TEST_F(life, cancelled)
{
	if (tst_cpus() < 2)
		SKIP(return, "who looks at a delay of another thread needs a CPU of its own");
	EXPECT_EQ(0, tst_in_child(cancel_many, NULL))
		TH_LOG("the number is that of the check in cancel_one()");
}

/* Files in other hands */

struct owner {
	pid_t pid;
	int fd;
};

/* A process with a slot that waits to be killed; @fd: what its descriptor is there. */
static int start_owner(struct owner *owner, int *socket)
{
	int ends[2];

	if (pipe(ends))
		return -1;
	owner->pid = fork();
	if (!owner->pid) {
		owner->fd = tst_open();
		if (owner->fd < 0 || !tst_slot(owner->fd))
			_exit(1);
		if (socket && tst_send_fd(*socket, owner->fd))
			_exit(2);
		if (write(ends[1], &owner->fd, sizeof(owner->fd)) == sizeof(owner->fd))
			while (1)
				pause();
		_exit(3);
	}
	close(ends[1]);
	if (read(ends[0], &owner->fd, sizeof(owner->fd)) != sizeof(owner->fd))
		owner->fd = -1;
	close(ends[0]);
	return owner->fd < 0 ? -1 : 0;
}

static int stop_owner(const struct owner *owner)
{
	return kill(owner->pid, SIGKILL) || tst_wait_child(owner->pid) != 256 + SIGKILL;
}

static bool is_refused(int fd)
{
	struct taskshared_counters counters = { 0 };
	struct taskshared_info info = { 0 };
	struct taskshared_slot where = { 0 };

	return tst_call(fd, TASKSHARED_IOC_INFO, &info) == EPERM &&
	       tst_call(fd, TASKSHARED_IOC_SLOT, &where) == EPERM &&
	       tst_call(fd, TASKSHARED_IOC_COUNTERS, &counters) == EPERM &&
	       tst_call(fd, TASKSHARED_IOC_RELEASE, NULL) == EPERM &&
	       tst_call(fd, TASKSHARED_IOC_YIELD, NULL) == EPERM &&
	       !tst_map_page(fd) && errno == EPERM &&
	       !tst_map_window(fd, tst_page_size()) && errno == EPERM;
}

TEST_F(life, descriptor_taken_by_pidfd_getfd)
{
	struct owner owner;
	int pidfd, fd;

	ASSERT_EQ(0, start_owner(&owner, NULL));
	pidfd = (int)syscall(SYS_pidfd_open, owner.pid, 0);
	ASSERT_LE(0, pidfd);
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, owner.fd, 0);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(is_refused(fd));
	EXPECT_EQ(1, tst_state("slots"));
	ASSERT_EQ(0, stop_owner(&owner));

	/* Of no use to anybody, but sound, until it is closed. */
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 0, GONE_MS));
	EXPECT_TRUE(is_refused(fd));
	EXPECT_EQ(1, tst_state("pools"));
	EXPECT_EQ(1, tst_state("files"));
	EXPECT_EQ(1, tst_state("pages"));
	EXPECT_EQ(0, close(fd));
	EXPECT_EQ(0, close(pidfd));
}

/* In a message that nobody receives. */
TEST_F(life, descriptor_in_flight)
{
	struct owner owner;
	int ends[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	ASSERT_EQ(0, start_owner(&owner, &ends[1]));
	ASSERT_EQ(0, stop_owner(&owner));
	EXPECT_TRUE(tst_wait_until(tst_state("slots") == 0, GONE_MS));
	EXPECT_EQ(1, tst_state("files"));
	EXPECT_EQ(1, tst_state("pages"));
	EXPECT_EQ(0, close(ends[0]));
	EXPECT_EQ(0, close(ends[1]));
}

/* A file without any thread with a slot, and without the process that opened it. */

struct heir {
	int fd;
	int go;
	pid_t owner;
};

static int inherit(struct heir *self)
{
	char byte;

	/* The owner ends when its child is there; then this one does. */
	if (!tst_wait_until(getppid() != self->owner, GONE_MS))
		return 1;
	if (!tst_wait_until(tst_state("slots") == 0, GONE_MS))
		return 2;
	if (tst_state("files") != 1 || tst_state("pages") != 2 || tst_state("pools") != 1)
		return 3;
	if (!is_refused(self->fd))
		return 4;
	return read(self->go, &byte, 1) == 1 ? 0 : 5;
}

static int leaves_heir(void *arg)
{
	struct heir self = { .fd = tst_open(), .go = *(int *)arg, .owner = getpid() };
	struct tst_crew crew = { .fd = self.fd, .count = 40 };
	pid_t child;

	if (self.fd < 0 || tst_crew_start(&crew))
		return 90;
	/* First its threads go, which had all the slots. */
	tst_crew_stop(&crew);
	if (!tst_wait_until(tst_state("slots") == 0, GONE_MS) || tst_state("pages") != 2)
		return 91;
	child = fork();
	if (!child)
		_exit(inherit(&self));
	return child < 0 ? 92 : 0;
}

TEST_F(life, file_outlives_its_process)
{
	int go[2];

	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	ASSERT_EQ(0, pipe(go));
	EXPECT_EQ(0, tst_in_child(leaves_heir, &go[0]));
	EXPECT_EQ(1, tst_state("files"));
	EXPECT_EQ(1, write(go[1], "", 1));
	EXPECT_EQ(0, tst_wait_child(-1))
		TH_LOG("the number is that of the check in inherit()");
	close(go[0]);
	close(go[1]);
}

/* unshare, and another user */

static int unshare_everything(void *unused)
{
	static const int flags[] = {
		CLONE_FILES, CLONE_FS, CLONE_SYSVSEM, CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC,
		CLONE_NEWNET, CLONE_NEWCGROUP, CLONE_NEWUSER,
	};
	struct taskshared_counters counters;
	struct task_sharedinfo *slot;
	long long offset;
	unsigned int i;
	int fd;

	(void)unused;
	slot = begin_life(&fd);
	offset = tst_slot_offset(fd);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		if (!slot || !enter_delay(slot))
			return 10 + (int)i;
		if (unshare(flags[i]))
			return 30 + (int)i;
		if (tid_of(slot) != gettid() || tst_slot_offset(fd) != offset)
			return 50 + (int)i;
	}
	if (tst_counters(fd, 0, &counters) || counters.granted < ARRAY_SIZE(flags))
		return 70;
	return 0;
}

TEST_F(life, unshared)
{
	EXPECT_EQ(0, tst_in_child(unshare_everything, NULL))
		TH_LOG("the number tells the check and the flag in unshare_everything()");
}

/* Who opened the device pays, whoever the process runs as later. */
static int becomes_another(void *unused)
{
	struct tst_crew crew = { .fd = tst_open(), .count = 33 };
	unsigned int i;

	(void)unused;
	if (tst_slot_offset(crew.fd) < 0 || tst_become_user(TST_NOBODY, RLIM_INFINITY))
		return 1;
	if (tst_crew_start(&crew))
		return 2;
	for (i = 0; i < crew.count; i++)
		if (crew.members[i].error)
			return 3;
	return tst_state("pages") == 2 ? 0 : 4;
}

static int pays_for_one_page(void *unused)
{
	struct tst_crew crew = { .count = 33 };
	unsigned int i, refused = 0;

	(void)unused;
	if (tst_become_user(TST_NOBODY, tst_page_size()))
		return 1;
	crew.fd = tst_open();
	if (tst_crew_start(&crew))
		return 2;
	for (i = 0; i < crew.count; i++)
		refused += crew.members[i].error == ENOMEM;
	return refused == 1 ? 0 : 3;
}

TEST_F(life, becomes_another_user)
{
	EXPECT_EQ(0, tst_in_child(becomes_another, NULL))
		TH_LOG("the number is that of the check in becomes_another()");
	EXPECT_TRUE(tst_nothing_held_soon());
	EXPECT_EQ(0, tst_in_child(pays_for_one_page, NULL))
		TH_LOG("what one user had was charged to another one");
}

/* Core dumps */

#define MARK_SIZE	48

/* Byte by byte, so that all of it is nowhere else in memory. */
static void write_mark(volatile void *where, unsigned int kind)
{
	volatile unsigned char *bytes = where;
	unsigned int i;

	for (i = 0; i < MARK_SIZE; i++)
		bytes[i] = (unsigned char)((i + 1) * (37 + 2 * kind));
}

static bool has_mark(const char *file, unsigned int kind)
{
	unsigned char mark[MARK_SIZE];
	struct stat stat;
	bool found = false;
	void *core;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	write_mark(mark, kind);
	if (fd < 0 || fstat(fd, &stat))
		return false;
	core = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (core != MAP_FAILED) {
		found = memmem(core, (size_t)stat.st_size, mark, sizeof(mark));
		munmap(core, (size_t)stat.st_size);
	}
	close(fd);
	return found;
}

static int dumps_core(void *unused)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct task_sharedinfo *slot;
	struct tst_crew crew;
	void *plain;

	(void)unused;
	plain = mmap(NULL, tst_page_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	slot = begin_life(&crew.fd);
	if (plain == MAP_FAILED || !slot || !tst_map_window(crew.fd, tst_page_size()))
		return 1;
	crew.count = 2;
	crew.work = tst_request_for_ever;
	if (tst_crew_start(&crew))
		return 2;
	/* All kinds of mappings. */
	if (setrlimit(RLIMIT_CORE, &limit) ||
	    tst_write_file("/proc/self/coredump_filter", "0x1ff", 0))
		return 3;
	write_mark(plain, 0);
	write_mark(slot->__reserved_owner, 1);
	if (!enter_delay(slot))
		return 4;
	raise(SIGSEGV);
	return 5;
}

TEST_F(life, core_dump)
{
	char before[256];

	ASSERT_LT(0, tst_read_file(CORE_PATTERN, before, sizeof(before)));
	ASSERT_EQ(0, tst_write_file(CORE_PATTERN, CORE, 0));
	EXPECT_EQ(256 + SIGSEGV, tst_in_child(dumps_core, NULL));
	EXPECT_EQ(0, tst_write_file(CORE_PATTERN, before, 0));
	EXPECT_TRUE(has_mark(CORE, 0))
		TH_LOG("not even ordinary memory is in the dump");
	EXPECT_FALSE(has_mark(CORE, 1))
		TH_LOG("the slot is in the dump");
	unlink(CORE);
}

/* close */

/* Is always in user mode, and needs no memory of the device. */
static void keep_running(struct tst_member *member)
{
	tst_pin(0);
	while (!member->crew->leave)
		;
}

/*
 * The last file and mapping go, while a thread is in a delay. Its requests are written
 * by this one: else it would have to know when its slot is out of its sight.
 */
static void close_in_a_delay(struct __test_metadata *_metadata, struct tst_crew *crew)
{
	struct tst_member *member = &crew->members[0];
	struct taskshared_counters before, after;
	void *window = tst_map_window(crew->fd, tst_page_size());
	struct task_sharedinfo *slot;

	ASSERT_NE(NULL, window);
	slot = at(window, member->offset);
	ASSERT_EQ(member->tid, tid_of(slot));
	ASSERT_EQ(0, tst_counters(crew->fd, member->tid, &before));
	ASSERT_TRUE(enter_delay(slot));
	EXPECT_EQ(0, close(crew->fd));
	EXPECT_EQ(0, munmap(window, tst_page_size()));

	EXPECT_EQ(0, tst_state("files"));
	EXPECT_EQ(1, tst_state("slots"));
	EXPECT_TRUE(tst_wait_until(no_delay_runs(), GONE_MS));
	crew->fd = tst_open();
	ASSERT_LE(0, crew->fd);
	ASSERT_EQ(0, tst_counters(crew->fd, member->tid, &after));
	EXPECT_LT(before.granted, after.granted);
	EXPECT_EQ(0, after.active);
}

TEST_F(life, close_while_another_is_in_a_delay)
{
	struct tst_crew crew = { .fd = tst_open(), .count = 1, .work = keep_running };
	int i;

	if (tst_cpus() < 2)
		SKIP(return, "who looks at a delay of another thread needs a CPU of its own");
	ASSERT_EQ(0, tst_pin(1));
	ASSERT_EQ(0, tst_crew_start(&crew));
	ASSERT_EQ(0, crew.members[0].error);
	for (i = 0; i < ROUNDS; i++)
		close_in_a_delay(_metadata, &crew);
	tst_crew_stop(&crew);
	close(crew.fd);
}

TEST_HARNESS_MAIN
