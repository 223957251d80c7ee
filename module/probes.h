/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the kernel is hooked. */
#ifndef _TASKSHARED_PROBES_H
#define _TASKSHARED_PROBES_H

struct seq_file;

int taskshared_probes_get(void);
void taskshared_probes_put(void);
void taskshared_probes_show(struct seq_file *m);
void taskshared_probes_announce(void);
int taskshared_probes_init(void);
void taskshared_probes_exit(void);

#endif /* _TASKSHARED_PROBES_H */
