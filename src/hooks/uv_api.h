/*
 * The part of libuv that the hooks know: every function that takes a callback, those
 * that begin handles, and the few that they call themselves. Declared here, so that nothing of libuv is needed to build.
 *
 * Handles and requests are addresses and nothing more: their memory belongs to the
 * program, their layout to libuv. Valid for all of libuv 1.x, whose ABI does not change.
 */
#ifndef TACHO_HOOKS_UV_API_H
#define TACHO_HOOKS_UV_API_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct addrinfo;
struct sockaddr;

/* Callbacks by what they are called with; the first argument is a handle or a request. */
typedef void (*uv_any_cb)(void);
typedef void (*uv_object_cb)(void *object);
typedef void (*uv_status_cb)(void *object, int status);
typedef void (*uv_poll_cb)(void *handle, int status, int events);
typedef void (*uv_alloc_cb)(void *handle, size_t suggested, void *buf);
typedef void (*uv_read_cb)(void *stream, ssize_t nread, const void *buf);
typedef void (*uv_udp_recv_cb)(void *handle, ssize_t nread, const void *buf,
			       const struct sockaddr *addr, unsigned flags);
typedef void (*uv_exit_cb)(void *process, int64_t status, int signal);
typedef void (*uv_fs_event_cb)(void *handle, const char *filename, int events, int status);
typedef void (*uv_fs_poll_cb)(void *handle, int status, const void *before, const void *now);
typedef void (*uv_getaddrinfo_cb)(void *req, int status, struct addrinfo *result);
typedef void (*uv_getnameinfo_cb)(void *req, int status, const char *host, const char *service);
typedef void (*uv_random_cb)(void *req, int status, void *buf, size_t size);
typedef void (*uv_walk_cb)(void *handle, void *arg);

/* uv_process_options_t. The last two are uid_t and gid_t. */
struct uv_process_options {
	uv_exit_cb exit_cb;
	const char *file;
	char **args;
	char **env;
	const char *cwd;
	unsigned flags;
	int stdio_count;
	void *stdio;
	uid_t uid;
	gid_t gid;
};

/* Handles. */
int uv_timer_init(void *loop, void *handle);
int uv_idle_init(void *loop, void *handle);
int uv_prepare_init(void *loop, void *handle);
int uv_check_init(void *loop, void *handle);
int uv_signal_init(void *loop, void *handle);
int uv_fs_event_init(void *loop, void *handle);
int uv_fs_poll_init(void *loop, void *handle);
int uv_tcp_init(void *loop, void *handle);
int uv_tcp_init_ex(void *loop, void *handle, unsigned flags);
int uv_udp_init(void *loop, void *handle);
int uv_udp_init_ex(void *loop, void *handle, unsigned flags);
int uv_pipe_init(void *loop, void *handle, int ipc);
int uv_poll_init(void *loop, void *handle, int fd);
int uv_poll_init_socket(void *loop, void *handle, int fd);
int uv_tty_init(void *loop, void *handle, int fd, int unused);
int uv_timer_start(void *handle, uv_object_cb cb, uint64_t timeout, uint64_t repeat);
int uv_async_init(void *loop, void *handle, uv_object_cb cb);
int uv_async_send(void *handle);
int uv_idle_start(void *handle, uv_object_cb cb);
int uv_prepare_start(void *handle, uv_object_cb cb);
int uv_check_start(void *handle, uv_object_cb cb);
int uv_poll_start(void *handle, int events, uv_poll_cb cb);
int uv_signal_start(void *handle, uv_status_cb cb, int signum);
int uv_signal_start_oneshot(void *handle, uv_status_cb cb, int signum);
int uv_fs_event_start(void *handle, uv_fs_event_cb cb, const char *path, unsigned flags);
int uv_fs_poll_start(void *handle, uv_fs_poll_cb cb, const char *path, unsigned interval);
int uv_listen(void *stream, int backlog, uv_status_cb cb);
int uv_read_start(void *stream, uv_alloc_cb alloc_cb, uv_read_cb read_cb);
int uv_udp_recv_start(void *handle, uv_alloc_cb alloc_cb, uv_udp_recv_cb recv_cb);
int uv_spawn(void *loop, void *process, const struct uv_process_options *options);
void uv_close(void *handle, uv_object_cb cb);
int uv_tcp_close_reset(void *handle, uv_object_cb cb);

