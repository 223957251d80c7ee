/* SPDX-License-Identifier: MIT */
/* A device in memory that takes the place of sys.c. */
#ifndef FAKE_H
#define FAKE_H

#include "../internal.h"

struct fake {
	/* what to answer; reset by fake_reset() */
	int open_error;
	int info_error;
	int map_error;
	int slot_error;
	struct taskshared_info info;
	/* what happened; atomic */
	int opens;
	int closes;
	int maps;
	int slots;
	int releases;
	int yields;
};

extern struct fake fake;

void fake_reset(void);
/* Forget the process state of the library and of this thread. */
void fake_restart(void);
/* The program closes a descriptor it does not know. */
void fake_lose_fd(void);
/* Slots in use. */
int fake_users(void);

#endif /* FAKE_H */
