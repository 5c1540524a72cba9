/*
 * Calls on files and folders, by descriptor and by path.
 *
 * The names that end in 64 are what programs call that were built for large files, those
 * with _chk and _2 what fortified ones call, and __xstat and kin what programs call that
 * were built with a libc before 2.33.
 */
#include "hooks/calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/types.h>

#define PATH_CALL(name, params, args) TACHO__CALL(int, name, params, args, TACHO__PATH(path))
#define OPEN_CALL(name, params, args) \
	TACHO__CALL_MAKING(name, params, args, TACHO__ON_NOTHING, TACHO__FD_PATH(result, path))
#define AT_CALL(name, params, args) TACHO__CALL(int, name, params, args, TACHO__FD_PATH(dir, path))

/* -------------------------------------------------------- read and write */

TACHO__RECEIVE(read, (int fd, void *buf, size_t size), (fd, buf, size), 1)
TACHO__TRANSFER(ssize_t, write, (int fd, const void *buf, size_t size), (fd, buf, size))
TACHO__RECEIVE(readv, (int fd, const void *parts, int count), (fd, parts, count), 1)
TACHO__TRANSFER(ssize_t, writev, (int fd, const void *parts, int count), (fd, parts, count))
TACHO__RECEIVE(__read_chk, (int fd, void *buf, size_t size, size_t room), (fd, buf, size, room), 1)

#define READ_AT(name)                                                             \
	TACHO__FD_CALL(ssize_t, name, (int fd, void *buf, size_t size, off_t at), \
		       (fd, buf, size, at))
#define WRITE_AT(name)                                                                  \
	TACHO__FD_CALL(ssize_t, name, (int fd, const void *buf, size_t size, off_t at), \
		       (fd, buf, size, at))
#define READ_AT_CHECKED(name)                                                                  \
	TACHO__FD_CALL(ssize_t, name, (int fd, void *buf, size_t size, off_t at, size_t room), \
		       (fd, buf, size, at, room))
#define PARTS_AT(name)                                                                  \
	TACHO__FD_CALL(ssize_t, name, (int fd, const void *parts, int count, off_t at), \
		       (fd, parts, count, at))
#define PARTS_AT_FLAGS(name)                                                                       \
	TACHO__FD_CALL(ssize_t, name, (int fd, const void *parts, int count, off_t at, int flags), \
		       (fd, parts, count, at, flags))

READ_AT(pread)
TACHO__LARGE(READ_AT(pread64))
READ_AT_CHECKED(__pread_chk)
TACHO__LARGE(READ_AT_CHECKED(__pread64_chk))
WRITE_AT(pwrite)
TACHO__LARGE(WRITE_AT(pwrite64))
PARTS_AT(preadv)
TACHO__LARGE(PARTS_AT(preadv64))
PARTS_AT(pwritev)
TACHO__LARGE(PARTS_AT(pwritev64))
PARTS_AT_FLAGS(preadv2)
TACHO__LARGE(PARTS_AT_FLAGS(preadv64v2))
PARTS_AT_FLAGS(pwritev2)
TACHO__LARGE(PARTS_AT_FLAGS(pwritev64v2))

#define SEND_FILE(name)                                                                          \
	TACHO__CALL(ssize_t, name, (int to, int fd, off_t *at, size_t size), (to, fd, at, size), \
		    TACHO__FD(to))
SEND_FILE(sendfile)
TACHO__LARGE(SEND_FILE(sendfile64))
TACHO__FD_CALL(ssize_t, splice,
	       (int fd, loff_t *from, int to, loff_t *at, size_t size, unsigned flags),
	       (fd, from, to, at, size, flags))
TACHO__FD_CALL(ssize_t, copy_file_range,
	       (int fd, loff_t *from, int to, loff_t *at, size_t size, unsigned flags),
	       (fd, from, to, at, size, flags))

/* --------------------------------------------------------------- storage */

/* Of all file systems: it returns nothing, so there is nothing to be wrong. */
TACHO__HOOKED(void, sync, (void))
{
	uint64_t since = TACHO__CALL_BEGINS(tacho__call_counts(), "sync", TACHO__ON_NOTHING);

	TACHO__NEXT(sync)();
	TACHO__CALL_ENDS(since, "sync", 0, TACHO__NOTHING);
}

TACHO__FD_CALL(int, fsync, (int fd), (fd))
TACHO__FD_CALL(int, fdatasync, (int fd), (fd))
TACHO__FD_CALL(int, syncfs, (int fd), (fd))
TACHO__FD_CALL(int, sync_file_range, (int fd, off_t at, off_t size, unsigned flags),
	       (fd, at, size, flags))
TACHO__CALL(int, msync, (void *at, size_t size, int flags), (at, size, flags), TACHO__NOTHING)
/* Its number names nothing any more when it returns. */
TACHO__HOOKED(int, close, (int fd))
{
	uint64_t since = TACHO__CALL_BEGINS(tacho__call_counts(), "close", fd);
	int result;

	tacho__descriptor_closed(fd);
	result = TACHO__NEXT(close)(fd);
	TACHO__CALL_ENDS(since, "close", result < 0 ? errno : 0, TACHO__NUMBER(fd));
	return result;
}