/* Requests. */
int uv_write(void *req, void *stream, const void *bufs, unsigned count, uv_status_cb cb);
int uv_write2(void *req, void *stream, const void *bufs, unsigned count, void *send,
	      uv_status_cb cb);
int uv_shutdown(void *req, void *stream, uv_status_cb cb);
int uv_tcp_connect(void *req, void *handle, const struct sockaddr *addr, uv_status_cb cb);
void uv_pipe_connect(void *req, void *handle, const char *name, uv_status_cb cb);
int uv_pipe_connect2(void *req, void *handle, const char *name, size_t size, unsigned flags,
		     uv_status_cb cb);
int uv_udp_send(void *req, void *handle, const void *bufs, unsigned count,
		const struct sockaddr *addr, uv_status_cb cb);
int uv_getaddrinfo(void *loop, void *req, uv_getaddrinfo_cb cb, const char *node,
		   const char *service, const struct addrinfo *hints);
int uv_getnameinfo(void *loop, void *req, uv_getnameinfo_cb cb, const struct sockaddr *addr,
		   int flags);
int uv_random(void *loop, void *req, void *buf, size_t size, unsigned flags, uv_random_cb cb);
int uv_queue_work(void *loop, void *req, uv_object_cb work_cb, uv_status_cb after_cb);

/* The loop. */
int uv_run(void *loop, int mode);
int uv_loop_close(void *loop);
void uv_walk(void *loop, uv_walk_cb cb, void *arg);

/* Called, not hooked. */
int uv_backend_fd(const void *loop);
int uv_is_active(const void *handle);
uint64_t uv_now(const void *loop);
void *uv_handle_get_loop(const void *handle);
int uv_handle_get_type(const void *handle);
uint64_t uv_timer_get_repeat(const void *handle);
size_t uv_loop_size(void);
size_t uv_stream_get_write_queue_size(const void *stream);

/*
 * Requests of the file system: X(name, parameters between req and cb, their names). A
 * callback of NULL means that the call is made at once.
 */
#define UV_LIST(...) __VA_ARGS__
#define UV_FS(X)                                                                                  \
	X(uv_fs_close, UV_LIST(int file), UV_LIST(file))                                          \
	X(uv_fs_open, UV_LIST(const char *path, int flags, int mode), UV_LIST(path, flags, mode)) \
	X(uv_fs_read, UV_LIST(int file, const void *bufs, unsigned count, int64_t offset),        \
	  UV_LIST(file, bufs, count, offset))                                                     \
	X(uv_fs_unlink, UV_LIST(const char *path), UV_LIST(path))                                 \
	X(uv_fs_write, UV_LIST(int file, const void *bufs, unsigned count, int64_t offset),       \
	  UV_LIST(file, bufs, count, offset))                                                     \
	X(uv_fs_copyfile, UV_LIST(const char *path, const char *to, int flags),                   \
	  UV_LIST(path, to, flags))                                                               \
	X(uv_fs_mkdir, UV_LIST(const char *path, int mode), UV_LIST(path, mode))                  \
	X(uv_fs_mkdtemp, UV_LIST(const char *path), UV_LIST(path))                                \
	X(uv_fs_mkstemp, UV_LIST(const char *path), UV_LIST(path))                                \
	X(uv_fs_rmdir, UV_LIST(const char *path), UV_LIST(path))                                  \
	X(uv_fs_scandir, UV_LIST(const char *path, int flags), UV_LIST(path, flags))              \
	X(uv_fs_opendir, UV_LIST(const char *path), UV_LIST(path))                                \
	X(uv_fs_readdir, UV_LIST(void *dir), UV_LIST(dir))                                        \
	X(uv_fs_closedir, UV_LIST(void *dir), UV_LIST(dir))                                       \
	X(uv_fs_stat, UV_LIST(const char *path), UV_LIST(path))                                   \
	X(uv_fs_fstat, UV_LIST(int file), UV_LIST(file))                                          \
	X(uv_fs_rename, UV_LIST(const char *path, const char *to), UV_LIST(path, to))             \
	X(uv_fs_fsync, UV_LIST(int file), UV_LIST(file))                                          \
	X(uv_fs_fdatasync, UV_LIST(int file), UV_LIST(file))                                      \
	X(uv_fs_ftruncate, UV_LIST(int file, int64_t offset), UV_LIST(file, offset))              \
	X(uv_fs_sendfile, UV_LIST(int out, int in, int64_t offset, size_t size),                  \
	  UV_LIST(out, in, offset, size))                                                         \
	X(uv_fs_access, UV_LIST(const char *path, int mode), UV_LIST(path, mode))                 \
	X(uv_fs_chmod, UV_LIST(const char *path, int mode), UV_LIST(path, mode))                  \
	X(uv_fs_utime, UV_LIST(const char *path, double atime, double mtime),                     \
	  UV_LIST(path, atime, mtime))                                                            \
	X(uv_fs_futime, UV_LIST(int file, double atime, double mtime),                            \
	  UV_LIST(file, atime, mtime))                                                            \
	X(uv_fs_lutime, UV_LIST(const char *path, double atime, double mtime),                    \
	  UV_LIST(path, atime, mtime))                                                            \
	X(uv_fs_lstat, UV_LIST(const char *path), UV_LIST(path))                                  \
	X(uv_fs_link, UV_LIST(const char *path, const char *to), UV_LIST(path, to))               \
	X(uv_fs_symlink, UV_LIST(const char *path, const char *to, int flags),                    \
	  UV_LIST(path, to, flags))                                                               \
	X(uv_fs_readlink, UV_LIST(const char *path), UV_LIST(path))                               \
	X(uv_fs_realpath, UV_LIST(const char *path), UV_LIST(path))                               \
	X(uv_fs_fchmod, UV_LIST(int file, int mode), UV_LIST(file, mode))                         \
	X(uv_fs_chown, UV_LIST(const char *path, uid_t uid, gid_t gid), UV_LIST(path, uid, gid))  \
	X(uv_fs_fchown, UV_LIST(int file, uid_t uid, gid_t gid), UV_LIST(file, uid, gid))         \
	X(uv_fs_lchown, UV_LIST(const char *path, uid_t uid, gid_t gid), UV_LIST(path, uid, gid)) \
	X(uv_fs_statfs, UV_LIST(const char *path), UV_LIST(path))

