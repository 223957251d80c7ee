/* SPDX-License-Identifier: GPL-2.0-only */
/* What one user's processes have taken, and may take. */
#ifndef _TASKSHARED_USER_H
#define _TASKSHARED_USER_H

struct taskshared_user;

struct taskshared_user *taskshared_user_get(void);
void taskshared_user_put(struct taskshared_user *user);

int taskshared_user_charge_slot(struct taskshared_user *user);
void taskshared_user_uncharge_slot(struct taskshared_user *user);
int taskshared_user_charge_page(struct taskshared_user *user);
void taskshared_user_uncharge_page(struct taskshared_user *user);

#endif /* _TASKSHARED_USER_H */
