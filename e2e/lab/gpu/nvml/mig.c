/*
 * MIG of the stand-in: the profiles of a scenario's cards, and its slices. A
 * slice is a device of its own whose parent is a GPU; it is seen where the
 * device nodes of its instances are (mig-minors, 9 for each GPU instance).
 */
enum { MAX_SLICES = 256, CAPS_PER_GPU = 135, CAPS_PER_GI = 9, FIRST_CAP = 3 };

struct profile {
	unsigned gpu, index, id, slices, most, sms;
	unsigned long long memory_mib;
};
static struct profile profiles[MAX_SLICES];
static struct gpu slices[MAX_SLICES];
static unsigned n_profiles, n_slices;

typedef struct { unsigned sms, copy, decoder, encoder, jpeg, ofa, gi_slices, ci_slices; unsigned long long memory_mib; } attributes;
typedef struct { device gpu; unsigned id, profile, start, size; } gi_info;
typedef struct { device gpu; device gi; unsigned id, profile, start, size; } ci_info;
typedef struct { unsigned id, p2p, slices, instances, sms, copy, decoder, encoder, jpeg, ofa; unsigned long long memory_mib; } gi_profile;
typedef struct { unsigned id, slices, instances, sms, copy, decoder, encoder, jpeg, ofa; } ci_profile;

static struct gpu *gpu_of_minor(unsigned minor)
{
	for (unsigned i = 0; i < n_all; i++)
		if (all[i].minor == minor)
			return &all[i];
	return NULL;
}

static struct profile *profile_of(device d, unsigned index)
{
	for (unsigned i = 0; i < n_profiles; i++)
		if (profiles[i].gpu == d->minor && profiles[i].index == index)
			return &profiles[i];
	return NULL;
}

/* Reads a line about MIG; 0 for any other. */
static int parse_mig(const char *line)
{
	struct profile p = {0};
	unsigned minor, gi, index;
	char uuid[96], name[96];
	if (sscanf(line, "profile\t%u\t%u\t%u\t%u\t%u\t%u\t%llu", &p.gpu, &p.index, &p.id, &p.slices, &p.most, &p.sms,
		   &p.memory_mib) == 7) {
		if (n_profiles < MAX_SLICES)
			profiles[n_profiles++] = p;
		return 1;
	}
	if (sscanf(line, "slice\t%u\t%u\t%u\t%95[^\t]\t%95[^\n]", &minor, &gi, &index, uuid, name) != 5)
		return 0;
	struct gpu *parent = gpu_of_minor(minor);
	if (parent && n_slices < MAX_SLICES) {
		struct gpu s = *parent;
		s.parent = parent, s.gi = gi, s.profile = index, s.mig = 0;
		if (profile_of(parent, index))
			s.memory_mib = profile_of(parent, index)->memory_mib;
		snprintf(s.uuid, sizeof s.uuid, "%s", uuid);
		snprintf(s.name, sizeof s.name, "%s", name);
		slices[n_slices++] = s;
	}
	return 1;
}

static void forget_mig(void) { n_profiles = n_slices = 0; }

static int slice_seen(device s)
{
	char gi[64], ci[64];
	unsigned cap = FIRST_CAP + s->minor * CAPS_PER_GPU + s->gi * CAPS_PER_GI;
	snprintf(gi, sizeof gi, "/dev/nvidia-caps/nvidia-cap%u", cap);
	snprintf(ci, sizeof ci, "/dev/nvidia-caps/nvidia-cap%u", cap + 1);
	return exists(gi) && exists(ci);
}

