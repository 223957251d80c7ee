// SPDX-License-Identifier: MIT
/*
 * contended_lock: how often some threads get through a critical section under one
 * spinlock, with and without asking the kernel not to be preempted inside it.
 *
 * Each thread again and again takes the lock, works for a while, gives it back,
 * and works for a while outside. Beside them, hogs may just use the CPU. The lock
 * is the simplest there is, a test-and-set word; who finds it taken spins.
 *
 * Work is a number of turns of an empty loop, measured once at the start while
 * nothing else runs, so that it costs the same CPU time however often the
 * thread loses the CPU in between. The loops do without the pause instruction,
 * which is slow where the processor is emulated. The work outside varies between
 * half and one and a half of its mean: were all rounds of the same length, the
 * timer tick would find the threads at the same point of them again and again.
 */

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <taskshared.h>

#define CACHE_LINE 128

static struct {
	double hold_us;
	double outside_us;
	double seconds;
	unsigned int threads;
	unsigned int hogs;
	bool requests;
} options = {
	.hold_us = 10,
	.outside_us = 10,
	.seconds = 1,
	.threads = 8,
	.requests = true,
};

struct worker {
	pthread_t thread;
	uint32_t seed;
	uint64_t ops;
	int error;
	struct taskshared_counters counters;
} __attribute__((aligned(CACHE_LINE)));

static struct {
	char taken;
	uint64_t ops;
} lock __attribute__((aligned(CACHE_LINE)));

static volatile bool stop __attribute__((aligned(CACHE_LINE)));
static pthread_barrier_t ready;
static uint64_t hold_turns, outside_turns;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline void work(uint64_t turns)
{
	while (turns--)
		__asm__ volatile("");
}

/* Turns of work() in a microsecond: the most of some tries, as others disturb. */
static double calibrate(void)
{
	const uint64_t turns = 1000000;
	double best = 0, rate;
	uint64_t begun;
	int i;

	for (i = 0; i < 5; i++) {
		begun = now();
		work(turns);
		rate = (double)turns * 1000 / (double)(now() - begun);
		if (rate > best)
			best = rate;
	}
	return best;
}

static inline bool lock_try(void)
{
	return !__atomic_test_and_set(&lock.taken, __ATOMIC_ACQUIRE);
}

static inline bool lock_is_taken(void)
{
	return __atomic_load_n(&lock.taken, __ATOMIC_RELAXED);
}

static inline void unlock(void)
{
	__atomic_clear(&lock.taken, __ATOMIC_RELEASE);
}

/* Work outside of the lock. @seed: of the thread's own pseudo-random numbers. */
static inline void work_outside(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	work(outside_turns / 2 + (outside_turns * (*seed >> 16) >> 16));
}

static uint64_t run_plain(uint32_t seed)
{
	uint64_t ops = 0;

	while (!stop) {
		while (lock_is_taken() || !lock_try())
			;
		work(hold_turns);
		lock.ops++;
		unlock();
		ops++;
		work_outside(&seed);
	}
	return ops;
}

/* The request is made before the lock is taken: there is no moment between. */
static uint64_t run_with_requests(uint32_t seed)
{
	uint64_t ops = 0;

	while (!stop) {
		taskshared_begin();
		while (!lock_try()) {
			/* No need for a delay to wait. */
			taskshared_end();
			while (lock_is_taken())
				;
			taskshared_begin();
		}
		work(hold_turns);
		lock.ops++;
		unlock();
		taskshared_end();
		ops++;
		work_outside(&seed);
	}
	return ops;
}

static void *worker(void *arg)
{
	struct worker *self = arg;

	if (options.requests)
		self->error = taskshared_attach();
	pthread_barrier_wait(&ready);
	self->ops = options.requests ? run_with_requests(self->seed) : run_plain(self->seed);
	if (options.requests)
		taskshared_get_counters(0, &self->counters);
	return NULL;
}

static void *hog(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&ready);
	while (!stop)
		work(1000);
	return NULL;
}

static void start(pthread_t *thread, void *(*function)(void *arg), void *arg)
{
	int error = pthread_create(thread, NULL, function, arg);

	if (error) {
		fprintf(stderr, "contended_lock: cannot start a thread: %s\n", strerror(error));
		exit(1);
	}
}

static int usage(int code)
{
	fprintf(code ? stderr : stdout,
		"usage: contended_lock [option]...\n"
		"  -t, --threads N     threads that share the lock (8)\n"
		"  -H, --hold US       work under the lock, in microseconds (10)\n"
		"  -o, --outside US    work outside of it (10)\n"
		"  -k, --hogs N        threads beside them that just use the CPU (0)\n"
		"  -d, --seconds S     how long (1)\n"
		"  -r, --requests on|off\n"
		"                      ask the kernel for delays (on; without the module: no effect)\n"
		"  -1, --single        one thread, no hogs: the limit without contention\n"
		"Prints one line of name=value pairs; ops_per_s is the result.\n");
	return code;
}

/* A number and nothing else. */
static double number(const char *text, double least, double most)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= least && value <= most)) {
		fprintf(stderr, "contended_lock: '%s' is not a number from %g to %g\n", text,
			least, most);
		exit(2);
	}
	return value;
}

