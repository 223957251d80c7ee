// SPDX-License-Identifier: MIT
/* The library as a late guest in a program that knows nothing of it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int (*attach)(void);

static void *thread(void *arg)
{
	attach();
	return arg;
}

int main(int argc, char **argv)
{
	const char *(*words)(int);
	pthread_t id;
	void *lib, *symbol;

	lib = dlopen(argc > 1 ? argv[1] : "libtaskshared.so.1", RTLD_NOW);
	if (!lib) {
		printf("# %s\n", dlerror());
		return 1;
	}
	symbol = dlsym(lib, "taskshared_attach");
	memcpy(&attach, &symbol, sizeof(symbol));
	symbol = dlsym(lib, "taskshared_strerror");
	memcpy(&words, &symbol, sizeof(symbol));
	if (!attach || !words)
		return 1;
	printf("# %s\n", words(attach()));
	pthread_create(&id, NULL, thread, NULL);
	dlclose(lib);
	pthread_join(id, NULL);
	return 0;
}
