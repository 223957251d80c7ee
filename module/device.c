// SPDX-License-Identifier: GPL-2.0-only
/* /dev/taskshared: open, mmap, ioctl. */

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/taskshared.h>
#include <linux/uaccess.h>

#include "cap.h"
#include "compat.h"
#include "device.h"
#include "health.h"
#include "pool.h"
#include "slot.h"

static int taskshared_open(struct inode *inode, struct file *file)
{
	struct taskshared_pool *pool = taskshared_pool_open();

	if (IS_ERR(pool))
		return PTR_ERR(pool);
	file->private_data = pool;
	return nonseekable_open(inode, file);
}

static int taskshared_release(struct inode *inode, struct file *file)
{
	taskshared_pool_close(file->private_data);
	return 0;
}

static vm_fault_t taskshared_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct page *page = taskshared_pool_page(vma->vm_file->private_data, vmf->pgoff);

	if (!page)
		return VM_FAULT_SIGBUS;
	return vmf_insert_pfn(vma, vmf->address, page_to_pfn(page));
}

static const struct vm_operations_struct taskshared_vm_ops = {
	.fault = taskshared_fault,
};

/* Under mmap_lock: the number of the first page that @vma is to show. */
static long taskshared_mmap_first_page(struct taskshared_pool *pool, struct vm_area_struct *vma)
{
	struct taskshared_thread *thread;

	if (vma->vm_pgoff == TASKSHARED_WINDOW >> PAGE_SHIFT)
		return vma_pages(vma) <= TASKSHARED_POOL_MAX_PAGES ? 0 : -EINVAL;
	if (vma->vm_pgoff || vma_pages(vma) != 1)
		return -EINVAL;

	thread = taskshared_slot_get_deferred(pool);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	return thread->index / TASKSHARED_SLOTS_PER_PAGE;
}

static int taskshared_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct taskshared_pool *pool = file->private_data;
	long first;

	if (!taskshared_pool_is_current(pool) || (vma->vm_flags & VM_EXEC))
		return -EPERM;
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	first = taskshared_mmap_first_page(pool, vma);
	if (first < 0)
		return first;

	/* From here on an offset in the mapping is the number of a page. */
	vma->vm_pgoff = first;
	/*
	 * PFNMAP and IO: nobody takes references to the pages through the mapping
	 * (direct I/O, ptrace, io_uring), and madvise() cannot undo the rest.
	 */
	vm_flags_mod(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTCOPY | VM_DONTDUMP,
		     VM_MAYEXEC);
	vma->vm_ops = &taskshared_vm_ops;
	return 0;
}

static int taskshared_ioc_info(struct taskshared_pool *pool, void *arg)
{
	struct taskshared_info *info = arg;

	if (info->flags)
		return -EINVAL;
	*info = (struct taskshared_info) {
		.abi_version = TASKSHARED_ABI_VERSION,
		.features = TASKSHARED_FEATURE_DELAY | TASKSHARED_FEATURE_SCHED_YIELD |
			    TASKSHARED_FEATURE_WINDOW,
		.slot_size = TASKSHARED_SLOT_SIZE,
		.cap_ns = taskshared_cap_ns(),
		.window_offset = TASKSHARED_WINDOW,
		.window_size = TASKSHARED_POOL_MAX_PAGES * PAGE_SIZE,
		.health = taskshared_health(),
	};
	return 0;
}

static int taskshared_ioc_slot(struct taskshared_pool *pool, void *arg)
{
	struct taskshared_slot *slot = arg;
	struct taskshared_thread *thread;

	if (slot->flags)
		return -EINVAL;
	thread = taskshared_slot_get(pool);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	slot->tid = thread->tid;
	slot->offset = (u64)thread->index * TASKSHARED_SLOT_SIZE;
	return 0;
}

static int taskshared_ioc_counters(struct taskshared_pool *pool, void *arg)
{
	struct taskshared_counters *counters = arg;
	struct taskshared_thread *thread;

	if (counters->flags)
		return -EINVAL;
	if (counters->tid)
		return taskshared_pool_counters(pool, counters);

	thread = taskshared_slot_current();
	if (!thread)
		return -ESRCH;
	counters->tid = thread->tid;
	taskshared_tally_read(&thread->tally, counters);
	return 0;
}

/*
 * The calls that take a structure, by ioctl number. The size in the number a
 * program was built with may differ from the kernel's: see <linux/taskshared.h>.
 */
static const struct {
	unsigned int cmd;
	size_t size_v1;
	int (*call)(struct taskshared_pool *pool, void *arg);
} taskshared_calls[] = {
	{ TASKSHARED_IOC_INFO, 48, taskshared_ioc_info },
	{ TASKSHARED_IOC_SLOT, 16, taskshared_ioc_slot },
	{ TASKSHARED_IOC_COUNTERS, 128, taskshared_ioc_counters },
};

union taskshared_arg {
	struct taskshared_info info;
	struct taskshared_slot slot;
	struct taskshared_counters counters;
};

static long taskshared_ioctl_struct(struct taskshared_pool *pool, unsigned int cmd,
				    void __user *uarg)
{
	size_t usize = _IOC_SIZE(cmd), ksize;
	union taskshared_arg arg = {};
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(taskshared_calls); i++)
		if (!((taskshared_calls[i].cmd ^ cmd) & ~IOCSIZE_MASK))
			break;
	if (i == ARRAY_SIZE(taskshared_calls))
		return -ENOTTY;
	if (usize < taskshared_calls[i].size_v1)
		return -EINVAL;

	ksize = _IOC_SIZE(taskshared_calls[i].cmd);
	ret = copy_struct_from_user(&arg, ksize, uarg, usize);
	if (ret)
		return ret;
	/* Errors change nothing: find out first whether the answer can be given. */
	if (copy_to_user(uarg, &arg, min(usize, ksize)))
		return -EFAULT;
	ret = taskshared_calls[i].call(pool, &arg);
	if (ret)
		return ret;
	return copy_to_user(uarg, &arg, min(usize, ksize)) ? -EFAULT : 0;
}

static long taskshared_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct taskshared_pool *pool = file->private_data;

	if (!taskshared_pool_is_current(pool))
		return -EPERM;

	/* An _IO call is often made without an argument: arg is whatever was there. */
	switch (cmd) {
	case TASKSHARED_IOC_YIELD:
		return taskshared_slot_cut(TASKSHARED_YIELDED);
	case TASKSHARED_IOC_RELEASE:
		return taskshared_slot_release();
	default:
		return taskshared_ioctl_struct(pool, cmd, (void __user *)arg);
	}
}

static const struct file_operations taskshared_fops = {
	.owner = THIS_MODULE,
	.open = taskshared_open,
	.release = taskshared_release,
	.mmap = taskshared_mmap,
	.unlocked_ioctl = taskshared_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/*
 * Open to everybody: the memory a user can take is bounded by RLIMIT_MEMLOCK and
 * max_slots, the time by the cap. But while anybody has a slot, schedule() cannot be livepatched.
 * Restrict it by udev.
 */
static struct miscdevice taskshared_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "taskshared",
	.mode = 0666,
	.fops = &taskshared_fops,
};

int taskshared_device_init(void)
{
	BUILD_BUG_ON(sizeof(struct task_sharedinfo) != TASKSHARED_SLOT_SIZE);
	BUILD_BUG_ON(offsetof(struct task_sharedinfo, sched_delay) != 0);
	BUILD_BUG_ON(offsetof(struct task_sharedinfo, tid) != 64);

	return misc_register(&taskshared_misc);
}

void taskshared_device_exit(void)
{
	misc_deregister(&taskshared_misc);
}
