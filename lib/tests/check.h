/* SPDX-License-Identifier: MIT */
/*
 * A test program prints one line "ok NAME" or "not ok NAME" per test; run.sh
 * numbers them. A failed CHECK() fails the test it is in, and says where.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int check_failed;
static int check_status;

#define CHECK(condition)                                            \
	do {                                                        \
		if (!(condition)) {                                 \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, \
			       #condition);                         \
			check_failed = 1;                           \
		}                                                   \
	} while (0)

#define CHECK_EQ(a, b)                                                         \
	do {                                                                   \
		long long check_a = (long long)(a), check_b = (long long)(b);  \
		if (check_a != check_b) {                                      \
			printf("# %s:%d: %s: %lld, expected %lld\n", __FILE__, \
			       __LINE__, #a, check_a, check_b);                \
			check_failed = 1;                                      \
		}                                                              \
	} while (0)

static inline void run_test(const char *name, void (*test)(void))
{
	check_failed = 0;
	test();
	printf("%s %s\n", check_failed ? "not ok" : "ok", name);
	fflush(stdout);
	check_status |= check_failed;
}

#define RUN(name) run_test(#name, name)

#endif /* CHECK_H */
