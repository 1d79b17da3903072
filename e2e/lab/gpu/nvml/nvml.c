/*
 * A stand-in for NVIDIA's libnvidia-ml.so: it answers for the devices of a
 * scenario that stands behind its own ELF image (see package scenario), and,
 * as the real library does in a container, only for those whose device node
 * is there. Functions not written here are generated as "not supported".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15,
	LIB_RM_VERSION_MISMATCH = 18, UNKNOWN = 999,
};
enum { MAX_GPUS = 64, FOOTER = 32 };

struct gpu {
	unsigned minor, major_cc, minor_cc, pci_id, domain, bus, dev, mig, lost;
	unsigned long long memory_mib;
	char uuid[96], name[96];
	/* of a MIG device: its GPU, its GPU instance, and the number of its profile */
	struct gpu *parent;
	unsigned gi, profile;
};

static struct gpu all[MAX_GPUS];
static struct gpu *seen[MAX_GPUS];
static unsigned n_all, n_seen, initialized;
static char module_version[80], library_version[80], cuda_version[16];

typedef struct gpu *device;
typedef struct {
	char legacy[16];
	unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} pci_info;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
typedef struct { unsigned gpu, memory; } utilization;

static int exists(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

static int parse_mig(const char *line); /* of mig.c */
static void forget_mig(void);
static int slice_index(device s, unsigned *index);
static int slice_by_uuid(const char *uuid, device *out);

static void parse_line(char *line)
{
	if (parse_mig(line))
		return;
	if (sscanf(line, "module\t%79[^\n]", module_version) == 1 ||
	    sscanf(line, "library\t%79[^\n]", library_version) == 1 ||
	    sscanf(line, "cuda\t%15[^\n]", cuda_version) == 1)
		return;
	struct gpu g = {0};
	if (n_all < MAX_GPUS &&
	    sscanf(line, "gpu\t%u\t%95[^\t]\t%95[^\t]\t%llu\t%u\t%u\t%u\t%u\t%u\t%u\t%u\t%u", &g.minor, g.uuid,
		   g.name, &g.memory_mib, &g.major_cc, &g.minor_cc, &g.pci_id, &g.domain, &g.bus, &g.dev,
		   &g.mig, &g.lost) == 12)
		all[n_all++] = g;
}

/* Reads the scenario behind this library's own file. */
static int load(void)
{
	Dl_info self;
	char footer[FOOTER + 1] = {0}, *text, *line, *rest;
	long len;
	FILE *f;
	if (!dladdr((void *)load, &self) || !(f = fopen(self.dli_fname, "rb")))
		return UNKNOWN;
	if (fseek(f, -FOOTER, SEEK_END) || fread(footer, 1, FOOTER, f) != FOOTER ||
	    sscanf(footer, "GPUCTLLAB1 %ld", &len) != 1 || fseek(f, -FOOTER - len, SEEK_END)) {
		fclose(f);
		return UNKNOWN;
	}
	text = calloc(1, (size_t)len + 1);
	if (!text || fread(text, 1, (size_t)len, f) != (size_t)len) {
		free(text);
		fclose(f);
		return UNKNOWN;
	}
	fclose(f);
	n_all = 0;
	forget_mig();
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		parse_line(line);
	free(text);
	return SUCCESS;
}

int nvmlInit_v2(void)
{
	char node[32];
	int err = load();
	if (err)
		return err;
	if (!exists("/dev/nvidiactl"))
		return DRIVER_NOT_LOADED;
	if (strcmp(module_version, library_version))
		return LIB_RM_VERSION_MISMATCH;
	n_seen = 0;
	for (unsigned i = 0; i < n_all; i++) {
		snprintf(node, sizeof node, "/dev/nvidia%u", all[i].minor);
		if (exists(node))
			seen[n_seen++] = &all[i];
	}
	initialized = 1;
	return SUCCESS;
}
int nvmlInit(void) { return nvmlInit_v2(); }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(int err)
{
	switch (err) {
	case SUCCESS: return "Success";
	case UNINITIALIZED: return "Uninitialized";
	case INVALID_ARGUMENT: return "Invalid Argument";
	case NOT_SUPPORTED: return "Not Supported";
	case NOT_FOUND: return "Not Found";
	case DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case TIMEOUT: return "Timeout";
	case GPU_IS_LOST: return "GPU is lost";
	case LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
	default: return "Unknown Error";
	}
}

static int put(char *out, unsigned size, const char *s)
{
	if (!out)
		return INVALID_ARGUMENT;
	if (strlen(s) >= size)
		return INSUFFICIENT_SIZE;
	strcpy(out, s);
	return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) { return put(out, size, module_version); }
int nvmlSystemGetNVMLVersion(char *out, unsigned size)
{
	char v[96];
	snprintf(v, sizeof v, "%.*s.%s", (int)strcspn(cuda_version, "."), cuda_version, library_version);
	return put(out, size, v);
}
int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	int major = 0, minor = 0;
	sscanf(cuda_version, "%d.%d", &major, &minor);
	*version = major * 1000 + minor * 10;
	return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

int nvmlDeviceGetCount_v2(unsigned *count)
{
	if (!initialized)
		return UNINITIALIZED;
	*count = n_seen;
	return SUCCESS;
}
int nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

static int hand_out(unsigned i, device *d)
{
	if (i >= n_seen)
		return NOT_FOUND;
	if (seen[i]->lost)
		return GPU_IS_LOST;
	*d = seen[i];
	return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *d)
{
	return i < n_seen ? hand_out(i, d) : INVALID_ARGUMENT;
}
int nvmlDeviceGetHandleByIndex(unsigned i, device *d) { return nvmlDeviceGetHandleByIndex_v2(i, d); }
int nvmlDeviceGetHandleByUUID(const char *uuid, device *d)
{
	unsigned i = 0;
	if (!strncmp(uuid, "MIG-", 4))
		return slice_by_uuid(uuid, d);
	while (i < n_seen && strcmp(seen[i]->uuid, uuid))
		i++;
	return hand_out(i, d);
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, device *d)
{
	unsigned domain, bus, dev, i = 0;
	if (sscanf(id, "%x:%x:%x", &domain, &bus, &dev) != 3)
		return INVALID_ARGUMENT;
	while (i < n_seen && !(seen[i]->domain == domain && seen[i]->bus == bus && seen[i]->dev == dev))
		i++;
	return hand_out(i, d);
}
int nvmlDeviceGetIndex(device d, unsigned *index)
{
	if (d->parent)
		return slice_index(d, index);
	for (unsigned i = 0; i < n_seen; i++)
		if (seen[i] == d)
			return *index = i, SUCCESS;
	return NOT_FOUND;
}
int nvmlDeviceGetUUID(device d, char *out, unsigned size) { return put(out, size, d->uuid); }
int nvmlDeviceGetName(device d, char *out, unsigned size) { return put(out, size, d->name); }
int nvmlDeviceGetMinorNumber(device d, unsigned *minor) { return *minor = d->minor, SUCCESS; }
int nvmlDeviceGetBoardId(device d, unsigned *id) { return *id = d->bus << 8, SUCCESS; }
int nvmlDeviceGetBrand(device d, int *brand) { return (void)d, *brand = 14, SUCCESS; }
int nvmlDeviceGetPersistenceMode(device d, int *mode) { return (void)d, *mode = 1, SUCCESS; }
int nvmlDeviceGetComputeMode(device d, int *mode) { return (void)d, *mode = 0, SUCCESS; }
int nvmlDeviceGetDisplayMode(device d, int *mode) { return (void)d, *mode = 0, SUCCESS; }
int nvmlDeviceGetDisplayActive(device d, int *mode) { return (void)d, *mode = 0, SUCCESS; }
int nvmlDeviceGetTemperature(device d, int sensor, unsigned *t) { return (void)d, (void)sensor, *t = 31, SUCCESS; }
int nvmlDeviceGetPowerUsage(device d, unsigned *mw) { return (void)d, *mw = 48000, SUCCESS; }
int nvmlDeviceGetUtilizationRates(device d, utilization *u) { return (void)d, u->gpu = u->memory = 0, SUCCESS; }
int nvmlDeviceGetNumaNodeId(device d, unsigned *node) { return (void)d, *node = 0, SUCCESS; }
int nvmlDeviceGetPciInfo_v3(device d, pci_info *p)
{
	memset(p, 0, sizeof *p);
	p->domain = d->domain, p->bus = d->bus, p->device = d->dev, p->pciDeviceId = d->pci_id;
	p->pciSubSystemId = d->pci_id;
	snprintf(p->legacy, sizeof p->legacy, "%04X:%02X:%02X.0", d->domain & 0xffff, d->bus & 0xff, d->dev & 0xff);
	snprintf(p->busId, sizeof p->busId, "%08X:%02X:%02X.0", d->domain, d->bus, d->dev);
	return SUCCESS;
}
int nvmlDeviceGetPciInfo_v2(device d, pci_info *p) { return nvmlDeviceGetPciInfo_v3(d, p); }
int nvmlDeviceGetMemoryInfo(device d, memory *m)
{
	m->total = d->memory_mib << 20, m->used = 4ull << 20, m->free = m->total - m->used;
	return SUCCESS;
}
int nvmlDeviceGetMemoryInfo_v2(device d, memory_v2 *m)
{
	m->total = d->memory_mib << 20, m->reserved = 500ull << 20, m->used = 4ull << 20;
	m->free = m->total - m->used - m->reserved;
	return SUCCESS;
}
int nvmlDeviceGetCudaComputeCapability(device d, int *major, int *minor)
{
	return *major = (int)d->major_cc, *minor = (int)d->minor_cc, SUCCESS;
}
int nvmlDeviceGetArchitecture(device d, unsigned *arch)
{
	switch (d->major_cc * 10 + d->minor_cc) {
	case 70: *arch = 5; break;
	case 75: *arch = 6; break;
	case 80: case 86: *arch = 7; break;
	case 89: *arch = 8; break;
	case 90: *arch = 9; break;
	default: *arch = 10;
	}
	return SUCCESS;
}
int nvmlDeviceGetNvLinkState(device d, unsigned link, int *active)
{
	(void)d, (void)link, (void)active;
	return NOT_SUPPORTED;
}
int nvmlDeviceGetTopologyCommonAncestor(device a, device b, int *level)
{
	return (void)a, (void)b, *level = 50, SUCCESS; /* same CPU */
}
int nvmlDeviceGetP2PStatus(device a, device b, int index, int *status)
{
	return (void)a, (void)b, (void)index, *status = 3, SUCCESS; /* not supported */
}
int nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned *count, void *infos)
{
	return (void)d, (void)infos, *count = 0, SUCCESS;
}

/* Health events: the set is real to its holder, nothing ever happens in it. */
static int event_set;
int nvmlEventSetCreate(void **set) { return *set = &event_set, SUCCESS; }
int nvmlEventSetFree(void *set) { return (void)set, SUCCESS; }
int nvmlDeviceGetSupportedEventTypes(device d, unsigned long long *types) { return (void)d, *types = 8 | 1 | 2, SUCCESS; }
int nvmlDeviceRegisterEvents(device d, unsigned long long types, void *set)
{
	return (void)d, (void)types, (void)set, SUCCESS;
}
int nvmlEventSetWait_v2(void *set, void *data, unsigned ms)
{
	(void)set, (void)data;
	usleep(ms * 1000u);
	return TIMEOUT;
}
int nvmlEventSetWait(void *set, void *data, unsigned ms) { return nvmlEventSetWait_v2(set, data, ms); }
