#include "base/text.h"

#include <errno.h>
#include <string.h>

void tacho__text_init(struct tacho__text *t, char *buf, size_t room)
{
	t->at = buf;
	t->room = room;
	t->size = 0;
	t->cut = 0;
	if (room)
		buf[0] = 0;
}

void tacho__text_put_n(struct tacho__text *t, const char *s, size_t n)
{
	size_t left = t->room ? t->room - 1 - t->size : 0;

	if (n > left) {
		n = left;
		t->cut = 1;
	}
	if (!t->room)
		return;
	memcpy(t->at + t->size, s, n);
	t->size += n;
	t->at[t->size] = 0;
}

void tacho__text_put(struct tacho__text *t, const char *s)
{
	tacho__text_put_n(t, s, strlen(s));
}

void tacho__text_put_u64(struct tacho__text *t, uint64_t v)
{
	char digits[20];
	size_t n = sizeof(digits);

	do {
		digits[--n] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	tacho__text_put_n(t, digits + n, sizeof(digits) - n);
}

void tacho__text_put_errno(struct tacho__text *t, int error)
{
	static const struct {
		int error;
		const char *text;
	} known[] = {
		{EPERM, "operation not permitted (EPERM)"},
		{ENOENT, "no such file or directory (ENOENT)"},
		{EACCES, "permission denied (EACCES)"},
		{EEXIST, "it exists already (EEXIST)"},
		{ENOTDIR, "not a directory (ENOTDIR)"},
		{ELOOP, "it is a symbolic link (ELOOP)"},
		{EROFS, "read-only file system (EROFS)"},
		{ENOSPC, "no space left (ENOSPC)"},
		{EDQUOT, "quota exceeded (EDQUOT)"},
		{EFBIG, "larger than the file size limit (EFBIG)"},
		{ENOMEM, "out of memory or address space (ENOMEM)"},
		{EFAULT, "no memory behind the file, tmpfs is full (EFAULT)"},
		{EMFILE, "too many open files in the process (EMFILE)"},
		{ENFILE, "too many open files on the host (ENFILE)"},
		{ENOSYS, "the kernel does not know the call (ENOSYS)"},
		{EINVAL, "invalid (EINVAL)"},
		{EBUSY, "busy (EBUSY)"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].error == error) {
			tacho__text_put(t, known[i].text);
			return;
		}
	}
	tacho__text_put(t, "error ");
	tacho__text_put_u64(t, (uint64_t)error);
}

/* Digits of `*s` into `*out`, moving on; -EINVAL without a digit or beyond 64 bits. */
static int digits(const char **s, uint64_t *out)
{
	uint64_t v = 0;
	const char *p = *s;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -EINVAL;
	}
	*s = p;
	*out = v;
	return 0;
}

int tacho__parse_u64(const char *s, uint64_t *out)
{
	uint64_t v;

	if (digits(&s, &v) || *s)
		return -EINVAL;
	*out = v;
	return 0;
}

int tacho__parse_bytes(const char *s, uint64_t *out)
{
	static const char letters[] = "KMG";
	uint64_t v;
	unsigned shift = 0;

	if (digits(&s, &v))
		return -EINVAL;
	if (*s) {
		char up = (char)(*s >= 'a' ? *s - 'a' + 'A' : *s);
		const char *l = strchr(letters, up);

		if (!l)
			return -EINVAL;
		shift = 10u * (unsigned)(l - letters + 1);
		s++;
		if (!strcmp(s, "iB"))
			s += 2;
	}
	if (*s || (shift && v >> (64 - shift)))
		return -EINVAL;
	*out = v << shift;
	return 0;
}

uint64_t tacho__duration_unit(const char *s)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {
		{"ns", 1},	   {"us", 1000},       {"ms", 1000000},
		{"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(s, units[i].unit))
			return units[i].ns;
	return 0;
}

int tacho__parse_duration(const char *s, uint64_t *out_ns)
{
	uint64_t unit, whole = 0, part = 0, scale = 1;

	if (*s != '.' && digits(&s, &whole))
		return -EINVAL;
	if (*s == '.') {
		const char *from = ++s;

		if (digits(&s, &part) || s - from > 9)
			return -EINVAL;
		for (const char *p = from; p < s; p++)
			scale *= 10;
	}
	if (!*s && !whole && !part) {
		*out_ns = 0;
		return 0;
	}
	unit = tacho__duration_unit(s);
	if (!unit || __builtin_mul_overflow(whole, unit, &whole) ||
	    __builtin_add_overflow(whole, (uint64_t)((unsigned __int128)part * unit / scale),
				   &whole))
		return -EINVAL;
	*out_ns = whole;
	return 0;
}

void tacho__join_arguments(char *line, size_t size)
{
	while (size && (line[size - 1] == 0 || line[size - 1] == ' '))
		size--;
	for (size_t i = 0; i < size; i++)
		if (line[i] == 0)
			line[i] = ' ';
	line[size] = 0;
}