TACHO__FD_CALL(int, ftruncate, (int fd, off_t size), (fd, size))
TACHO__LARGE(TACHO__FD_CALL(int, ftruncate64, (int fd, off_t size), (fd, size)))
TACHO__FD_CALL(int, fallocate, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size))
TACHO__LARGE(TACHO__FD_CALL(int, fallocate64, (int fd, int mode, off_t at, off_t size),
			    (fd, mode, at, size)))
TACHO__CALL_ERROR(int, posix_fallocate, (int fd, off_t at, off_t size), (fd, at, size), result,
		  TACHO__FD(fd))
TACHO__LARGE(TACHO__CALL_ERROR(int, posix_fallocate64, (int fd, off_t at, off_t size),
			       (fd, at, size), result, TACHO__FD(fd)))

/* ----------------------------------------------------------------- locks */

TACHO__FD_CALL(int, flock, (int fd, int what), (fd, what))
TACHO__FD_CALL(int, lockf, (int fd, int what, off_t size), (fd, what, size))
TACHO__LARGE(TACHO__FD_CALL(int, lockf64, (int fd, int what, off_t size), (fd, what, size)))

/* Of those only what waits for a lock: the others never take long. */
#define CONTROL(name)                                                                          \
	TACHO__HOOKED(int, name, (int fd, int what, void *arg))                                \
	{                                                                                      \
		int waits = what == F_SETLKW || what == F_OFD_SETLKW;                          \
		uint64_t since = TACHO__CALL_BEGINS(waits && tacho__call_counts(), #name, fd); \
		int result = TACHO__NEXT(name)(fd, what, arg);                                 \
                                                                                               \
		if (what == F_SETFL)                                                           \
			tacho__descriptor_changed(fd);                                         \
		else if (what == F_DUPFD || what == F_DUPFD_CLOEXEC)                           \
			tacho__descriptor_made(result, __builtin_return_address(0));           \
		TACHO__CALL_ENDS(since, #name, result < 0 ? errno : 0, TACHO__FD(fd));         \
		return result;                                                                 \
	}
CONTROL(fcntl)
TACHO__LARGE(CONTROL(fcntl64))

/* --------------------------------------------------------------- opening */

OPEN_CALL(open, (const char *path, int flags, mode_t mode), (path, flags, mode))
TACHO__LARGE(OPEN_CALL(open64, (const char *path, int flags, mode_t mode), (path, flags, mode)))
OPEN_CALL(openat, (int dir, const char *path, int flags, mode_t mode), (dir, path, flags, mode))
TACHO__LARGE(OPEN_CALL(openat64, (int dir, const char *path, int flags, mode_t mode),
		       (dir, path, flags, mode)))
OPEN_CALL(creat, (const char *path, mode_t mode), (path, mode))
TACHO__LARGE(OPEN_CALL(creat64, (const char *path, mode_t mode), (path, mode)))
OPEN_CALL(__open_2, (const char *path, int flags), (path, flags))
TACHO__LARGE(OPEN_CALL(__open64_2, (const char *path, int flags), (path, flags)))
OPEN_CALL(__openat_2, (int dir, const char *path, int flags), (dir, path, flags))
TACHO__LARGE(OPEN_CALL(__openat64_2, (int dir, const char *path, int flags), (dir, path, flags)))

TACHO__HOOKED(DIR *, opendir, (const char *path))
{
	uint64_t since = TACHO__CALL_BEGINS(tacho__call_counts(), "opendir", TACHO__ON_NOTHING);
	DIR *result = TACHO__NEXT(opendir)(path);
	int fd = result ? dirfd(result) : -1;

	tacho__descriptor_made(fd, __builtin_return_address(0));
	TACHO__CALL_ENDS(since, "opendir", result ? 0 : errno, TACHO__FD_PATH(fd, path));
	return result;
}

/* NULL is the end as a rule. */
TACHO__CALL_ERROR(void *, readdir, (DIR * folder), (folder), 0, TACHO__FD(dirfd(folder)))
TACHO__LARGE(TACHO__CALL_ERROR(void *, readdir64, (DIR * folder), (folder), 0,
			       TACHO__FD(dirfd(folder))))

/* -------------------------------------------------------- what there is */

PATH_CALL(stat, (const char *path, void *st), (path, st))
TACHO__LARGE(PATH_CALL(stat64, (const char *path, void *st), (path, st)))
PATH_CALL(lstat, (const char *path, void *st), (path, st))
TACHO__LARGE(PATH_CALL(lstat64, (const char *path, void *st), (path, st)))
TACHO__FD_CALL(int, fstat, (int fd, void *st), (fd, st))
TACHO__LARGE(TACHO__FD_CALL(int, fstat64, (int fd, void *st), (fd, st)))
AT_CALL(fstatat, (int dir, const char *path, void *st, int flags), (dir, path, st, flags))
TACHO__LARGE(AT_CALL(fstatat64, (int dir, const char *path, void *st, int flags),
		     (dir, path, st, flags)))
AT_CALL(statx, (int dir, const char *path, int flags, unsigned mask, void *st),
	(dir, path, flags, mask, st))

PATH_CALL(__xstat, (int version, const char *path, void *st), (version, path, st))
TACHO__LARGE(PATH_CALL(__xstat64, (int version, const char *path, void *st), (version, path, st)))
PATH_CALL(__lxstat, (int version, const char *path, void *st), (version, path, st))
TACHO__LARGE(PATH_CALL(__lxstat64, (int version, const char *path, void *st), (version, path, st)))
TACHO__FD_CALL(int, __fxstat, (int version, int fd, void *st), (version, fd, st))
TACHO__LARGE(TACHO__FD_CALL(int, __fxstat64, (int version, int fd, void *st), (version, fd, st)))
AT_CALL(__fxstatat, (int version, int dir, const char *path, void *st, int flags),
	(version, dir, path, st, flags))
TACHO__LARGE(AT_CALL(__fxstatat64, (int version, int dir, const char *path, void *st, int flags),
		     (version, dir, path, st, flags)))

PATH_CALL(statfs, (const char *path, void *st), (path, st))
TACHO__LARGE(PATH_CALL(statfs64, (const char *path, void *st), (path, st)))
PATH_CALL(statvfs, (const char *path, void *st), (path, st))
TACHO__LARGE(PATH_CALL(statvfs64, (const char *path, void *st), (path, st)))
TACHO__FD_CALL(int, fstatfs, (int fd, void *st), (fd, st))
TACHO__LARGE(TACHO__FD_CALL(int, fstatfs64, (int fd, void *st), (fd, st)))
TACHO__FD_CALL(int, fstatvfs, (int fd, void *st), (fd, st))
TACHO__LARGE(TACHO__FD_CALL(int, fstatvfs64, (int fd, void *st), (fd, st)))

PATH_CALL(access, (const char *path, int mode), (path, mode))
AT_CALL(faccessat, (int dir, const char *path, int mode, int flags), (dir, path, mode, flags))
TACHO__CALL(ssize_t, readlink, (const char *path, char *buf, size_t size), (path, buf, size),
	    TACHO__PATH(path))
TACHO__CALL(ssize_t, readlinkat, (int dir, const char *path, char *buf, size_t size),
	    (dir, path, buf, size), TACHO__FD_PATH(dir, path))
TACHO__CALL_ERROR(char *, realpath, (const char *path, char *buf), (path, buf), result ? 0 : errno,
		  TACHO__PATH(path))

/* ------------------------------------------------------- changing it */

PATH_CALL(unlink, (const char *path), (path))
AT_CALL(unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
PATH_CALL(remove, (const char *path), (path))
PATH_CALL(rename, (const char *path, const char *to), (path, to))
AT_CALL(renameat, (int dir, const char *path, int to_dir, const char *to), (dir, path, to_dir, to))
AT_CALL(renameat2, (int dir, const char *path, int to_dir, const char *to, unsigned flags),
	(dir, path, to_dir, to, flags))
PATH_CALL(mkdir, (const char *path, mode_t mode), (path, mode))
AT_CALL(mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode))
PATH_CALL(rmdir, (const char *path), (path))
PATH_CALL(truncate, (const char *path, off_t size), (path, size))
TACHO__LARGE(PATH_CALL(truncate64, (const char *path, off_t size), (path, size)))
PATH_CALL(link, (const char *path, const char *to), (path, to))
AT_CALL(linkat, (int dir, const char *path, int to_dir, const char *to, int flags),
	(dir, path, to_dir, to, flags))
PATH_CALL(symlink, (const char *to, const char *path), (to, path))
AT_CALL(symlinkat, (const char *to, int dir, const char *path), (to, dir, path))
PATH_CALL(chmod, (const char *path, mode_t mode), (path, mode))
TACHO__FD_CALL(int, fchmod, (int fd, mode_t mode), (fd, mode))
AT_CALL(fchmodat, (int dir, const char *path, mode_t mode, int flags), (dir, path, mode, flags))
PATH_CALL(chown, (const char *path, uid_t user, gid_t group), (path, user, group))
PATH_CALL(lchown, (const char *path, uid_t user, gid_t group), (path, user, group))
TACHO__FD_CALL(int, fchown, (int fd, uid_t user, gid_t group), (fd, user, group))
AT_CALL(fchownat, (int dir, const char *path, uid_t user, gid_t group, int flags),
	(dir, path, user, group, flags))
AT_CALL(utimensat, (int dir, const char *path, const void *times, int flags),
	(dir, path, times, flags))
TACHO__FD_CALL(int, futimens, (int fd, const void *times), (fd, times))
PATH_CALL(chdir, (const char *path), (path))
