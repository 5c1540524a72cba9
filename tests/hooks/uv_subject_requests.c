/* Streams, datagrams, files and the thread pool. */
#include "uv_subject.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* --------------------------------------------------------- streams */

static char space[65536];
static unsigned echoes;
static const char *read_name, *alloc_name, *write_name;

static void on_alloc(uv_handle_t *h, size_t size, uv_buf_t *buf)
{
	(void)size;
	check_data(h->data);
	count(alloc_name);
	*buf = uv_buf_init(space, sizeof(space));
}

static void never_alloc(uv_handle_t *h, size_t size, uv_buf_t *buf)
{
	(void)h;
	(void)size;
	(void)buf;
	on_never(NULL);
}

static uv_write_t write_req;
static uv_shutdown_t shutdown_req;
static uv_connect_t connect_req;

static void on_shutdown(uv_shutdown_t *req, int status)
{
	check_data(req->data);
	count(strcmp(read_name, "uv_tcp read") ? "uv_pipe shutdown" : "uv_tcp shutdown");
	printf("shutdown %d\n", status);
}

static void on_write(uv_write_t *req, int status)
{
	check_data(req->data);
	count(write_name);
	if (status)
		printf("write %d\n", status);
	/* The same request, in its own callback. */
	if (++echoes < 20) {
		uv_buf_t buf = uv_buf_init("again", 5);

		if (echoes % 2)
			MUST(uv_write(req, req->handle, &buf, 1, on_write));
		else
			MUST(uv_write2(req, req->handle, &buf, 1, NULL, on_write));
		return;
	}
	shutdown_req.data = &mark;
	MUST(uv_shutdown(&shutdown_req, req->handle, on_shutdown));
}

static size_t got;

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	check_data(s->data);
	count(read_name);
	if (n > 0 && buf->base != space)
		printf("failed: another buffer\n");
	if (n > 0)
		got += (size_t)n;
	if (n < 0) {
		printf("got %zu bytes, then %d\n", got, (int)n);
		shut(s);
	}
}

static void never_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	(void)s;
	(void)n;
	(void)buf;
	on_never(NULL);
}

static uv_stream_t *listener, *client;
static uv_handle_type stream_type;

static void on_connection(uv_stream_t *server, int status)
{
	uv_stream_t *s = new_handle(stream_type);

	count(stream_type == UV_TCP ? "uv_tcp connection" : "uv_pipe connection");
	printf("connection %d\n", status);
	if (stream_type == UV_TCP)
		MUST(uv_tcp_init(loop, (uv_tcp_t *)s));
	else
		MUST(uv_pipe_init(loop, (uv_pipe_t *)s, 0));
	MUST(uv_accept(server, s));
	MUST(uv_read_start(s, on_alloc, on_read));
	printf("read twice: %d\n", uv_read_start(s, never_alloc, never_read));
	shut(server);
}

static void on_client_read(uv_stream_t *s, ssize_t n, const uv_buf_t *buf)
{
	(void)buf;
	count(read_name);
	if (n < 0)
		shut(s);
}

static void on_connect(uv_connect_t *req, int status)
{
	uv_buf_t buf = uv_buf_init("hello", 5);

	check_data(req->data);
	count(stream_type == UV_TCP ? "uv_tcp connect" : "uv_pipe connect");
	printf("connect %d\n", status);
	write_req.data = &mark;
	MUST(uv_read_start(req->handle, on_alloc, on_client_read));
	MUST(uv_write(&write_req, req->handle, &buf, 1, on_write));
}

void tcp(void)
{
	struct sockaddr_in addr;
	int size = sizeof(addr);

	stream_type = UV_TCP;
	read_name = "uv_tcp read";
	alloc_name = "uv_tcp alloc";
	write_name = "uv_tcp write";
	echoes = 0;
	got = 0;
	listener = new_handle(UV_TCP);
	client = new_handle(UV_TCP);
	connect_req.data = &mark;
	MUST(uv_tcp_init(loop, (uv_tcp_t *)listener));
	MUST(uv_tcp_init(loop, (uv_tcp_t *)client));
	printf("read unconnected: %d\n", uv_read_start(client, never_alloc, never_read));
	MUST(uv_ip4_addr("127.0.0.1", 0, &addr));
	MUST(uv_tcp_bind((uv_tcp_t *)listener, (struct sockaddr *)&addr, 0));
	MUST(uv_listen(listener, 16, on_connection));
	MUST(uv_tcp_getsockname((uv_tcp_t *)listener, (struct sockaddr *)&addr, &size));
	MUST(uv_tcp_connect(&connect_req, (uv_tcp_t *)client, (struct sockaddr *)&addr,
			    on_connect));
	uv_run(loop, UV_RUN_DEFAULT);
}

