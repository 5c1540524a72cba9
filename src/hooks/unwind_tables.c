#include "hooks/unwind_tables.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "core/recorder.h"

/*
 * _dl_find_object; NULL: older than glibc 2.35, and stacks are followed by frame pointers alone. It is
 * looked up, because a reference to it would keep the library from loading there.
 */
#if defined(DLFO_EH_SEGMENT_TYPE)
static __typeof__(&_dl_find_object) find_object;

__attribute__((constructor)) static void look_up(void)
{
	find_object = (__typeof__(find_object))dlsym(RTLD_DEFAULT, "_dl_find_object");
}
#endif

uint64_t tacho__table_get(struct tacho__cursor *c, unsigned size)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->at) < size) {
		c->at = c->end;
		return 0;
	}
	memcpy(&v, c->at, size);
	c->at += size;
	return v;
}

uint64_t tacho__table_uleb(struct tacho__cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; c->at < c->end; shift += 7) {
		uint8_t byte = *c->at++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return v;
}

int64_t tacho__table_sleb(struct tacho__cursor *c)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t byte = 0;

	while (c->at < c->end) {
		byte = *c->at++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80))
			break;
	}
	if (shift < 64 && byte & 0x40)
		v |= ~0ull << shift;
	return (int64_t)v;
}

/* A pointer in one of DWARF's encodings (DW_EH_PE_*), which may count from where it stands. */
static uint64_t get_encoded(struct tacho__cursor *c, uint8_t encoding)
{
	uint64_t here = (uint64_t)(uintptr_t)c->at;
	uint64_t v;

	switch (encoding & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c:
		v = tacho__table_get(c, 8);
		break;
	case 0x01:
		v = tacho__table_uleb(c);
		break;
	case 0x02:
		v = tacho__table_get(c, 2);
		break;
	case 0x03:
		v = tacho__table_get(c, 4);
		break;
	case 0x09:
		v = (uint64_t)tacho__table_sleb(c);
		break;
	case 0x0a:
		v = (uint64_t)(int16_t)tacho__table_get(c, 2);
		break;
	case 0x0b:
		v = (uint64_t)(int32_t)tacho__table_get(c, 4);
		break;
	default:
		c->at = c->end;
		return 0;
	}
	return (encoding & 0x70) == 0x10 ? v + here : v;
}

/* ------------------------------------------------------------------- tables */

static int read_cie(struct tacho__frame_table *d, const uint8_t *at, uint8_t *encoding)
{
	uint32_t size;
	struct tacho__cursor c;
	const char *augmentation;
	uint8_t version;

	__builtin_memcpy(&size, at, 4);
	if (size < 8 || size == UINT32_MAX)
		return 0;
	c = (struct tacho__cursor){at + 8, at + 4 + size};
	version = (uint8_t)tacho__table_get(&c, 1);
	augmentation = (const char *)c.at;
	while (c.at < c.end && *c.at)
		c.at++;
	tacho__table_get(&c, 1);
	d->code_align = tacho__table_uleb(&c);
	d->data_align = tacho__table_sleb(&c);
	d->return_register = version == 1 ? tacho__table_get(&c, 1) : tacho__table_uleb(&c);
	*encoding = 0;
	if (*augmentation == 'z') {
		uint64_t bytes = tacho__table_uleb(&c);
		const uint8_t *instructions = c.at + bytes;

		if (bytes > (uint64_t)(c.end - c.at))
			return 0;
		for (augmentation++; *augmentation; augmentation++) {
			if (*augmentation == 'R')
				*encoding = (uint8_t)tacho__table_get(&c, 1);
			else if (*augmentation == 'L')
				tacho__table_get(&c, 1);
			else if (*augmentation == 'P')
				get_encoded(&c, (uint8_t)tacho__table_get(&c, 1));
			else if (*augmentation == 'S')
				d->is_signal = 1;
			else if (*augmentation != 'B')
				break;
		}
		c.at = instructions;
	} else if (*augmentation) {
		return 0;
	}
	d->common = c;
	return 1;
}

