/*
 * What modinfo, depmod and modprobe read of a kernel module, and nothing else:
 * a relocatable object with a .modinfo section. The machine's boot writes the
 * driver's version over the placeholder. It can never be loaded.
 */
#define INFO(name, text) \
	static const char name[] __attribute__((section(".modinfo"), used, aligned(1))) = text
INFO(license, LICENSE);
INFO(version, "version=@VERSION@                      ");
INFO(name, "name=" NAME);
INFO(depends, "depends=" DEPENDS);
INFO(vermagic, "vermagic=simulated SMP mod_unload ");