void pipes(void)
{
	stream_type = UV_NAMED_PIPE;
	read_name = "uv_pipe read";
	alloc_name = "uv_pipe alloc";
	write_name = "uv_pipe write";
	echoes = 0;
	got = 0;
	listener = new_handle(UV_NAMED_PIPE);
	client = new_handle(UV_NAMED_PIPE);
	MUST(uv_pipe_init(loop, (uv_pipe_t *)listener, 0));
	MUST(uv_pipe_init(loop, (uv_pipe_t *)client, 0));
	MUST(uv_pipe_bind((uv_pipe_t *)listener, in_folder("pipe")));
	MUST(uv_listen(listener, 16, on_connection));
	uv_pipe_connect(&connect_req, (uv_pipe_t *)client, in_folder("pipe"), on_connect);
	uv_run(loop, UV_RUN_DEFAULT);
}

static void on_refused(uv_connect_t *req, int status)
{
	count("uv_tcp connect");
	printf("refused %d\n", status == UV_ECONNREFUSED || status == UV_ECANCELED);
	if (status == UV_ECONNREFUSED)
		MUST(uv_tcp_close_reset((uv_tcp_t *)req->handle, on_close));
}

/* A connection to nobody, and one that is closed before it is there. */
void resets(void)
{
	uv_tcp_t *refused = new_handle(UV_TCP), *cancelled = new_handle(UV_TCP);
	uv_tcp_t *quiet = calloc(1, sizeof(*quiet));
	static uv_connect_t second;
	struct sockaddr_in addr;

	MUST(uv_ip4_addr("127.0.0.1", 1, &addr));
	MUST(uv_tcp_init(loop, refused));
	MUST(uv_tcp_init(loop, cancelled));
	MUST(uv_tcp_init(loop, quiet));
	MUST(uv_tcp_connect(&connect_req, refused, (struct sockaddr *)&addr, on_refused));
	MUST(uv_tcp_connect(&second, cancelled, (struct sockaddr *)&addr, on_refused));
	shut(cancelled);
	uv_close((uv_handle_t *)quiet, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	free(quiet);
}

static uv_udp_send_t send_req;

static void on_send(uv_udp_send_t *req, int status)
{
	check_data(req->data);
	count("uv_udp_send");
	printf("send %d\n", status);
	shut(req->handle);
}

static void on_recv(uv_udp_t *h, ssize_t n, const uv_buf_t *buf, const struct sockaddr *addr,
		    unsigned flags)
{
	(void)buf;
	(void)flags;
	count("uv_udp read");
	if (addr) {
		printf("received %d\n", (int)n);
		uv_udp_recv_stop(h);
		shut(h);
	}
}

void udp(void)
{
	uv_udp_t *from = new_handle(UV_UDP), *to = new_handle(UV_UDP);
	uv_buf_t buf = uv_buf_init("datagram", 8);
	struct sockaddr_in addr;
	int size = sizeof(addr);

	alloc_name = "uv_udp alloc";
	send_req.data = &mark;
	MUST(uv_udp_init(loop, from));
	MUST(uv_udp_init(loop, to));
	MUST(uv_ip4_addr("127.0.0.1", 0, &addr));
	MUST(uv_udp_bind(to, (struct sockaddr *)&addr, 0));
	MUST(uv_udp_getsockname(to, (struct sockaddr *)&addr, &size));
	MUST(uv_udp_recv_start(to, on_alloc, on_recv));
	MUST(uv_udp_send(&send_req, from, &buf, 1, (struct sockaddr *)&addr, on_send));
	uv_run(loop, UV_RUN_DEFAULT);
}

/* ------------------------------------------------------ file system */

static uv_fs_t fs;
static unsigned step;
static uv_file file, file2;
static uv_dir_t *dir;
static char made_dir[300], made_file[300];
static uv_buf_t content, read_into;

static void next_fs(void);

static const char *fs_name;

static void on_fs(uv_fs_t *req)
{
	check_data(req->data);
	count(fs_name);
	printf("%s %s\n", fs_name, req->result < 0 ? uv_err_name((int)req->result) : "done");
	if (!strcmp(fs_name, "uv_fs_open") && req->result >= 0)
		*(file >= 0 ? &file2 : &file) = (uv_file)req->result;
	if (!strcmp(fs_name, "uv_fs_mkdtemp"))
		snprintf(made_dir, sizeof(made_dir), "%s", req->path);
	if (!strcmp(fs_name, "uv_fs_mkstemp")) {
		snprintf(made_file, sizeof(made_file), "%s", req->path);
		close((int)req->result);
	}
	if (!strcmp(fs_name, "uv_fs_opendir"))
		dir = req->ptr;
	uv_fs_req_cleanup(req);
	next_fs();
}

#define STEP(function, ...)                                      \
	case __COUNTER__ - FIRST:                                \
		fs_name = #function;                             \
		MUST(function(loop, &fs, ##__VA_ARGS__, on_fs)); \
		return

/* Always the same request, started in its own callback. */
static void next_fs(void)
{
	static uv_dirent_t entries[4];
	enum { FIRST = __COUNTER__ + 1 };

	switch (step++) {
		STEP(uv_fs_open, in_folder("file"), O_RDWR | O_CREAT, 0600);
		STEP(uv_fs_write, file, &content, 1, 0);
		STEP(uv_fs_read, file, &read_into, 1, 0);
		STEP(uv_fs_fstat, file);
		STEP(uv_fs_fsync, file);
		STEP(uv_fs_fdatasync, file);
		STEP(uv_fs_ftruncate, file, 4);
		STEP(uv_fs_fchmod, file, 0640);
		STEP(uv_fs_fchown, file, getuid(), getgid());
		STEP(uv_fs_futime, file, 1000.5, 2000.5);
		STEP(uv_fs_open, in_folder("file2"), O_RDWR | O_CREAT, 0600);
		STEP(uv_fs_sendfile, file2, file, 0, 4);
		STEP(uv_fs_close, file);
		STEP(uv_fs_copyfile, in_folder("file"), in_folder("copy"), 0);
		STEP(uv_fs_stat, in_folder("file"));
		STEP(uv_fs_lstat, in_folder("missing"));
		STEP(uv_fs_statfs, folder);
		STEP(uv_fs_access, in_folder("file"), R_OK);
		STEP(uv_fs_chmod, in_folder("file"), 0600);
		STEP(uv_fs_chown, in_folder("file"), getuid(), getgid());
		STEP(uv_fs_lchown, in_folder("file"), getuid(), getgid());
		STEP(uv_fs_utime, in_folder("file"), 1.0, 2.0);
		STEP(uv_fs_lutime, in_folder("file"), 3.0, 4.0);
		STEP(uv_fs_link, in_folder("file"), in_folder("link"));
		STEP(uv_fs_symlink, in_folder("file"), in_folder("symlink"), 0);
		STEP(uv_fs_readlink, in_folder("symlink"));
		STEP(uv_fs_realpath, in_folder("symlink"));
		STEP(uv_fs_rename, in_folder("copy"), in_folder("renamed"));
		STEP(uv_fs_mkdir, in_folder("made"), 0700);
		STEP(uv_fs_rmdir, in_folder("made"));
		STEP(uv_fs_mkdtemp, in_folder("tmpXXXXXX"));
		STEP(uv_fs_rmdir, made_dir);
		STEP(uv_fs_mkstemp, in_folder("tmpXXXXXX"));
		STEP(uv_fs_unlink, made_file);
		STEP(uv_fs_scandir, folder, 0);
		STEP(uv_fs_opendir, folder);
	case __COUNTER__ - FIRST:
		dir->dirents = entries;
		dir->nentries = 4;
		fs_name = "uv_fs_readdir";
		MUST(uv_fs_readdir(loop, &fs, dir, on_fs));
		return;
		STEP(uv_fs_closedir, dir);
	default:
		break;
	}
}

void files(void)
{
	static char text[] = "content", into[16];
	uv_fs_t at_once;

	file = file2 = -1;
	content = uv_buf_init(text, sizeof(text));
	read_into = uv_buf_init(into, sizeof(into));
	/* Without a callback: done when it returns. */
	printf("stat at once: %d\n", uv_fs_stat(NULL, &at_once, folder, NULL));
	uv_fs_req_cleanup(&at_once);
	printf("stat of nothing at once: %d\n",
	       uv_fs_stat(NULL, &at_once, in_folder("missing"), NULL));
	uv_fs_req_cleanup(&at_once);
	fs.data = &mark;
	next_fs();
	uv_run(loop, UV_RUN_DEFAULT);
	close(file2);
	printf("read back %s, %u steps\n", into, step);
}

/* ------------------------------------------------------------- pool */

static uv_work_t works[8];
static uv_barrier_t pool_gate;

static void on_work(uv_work_t *req)
{
	check_data(req->data);
	count("uv_work");
}

static void on_blocker(uv_work_t *req)
{
	(void)req;
	count("uv_work");
	uv_barrier_wait(&pool_gate);
}

static void on_after_work(uv_work_t *req, int status)
{
	check_data(req->data);
	count("uv_after_work");
	printf("work %d\n", status);
	if (req == &works[0] && !status) { /* once more, in its own callback */
		works[7].data = &mark;
		MUST(uv_queue_work(loop, &works[7], on_work, NULL));
	}
}

static void on_getaddrinfo(uv_getaddrinfo_t *req, int status, struct addrinfo *res)
{
	check_data(req->data);
	count("uv_getaddrinfo");
	printf("getaddrinfo %d %d\n", status, res != NULL);
	uv_freeaddrinfo(res);
}

static void on_getnameinfo(uv_getnameinfo_t *req, int status, const char *host, const char *service)
{
	check_data(req->data);
	count("uv_getnameinfo");
	printf("getnameinfo %d %s %s\n", status, host, service);
}

static char random_bytes[32];

static void on_random(uv_random_t *req, int status, void *buf, size_t size)
{
	check_data(req->data);
	count("uv_random");
	printf("random %d %d %d\n", status, buf == random_bytes, size == sizeof(random_bytes));
}

void pool(void)
{
	uv_getaddrinfo_t ai = {.data = &mark}, sync = {.data = &mark};
	uv_getnameinfo_t ni = {.data = &mark};
	uv_random_t r = {.data = &mark};
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
	struct sockaddr_in addr;

	MUST(uv_ip4_addr("127.0.0.1", 80, &addr));
	printf("work without callback: %d\n", uv_queue_work(loop, &works[0], NULL, on_after_work));
	MUST(uv_barrier_init(&pool_gate, 5));
	/* Four threads are kept busy, so that the fifth work waits and can be cancelled. */
	for (int i = 0; i < 6; i++) {
		works[i].data = &mark;
		MUST(uv_queue_work(loop, &works[i], i < 4 ? on_blocker : on_work, on_after_work));
	}
	MUST(uv_cancel((uv_req_t *)&works[4]));
	uv_barrier_wait(&pool_gate);
	/* One after the other: the pool has no order of its own. */
	uv_run(loop, UV_RUN_DEFAULT);
	MUST(uv_getaddrinfo(loop, &ai, on_getaddrinfo, "127.0.0.1", "80", &hints));
	uv_run(loop, UV_RUN_DEFAULT);
	printf("getaddrinfo at once: %d\n",
	       uv_getaddrinfo(loop, &sync, NULL, "127.0.0.1", "80", &hints));
	uv_freeaddrinfo(sync.addrinfo);
	printf("getaddrinfo of nothing: %d\n",
	       uv_getaddrinfo(loop, &sync, on_getaddrinfo, NULL, NULL, NULL));
	MUST(uv_getnameinfo(loop, &ni, on_getnameinfo, (struct sockaddr *)&addr,
			    NI_NUMERICHOST | NI_NUMERICSERV));
	uv_run(loop, UV_RUN_DEFAULT);
	MUST(uv_random(loop, &r, random_bytes, sizeof(random_bytes), 0, on_random));
	printf("random at once: %d\n", uv_random(NULL, NULL, random_bytes, 4, 0, NULL));
	uv_run(loop, UV_RUN_DEFAULT);
	uv_barrier_destroy(&pool_gate);
}