static int read_fde(struct tacho__frame_table *d, const uint8_t *at, uint64_t pc)
{
	uint32_t size, back;
	uint64_t length;
	uint8_t encoding;
	struct tacho__cursor c;

	__builtin_memcpy(&size, at, 4);
	if (size < 8 || size == UINT32_MAX)
		return 0;
	__builtin_memcpy(&back, at + 4, 4);
	if (!back || !read_cie(d, at + 4 - back, &encoding))
		return 0;
	c = (struct tacho__cursor){at + 8, at + 4 + size};
	d->begin = get_encoded(&c, encoding);
	length = get_encoded(&c, encoding & 0x0f);
	if (pc - d->begin >= length)
		return 0;
	length = tacho__table_uleb(&c); /* of augmentation data, which 'z' announced */
	if (length > (uint64_t)(c.end - c.at))
		return 0;
	c.at += length;
	d->own = c;
	return 1;
}

/* The sorted table of .eh_frame_hdr: pairs of 32-bit offsets from its own address. */
static const uint8_t *search(const uint8_t *hdr, uint64_t pc)
{
	struct tacho__cursor c = {hdr + 4, hdr + 4 + 24};
	int64_t wanted = (int64_t)(pc - (uint64_t)(uintptr_t)hdr);
	uint64_t low = 0, high;
	int32_t pair[2];

	if (hdr[0] != 1 || hdr[3] != 0x3b)
		return NULL;
	get_encoded(&c, hdr[1]);
	high = get_encoded(&c, hdr[2]);
	if (!high || high > UINT32_MAX)
		return NULL;
	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;

		__builtin_memcpy(pair, c.at + mid * sizeof(pair), sizeof(pair));
		if (pair[0] <= wanted)
			low = mid;
		else
			high = mid;
	}
	__builtin_memcpy(pair, c.at + low * sizeof(pair), sizeof(pair));
	return pair[0] <= wanted ? hdr + pair[1] : NULL;
}

#if defined(__GLIBC__)

void tacho__tables_refresh(void)
{
}

int tacho__tables_find(struct tacho__tables *t, uint64_t pc)
{
#if defined(DLFO_EH_SEGMENT_TYPE)
	struct dl_find_object object;

	if (pc - t->start < t->end - t->start)
		return 1;
	if (!find_object || find_object((void *)pc, &object))
		return 0;
	t->start = (uint64_t)(uintptr_t)object.dlfo_map_start;
	t->end = (uint64_t)(uintptr_t)object.dlfo_map_end;
	t->header = object.dlfo_eh_frame;
	return 1;
#else
	(void)t;
	(void)pc;
	return 0;
#endif
}

#else

/* musl never unloads a library. So modules are only added, and a signal handler can read the list
   while another thread adds one. */
#define MODULES_MAX 512u
static struct tacho__tables modules[MODULES_MAX];
static uint32_t module_count;

static void add_module(const struct dl_phdr_info *info)
{
	struct tacho__tables m = {UINT64_MAX, 0, NULL};
	uint32_t count = tacho__load(&module_count);

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && start < m.start)
			m.start = start;
		if (p->p_type == PT_LOAD && start + p->p_memsz > m.end)
			m.end = start + p->p_memsz;
		if (p->p_type == PT_GNU_EH_FRAME)
			m.header = (const void *)(uintptr_t)start;
	}
	if (m.start >= m.end || count == MODULES_MAX)
		return;
	modules[count] = m;
	__atomic_store_n(&module_count, count + 1, __ATOMIC_RELEASE);
}

static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	uint32_t *seen = data;

	(void)size;
	/* New ones come last. */
	if (++*seen > tacho__load(&module_count))
		add_module(info);
	return 0;
}

void tacho__tables_refresh(void)
{
	static uint32_t busy;
	uint32_t seen = 0;

	/* Who comes second has its libraries seen by the first, or by the next. */
	if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return;
	dl_iterate_phdr(look_at, &seen);
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

int tacho__tables_find(struct tacho__tables *t, uint64_t pc)
{
	uint32_t count = __atomic_load_n(&module_count, __ATOMIC_ACQUIRE);

	if (pc - t->start < t->end - t->start)
		return 1;
	for (uint32_t i = 0; i < count; i++) {
		if (pc - modules[i].start < modules[i].end - modules[i].start) {
			*t = modules[i];
			return 1;
		}
	}
	return 0;
}

#endif

int tacho__table_describe(struct tacho__frame_table *d, const struct tacho__tables *t, uint64_t pc)
{
	const uint8_t *fde = t->header ? search(t->header, pc) : NULL;

	memset(d, 0, sizeof(*d));
	return fde && read_fde(d, fde, pc);
}