int nvmlDeviceGetMigMode(device d, unsigned *current, unsigned *pending)
{
	if (!d->mig)
		return NOT_SUPPORTED;
	return *current = d->mig & 1, *pending = d->mig >> 1 & 1, SUCCESS;
}
int nvmlDeviceGetMaxMigDeviceCount(device d, unsigned *n) { return *n = d->mig ? 7 : 0, SUCCESS; }
int nvmlDeviceIsMigDeviceHandle(device d, unsigned *is) { return *is = d->parent != NULL, SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(device d, unsigned index, device *out)
{
	for (unsigned i = 0; i < n_slices; i++)
		if (slices[i].parent == d && slice_seen(&slices[i]) && index-- == 0)
			return *out = &slices[i], SUCCESS;
	return NOT_FOUND;
}
static int slice_index(device s, unsigned *index)
{
	device at;
	for (*index = 0; nvmlDeviceGetMigDeviceHandleByIndex(s->parent, *index, &at) == SUCCESS; ++*index)
		if (at == s)
			return SUCCESS;
	return NOT_FOUND;
}
static int slice_by_uuid(const char *uuid, device *out)
{
	for (unsigned i = 0; i < n_slices; i++)
		if (!strcmp(slices[i].uuid, uuid) && slice_seen(&slices[i]))
			return *out = &slices[i], SUCCESS;
	return NOT_FOUND;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device s, device *out)
{
	return s->parent ? (*out = s->parent, SUCCESS) : INVALID_ARGUMENT;
}
int nvmlDeviceGetGpuInstanceId(device s, unsigned *id) { return s->parent ? (*id = s->gi, SUCCESS) : NOT_SUPPORTED; }
int nvmlDeviceGetComputeInstanceId(device s, unsigned *id) { return s->parent ? (*id = 0, SUCCESS) : NOT_SUPPORTED; }
int nvmlDeviceGetAttributes_v2(device s, attributes *a)
{
	struct profile *p = s->parent ? profile_of(s->parent, s->profile) : NULL;
	if (!p)
		return NOT_SUPPORTED;
	memset(a, 0, sizeof *a);
	a->sms = p->sms, a->copy = a->decoder = a->gi_slices = a->ci_slices = p->slices, a->memory_mib = p->memory_mib;
	return SUCCESS;
}
int nvmlDeviceGetAttributes(device s, attributes *a) { return nvmlDeviceGetAttributes_v2(s, a); }

/* An instance's handle is the slice it makes up. */
int nvmlDeviceGetGpuInstanceById(device d, unsigned id, device *gi)
{
	for (unsigned i = 0; i < n_slices; i++)
		if (slices[i].parent == d && slices[i].gi == id)
			return *gi = &slices[i], SUCCESS;
	return NOT_FOUND;
}
int nvmlGpuInstanceGetComputeInstanceById(device gi, unsigned id, device *ci)
{
	return id == 0 ? (*ci = gi, SUCCESS) : NOT_FOUND;
}
int nvmlGpuInstanceGetInfo(device gi, gi_info *info)
{
	struct profile *p = profile_of(gi->parent, gi->profile);
	memset(info, 0, sizeof *info);
	return p ? (info->gpu = gi->parent, info->id = gi->gi, info->profile = p->id, info->size = p->slices, SUCCESS) : NOT_FOUND;
}
/* Compute instances by their number of slices: 1, 2, 3, 4, 7. */
static unsigned ci_index(unsigned n) { return n == 7 ? 4 : n - 1; }
int nvmlComputeInstanceGetInfo_v2(device ci, ci_info *info)
{
	struct profile *p = profile_of(ci->parent, ci->profile);
	memset(info, 0, sizeof *info);
	return p ? (info->gpu = ci->parent, info->gi = ci, info->profile = ci_index(p->slices), info->size = p->slices, SUCCESS) : NOT_FOUND;
}
int nvmlComputeInstanceGetInfo(device ci, ci_info *info) { return nvmlComputeInstanceGetInfo_v2(ci, info); }
int nvmlDeviceGetGpuInstanceProfileInfo(device d, unsigned index, gi_profile *info)
{
	struct profile *p = d->mig ? profile_of(d, index) : NULL;
	if (!p)
		return NOT_SUPPORTED;
	memset(info, 0, sizeof *info);
	info->id = p->id, info->slices = p->slices, info->instances = p->most, info->sms = p->sms, info->memory_mib = p->memory_mib;
	return SUCCESS;
}
int nvmlGpuInstanceGetComputeInstanceProfileInfo(device gi, unsigned index, unsigned engine, ci_profile *info)
{
	struct profile *p = profile_of(gi->parent, gi->profile);
	if (!p || engine || index != ci_index(p->slices))
		return NOT_SUPPORTED;
	memset(info, 0, sizeof *info);
	info->id = index, info->slices = p->slices, info->instances = 1, info->sms = p->sms;
	return SUCCESS;
}