static int parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "threads", required_argument, NULL, 't' },
		{ "hold", required_argument, NULL, 'H' },
		{ "outside", required_argument, NULL, 'o' },
		{ "hogs", required_argument, NULL, 'k' },
		{ "seconds", required_argument, NULL, 'd' },
		{ "requests", required_argument, NULL, 'r' },
		{ "single", no_argument, NULL, '1' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "t:H:o:k:d:r:1h", names, NULL)) != -1) {
		switch (option) {
		case 't':
			options.threads = (unsigned int)number(optarg, 1, 10000);
			break;
		case 'H':
			options.hold_us = number(optarg, 0, 1000000);
			break;
		case 'o':
			options.outside_us = number(optarg, 0, 1000000);
			break;
		case 'k':
			options.hogs = (unsigned int)number(optarg, 0, 10000);
			break;
		case 'd':
			options.seconds = number(optarg, 0.001, 86400);
			break;
		case 'r':
			if (strcmp(optarg, "on") && strcmp(optarg, "off"))
				return usage(2);
			options.requests = !strcmp(optarg, "on");
			break;
		case '1':
			options.threads = 1;
			options.hogs = 0;
			break;
		case 'h':
			exit(usage(0));
		default:
			return usage(2);
		}
	}
	return optind < argc ? usage(2) : 0;
}

static void report(const struct worker *workers, uint64_t elapsed)
{
	struct taskshared_counters sum = { 0 };
	uint64_t ops = 0, least = UINT64_MAX, most = 0, refused = 0;
	const char *requests = options.requests ? "on" : "off";
	unsigned int i;

	for (i = 0; i < options.threads; i++) {
		const struct worker *self = &workers[i];

		ops += self->ops;
		least = self->ops < least ? self->ops : least;
		most = self->ops > most ? self->ops : most;
		sum.granted += self->counters.granted;
		sum.yielded += self->counters.yielded;
		sum.expired += self->counters.expired;
		sum.denied += self->counters.denied;
		refused += self->counters.requested - self->counters.granted - self->counters.denied;
		if (self->counters.delay_max_ns > sum.delay_max_ns)
			sum.delay_max_ns = self->counters.delay_max_ns;
		if (self->error && !strcmp(requests, "on")) {
			fprintf(stderr, "contended_lock: %s\n", taskshared_strerror(self->error));
			requests = "unanswered";
		}
	}
	if (ops != lock.ops) {
		fprintf(stderr, "contended_lock: the lock let two threads in: %llu sections, %llu counted\n",
			(unsigned long long)ops, (unsigned long long)lock.ops);
		exit(1);
	}
	printf("contended_lock threads=%u hold_us=%g outside_us=%g hogs=%u requests=%s",
	       options.threads, options.hold_us, options.outside_us, options.hogs, requests);
	printf(" seconds=%.3f ops=%llu ops_per_s=%.0f ops_least=%llu ops_most=%llu",
	       (double)elapsed / 1e9, (unsigned long long)ops,
	       (double)ops * 1e9 / (double)elapsed, (unsigned long long)least,
	       (unsigned long long)most);
	printf(" granted=%llu yielded=%llu expired=%llu denied=%llu refused=%llu delay_max_ns=%llu\n",
	       (unsigned long long)sum.granted, (unsigned long long)sum.yielded,
	       (unsigned long long)sum.expired, (unsigned long long)sum.denied,
	       (unsigned long long)refused, (unsigned long long)sum.delay_max_ns);
}

int main(int argc, char **argv)
{
	struct worker *workers;
	double turns_per_us;
	uint64_t begun, elapsed;
	struct timespec wait;
	pthread_t *hogs;
	unsigned int i;
	int code = parse(argc, argv);

	if (code)
		return code;
	workers = aligned_alloc(CACHE_LINE, options.threads * sizeof(*workers));
	hogs = calloc(options.hogs + 1, sizeof(*hogs));
	if (!workers || !hogs) {
		fprintf(stderr, "contended_lock: out of memory\n");
		return 1;
	}
	memset(workers, 0, options.threads * sizeof(*workers));

	turns_per_us = calibrate();
	hold_turns = (uint64_t)(options.hold_us * turns_per_us);
	outside_turns = (uint64_t)(options.outside_us * turns_per_us);

	pthread_barrier_init(&ready, NULL, options.threads + options.hogs + 1);
	for (i = 0; i < options.threads; i++) {
		workers[i].seed = i;
		start(&workers[i].thread, worker, &workers[i]);
	}
	for (i = 0; i < options.hogs; i++)
		start(&hogs[i], hog, NULL);
	pthread_barrier_wait(&ready);

	begun = now();
	wait.tv_sec = (time_t)options.seconds;
	wait.tv_nsec = (long)((options.seconds - (double)wait.tv_sec) * 1e9);
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, &wait) == EINTR)
		;
	stop = true;
	elapsed = now() - begun;

	for (i = 0; i < options.threads; i++)
		pthread_join(workers[i].thread, NULL);
	for (i = 0; i < options.hogs; i++)
		pthread_join(hogs[i], NULL);
	report(workers, elapsed);
	free(workers);
	free(hogs);
	return 0;
}
