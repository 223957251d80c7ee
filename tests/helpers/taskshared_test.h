/* SPDX-License-Identifier: MIT */
/*
 * What several tests need: the device and its slots, the module's figures,
 * clocks, CPUs, and threads that keep a CPU busy.
 *
 * None of these print or end the program: they tell the caller, who decides
 * what is a failure. Functions return -1 or NULL and set errno unless they say
 * otherwise.
 */
#ifndef TASKSHARED_TEST_H
#define TASKSHARED_TEST_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <linux/taskshared.h>

#define TST_USEC	1000ULL
#define TST_MSEC	1000000ULL
#define TST_SEC		1000000000ULL

#define TST_SLOT_SIZE	((size_t)TASKSHARED_SLOT_SIZE)

/* The device */

int tst_open(void);

/* The page with the calling thread's slot, as mmap alone gives it. */
void *tst_map_page(int fd);
/* The window: @size bytes, or all of it when @size is 0. */
void *tst_map_window(int fd, size_t size);
/* The one slot of @tid in an area; NULL if there is none or more than one. */
struct task_sharedinfo *tst_find(void *area, size_t size, pid_t tid);
/* The calling thread's slot, by mmap alone. */
struct task_sharedinfo *tst_slot(int fd);
/* Offset of the calling thread's slot in the window, or -1. */
long long tst_slot_offset(int fd);
/* The page that a slot is in. */
void *tst_page_of(const struct task_sharedinfo *slot);
/* @count bytes that are all zero. */
bool tst_is_zero(const volatile void *area, size_t count);
/* Is all of a slot zero but its tid? */
bool tst_is_fresh(const struct task_sharedinfo *slot);
/* The errno of the ioctl, 0 if it succeeds. */
int tst_call(int fd, unsigned long request, void *arg);
/* What smaps says of the mapping at @address, " rd wr ...". */
bool tst_vm_flags(const void *address, char *flags, size_t size);
/* Lines of /proc/self/maps that name the device; -1 on error. */
int tst_count_mappings(void);
size_t tst_page_size(void);

/* The module */

/* The file that TASKSHARED_KO names, or /taskshared.ko. */
const char *tst_module_file(void);
/* Each gives 0 or the errno. */
int tst_load(const char *parameters);
int tst_unload(void);
/* The same for any module. */
int tst_insmod(const char *file, const char *parameters);
int tst_rmmod(const char *name);
/* Nothing in the way any more: what a killed process held goes in a moment. */
bool tst_unload_soon(void);

/* Figures */

int tst_counters(int fd, pid_t tid, struct taskshared_counters *counters);
/* The same from debugfs, over all threads since the module was loaded. */
int tst_totals(struct taskshared_counters *totals);
/* One value of debugfs, "slots" for instance, or -1. */
long long tst_state(const char *name);
/* Does everything add up? A message says what does not. */
bool tst_adds_up(const struct taskshared_counters *counters, const char **message);
/* a - b, field by field; delay_max_ns is that of a. */
struct taskshared_counters tst_difference(const struct taskshared_counters *a,
					  const struct taskshared_counters *b);
/* *sum += *one, field by field but for delay_max_ns. */
void tst_add(struct taskshared_counters *sum, const struct taskshared_counters *one);
/* Are they the same but for delay_max_ns? A message says what is not. */
bool tst_same(const struct taskshared_counters *a, const struct taskshared_counters *b,
	      const char **message);
/* "# name: granted ... " on standard output. */
void tst_print_counters(const char *name, const struct taskshared_counters *counters);

/* Has nobody a file of the module open, or a slot? */
bool tst_nothing_held(void);
/* ... at last, for what a killed process held goes in a moment. */
bool tst_nothing_held_soon(void);

/* Writes the delay_us parameter; returns 0 or the errno. */
int tst_write_delay_us(const char *value);
/* Reads it; -1 on error. */
long tst_read_delay_us(void);

/* Reads a whole small file as a string; the number of bytes, or -1. */
ssize_t tst_read_file(const char *path, char *buffer, size_t size);
/* Has it a line with that text? However long the file. */
bool tst_file_has(const char *path, const char *text);
/* Does ftrace divert schedule()? */
bool tst_schedule_is_traced(void);
/* Writes a string in one go; @flags: more for open(). Returns 0 or the errno. */
int tst_write_file(const char *path, const char *text, int flags);

/* Clocks and waiting */

