# SPDX-License-Identifier: MIT
#
# make        the library, and this list
# make demo   what the module does for a contended lock, in a guest
# make check  every test, on every kernel, in guests

VERSION := $(shell cat VERSION)
BUILD ?= build

# The kernel that "make module" builds for.
KERNELRELEASE ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KERNELRELEASE)/build
# The kernel of "make demo" and "make vm": a name from tests/vm/kernels.tsv.
KERNEL ?= 6.12

PREFIX ?= /usr/local
DKMS ?= dkms
dkms_source = $(DESTDIR)/usr/src/taskshared-$(VERSION)

.PHONY: all help lib module check lint demo vm install uninstall status clean \
	install-module install-lib uninstall-module uninstall-lib
all: lib help

help:
	@echo 'make demo       show what the module does for a contended lock, in a guest'
	@echo '                (KERNEL=6.12; KERNEL=6.1, 7.3: another kernel)'
	@echo 'make check      every test on every kernel, in guests'
	@echo '                (KERNELS="6.1 7.3", TESTS="delay slot": a part of it)'
	@echo 'make vm         a shell in a guest with the module loaded (KERNEL=7.3)'
	@echo 'make lint       style and static checks'
	@echo 'make lib        the library, into $(BUILD)/lib'
	@echo 'make module     the module for this kernel, into module/ (KDIR=...: for another)'
	@echo 'make install    module by dkms, library into $(PREFIX); as root'
	@echo 'make uninstall  the reverse; make status: what is installed and loaded'
	@echo 'make clean      remove $(BUILD)/ and what was built in module/'

lib:
	@$(MAKE) --no-print-directory -C lib OUTPUT=$(abspath $(BUILD))/lib

module:
	@test -d $(KDIR) || { echo 'no kernel headers in $(KDIR); on Debian: apt install linux-headers-$(KERNELRELEASE)'; exit 1; }
	$(MAKE) -C $(KDIR) M=$(CURDIR)/module modules

check:
	@tests/check

lint:
	@tests/check lint

demo:
	@tests/demo/run $(KERNEL)

vm:
	@tests/vm/setup
	@tests/vm/shell $(KERNEL)

install: install-module install-lib

install-module:
	@command -v $(DKMS) >/dev/null || { echo 'dkms is missing; on Debian: apt install dkms'; exit 1; }
	install -d $(dkms_source)/module $(dkms_source)/uapi/linux
	install -m 644 module/Kbuild module/*.[ch] $(dkms_source)/module
	install -m 644 uapi/linux/taskshared.h $(dkms_source)/uapi/linux
	install -m 644 VERSION $(dkms_source)
	sed 's/#VERSION#/$(VERSION)/' dkms.conf >$(dkms_source)/dkms.conf
	$(DKMS) add -m taskshared -v $(VERSION)
	$(DKMS) build -m taskshared -v $(VERSION) -k $(KERNELRELEASE)
	$(DKMS) install -m taskshared -v $(VERSION) -k $(KERNELRELEASE)
	@echo 'installed; load it with: modprobe taskshared'

install-lib: lib
	$(MAKE) --no-print-directory -C lib install PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) OUTPUT=$(abspath $(BUILD))/lib

uninstall: uninstall-module uninstall-lib

uninstall-module:
	@if lsmod | grep -q '^taskshared '; then \
		rmmod taskshared || { echo 'taskshared is in use: end the programs that use it first'; exit 1; }; fi
	$(DKMS) remove -m taskshared -v $(VERSION) --all
	rm -rf $(dkms_source)

uninstall-lib:
	$(MAKE) --no-print-directory -C lib uninstall PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)

status:
	@$(DKMS) status taskshared
	@grep '^taskshared ' /proc/modules || echo 'not loaded'
	@ls -l /dev/taskshared

clean:
	rm -rf $(BUILD)
	@if [ -d $(KDIR) ]; then $(MAKE) -C $(KDIR) M=$(CURDIR)/module clean; fi