#define UV_FS_DECLARE(name, params, args) int name(void *loop, void *req, params, uv_object_cb cb);
UV_FS(UV_FS_DECLARE)
#undef UV_FS_DECLARE

/* All functions above but those of UV_FS, by name. */
#define UV_FUNCTIONS(X)            \
	X(uv_timer_init)           \
	X(uv_idle_init)            \
	X(uv_prepare_init)         \
	X(uv_check_init)           \
	X(uv_signal_init)          \
	X(uv_fs_event_init)        \
	X(uv_fs_poll_init)         \
	X(uv_tcp_init)             \
	X(uv_tcp_init_ex)          \
	X(uv_udp_init)             \
	X(uv_udp_init_ex)          \
	X(uv_pipe_init)            \
	X(uv_poll_init)            \
	X(uv_poll_init_socket)     \
	X(uv_tty_init)             \
	X(uv_timer_start)          \
	X(uv_async_init)           \
	X(uv_async_send)           \
	X(uv_idle_start)           \
	X(uv_prepare_start)        \
	X(uv_check_start)          \
	X(uv_poll_start)           \
	X(uv_signal_start)         \
	X(uv_signal_start_oneshot) \
	X(uv_fs_event_start)       \
	X(uv_fs_poll_start)        \
	X(uv_listen)               \
	X(uv_read_start)           \
	X(uv_udp_recv_start)       \
	X(uv_spawn)                \
	X(uv_close)                \
	X(uv_tcp_close_reset)      \
	X(uv_write)                \
	X(uv_write2)               \
	X(uv_shutdown)             \
	X(uv_tcp_connect)          \
	X(uv_pipe_connect)         \
	X(uv_pipe_connect2)        \
	X(uv_udp_send)             \
	X(uv_getaddrinfo)          \
	X(uv_getnameinfo)          \
	X(uv_random)               \
	X(uv_queue_work)           \
	X(uv_run)                  \
	X(uv_loop_close)           \
	X(uv_walk)                 \
	X(uv_backend_fd)           \
	X(uv_is_active)            \
	X(uv_now)                  \
	X(uv_handle_get_loop)      \
	X(uv_handle_get_type)      \
	X(uv_timer_get_repeat)     \
	X(uv_loop_size)            \
	X(uv_stream_get_write_queue_size)

#endif