uint64_t tst_now(void);
static inline struct timespec tst_timespec(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / TST_SEC),
		.tv_nsec = (long)(ns % TST_SEC),
	};
}

/*
 * Is it later than @end? Looks at the clock now and then only: where that is a system
 * call, a thread that always makes it is rarely delayed.
 */
bool tst_late(uint64_t end);
/* CPU time of the calling thread. */
uint64_t tst_cpu_time(void);
/* Switches of the calling thread that it did not ask for. */
long tst_involuntary_switches(void);
/*
 * Keeps the CPU, in user mode, without the pause instruction; looks at the clock every
 * other microsecond, because that may be a system call.
 */
void tst_spin(uint64_t ns);
void tst_sleep(uint64_t ns);

/* Waits until @condition holds, at most @limit_ms; gives whether it did. */
#define tst_wait_until(condition, limit_ms) ({					\
	uint64_t __end = tst_now() + (limit_ms) * TST_MSEC;			\
	bool __held;								\
	while (!(__held = (condition)) && tst_now() < __end)			\
		tst_sleep(TST_MSEC);						\
	__held;									\
})

/* CPUs and threads */

int tst_pin(int cpu);
int tst_cpus(void);
/* Does the kernel run interrupts and softirqs in real-time threads? */
bool tst_preempt_rt(void);
/* SCHED_FIFO with a priority; 0: back to the fair class. */
int tst_set_fifo(int priority);

/**
 * struct tst_hog - a thread that does nothing but use a CPU
 * @progress: grows all the time while it runs
 * @stop: set it to end the thread
 */
struct tst_hog {
	pthread_t thread;
	int cpu;
	volatile uint64_t progress;
	volatile bool stop;
};

int tst_hogs_start(struct tst_hog *hogs, unsigned int count, int cpu);
void tst_hogs_stop(struct tst_hog *hogs, unsigned int count);

struct tst_crew;

/**
 * struct tst_member - a thread that gets a slot and keeps it
 * @tid: its id
 * @error: errno, if it got no slot
 * @offset: of its slot in the window
 * @took: how long it took to get it, in ns
 */
struct tst_member {
	struct tst_crew *crew;
	pthread_t thread;
	pid_t tid;
	int error;
	long long offset;
	uint64_t took;
};

/**
 * struct tst_crew - some threads with slots
 * @fd: the device
 * @work: called in each thread once all have tried to get a slot; may be NULL
 * @arg: for @work
 * @leave: says that the threads are to end; @work has to look at it
 */
struct tst_crew {
	int fd;
	unsigned int count;
	void (*work)(struct tst_member *member);
	void *arg;
	volatile bool leave;
	struct tst_member *members;
	pthread_barrier_t ready;
	pthread_barrier_t end;
};

/* Returns when every thread has tried to get a slot; see the errors there. */
int tst_crew_start(struct tst_crew *crew);
void tst_crew_stop(struct tst_crew *crew);

/* The @work of a member that does nothing but request. */
void tst_request_for_ever(struct tst_member *member);

/* Runs @check in a forked child: its exit code, or 256 + signal, or -1. */
int tst_in_child(int (*check)(void *arg), void *arg);
int tst_wait_child(pid_t child);
/*
 * Starts a child that shares the memory, errno and all: it can do little but make
 * system calls. One at a time, because there is one stack.
 */
pid_t tst_start_sharing(int (*run)(void *arg), void *arg, int flags);

/* A file goes through a socket. */
int tst_send_fd(int socket, int fd);
int tst_receive_fd(int socket);

/*
 * From here on the calling process is another user's, without privileges but for the one
 * to reach the device wherever it is. @memlock: its RLIMIT_MEMLOCK.
 */
int tst_become_user(uid_t uid, rlim_t memlock);
#define TST_NOBODY	65534

/* Random numbers, one state for each thread. */
static inline uint64_t tst_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A store that the compiler may neither drop nor merge. */
static inline void tst_request(struct task_sharedinfo *slot)
{
	slot->sched_delay = TASK_PREEMPT_DELAY_REQ;
}

/*
 * One look at the word: requests if there is neither a request nor a delay. One,
 * because a second one could find a delay that has just been granted, and the
 * request would be written over it.
 */
static inline unsigned int tst_look(struct task_sharedinfo *slot)
{
	unsigned int word = slot->sched_delay;

	if (word != TASK_PREEMPT_DELAY_REQ && word != TASK_PREEMPT_DELAY_GRANTED)
		tst_request(slot);
	return word;
}

#endif /* TASKSHARED_TEST_H */
