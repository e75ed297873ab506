/* The program at the front of an AppImage: it shows the files behind it as a folder and starts AppRun in there.
 *
 * Follows the AppImage specification, type 2 (the bytes "AI\2" in the header are put in by build.sh). Linked statically
 * with squashfuse, libfuse 3 and zstd, so that it starts on every x86-64 Linux: build.sh has the command. Where nothing
 * can be mounted (no /dev/fuse, no fusermount3) the files are unpacked for the time of the run and removed afterwards.
 *
 *   --appimage-offset            where the files begin, in bytes
 *   --appimage-extract [FOLDER]  unpack them, into squashfs-root unless told otherwise
 *   --appimage-extract-and-run   unpack and run, even where mounting works; as APPIMAGE_EXTRACT_AND_RUN=1 does
 *   --appimage-mount             mount them, say where, and wait to be ended
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <squashfuse/config.h>
#include <squashfuse/ll.h>

/* Our files are packed with zstd. These stand for the other ways of packing, one of which is under the GPL. */
int lzo1x_decompress_safe(const void * in, size_t n_in, void * out, size_t * n_out, void * work);
int lzo1x_decompress_safe(const void * in, size_t n_in, void * out, size_t * n_out, void * work) {
    (void) in, (void) n_in, (void) out, (void) n_out, (void) work;
    return -1;
}
int LZ4_decompress_safe(const char * in, char * out, int n_in, int n_out);
int LZ4_decompress_safe(const char * in, char * out, int n_in, int n_out) {
    (void) in, (void) out, (void) n_in, (void) n_out;
    return -1;
}
int lzma_stream_buffer_decode(void);
int lzma_stream_buffer_decode(void) {
    return -1;
}
int uncompress(void);
int uncompress(void) {
    return -1;
}

static char self[PATH_MAX];   /* this file, links resolved */
static char folder[PATH_MAX]; /* where its contents are seen */

static int is_unpacked;       /* into `folder`, which goes when the run is over */

static int remove_one(const char * path, const struct stat * about, int kind, struct FTW * place) {
    (void) about, (void) kind, (void) place;
    return remove(path);
}

static void fail(const char * words) {
    fprintf(stderr, "AppImage: %s%s%s\n", words, errno ? ": " : "", errno ? strerror(errno) : "");
    if (is_unpacked) {
        nftw(folder, remove_one, 32, FTW_DEPTH | FTW_PHYS);
    }
    exit(127);
}

/* Where the program ends and the files begin: behind the table of sections, which linkers put last. */
static size_t offset_of_files(void) {
    Elf64_Ehdr head;
    const int fd = open(self, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &head, sizeof(head)) != (ssize_t) sizeof(head)) {
        fail("cannot read its own file");
    }
    close(fd);
    return head.e_shoff + (size_t) head.e_shentsize * head.e_shnum;
}

/* A new folder of ours alone, below where the system keeps such. */
static void make_folder(const char * below, const char * name) {
    if (snprintf(folder, sizeof(folder), "%s/%sXXXXXX", below, name) >= (int) sizeof(folder) || !mkdtemp(folder)) {
        fail("cannot make a folder for its contents");
    }
}

static const char * temporary(void) {
    const char * set = getenv("TMPDIR");
    return set && *set == '/' ? set : "/tmp";
}

/* ---- unpacked */

static void write_file(sqfs * fs, sqfs_inode * inode, const char * path) {
    static char piece[1 << 20];
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, inode->base.mode & 0777);
    if (fd < 0) {
        fail(path);
    }
    for (uint64_t at = 0; at < inode->xtra.reg.file_size;) {
        sqfs_off_t n_read = sizeof(piece);
        if (sqfs_read_range(fs, inode, (sqfs_off_t) at, &n_read, piece) || n_read <= 0) {
            fail("its contents are damaged. Download it again");
        }
        for (sqfs_off_t done = 0; done < n_read;) {
            const ssize_t n_written = write(fd, piece + done, (size_t) (n_read - done));
            if (n_written < 0) {
                fail(path); /* the disk is full, most likely */
            }
            done += n_written;
        }
        at += (uint64_t) n_read;
    }
    close(fd);
}

static void unpack(const char * destination) {
    sqfs fs;
    sqfs_traverse walk;
    sqfs_err error = SQFS_OK;
    memset(&fs, 0, sizeof(fs));
    if (sqfs_open_image(&fs, self, offset_of_files()) || sqfs_traverse_open(&walk, &fs, sqfs_inode_root(&fs))) {
        fail("its contents are damaged. Download it again");
    }
    while (sqfs_traverse_next(&walk, &error)) {
        char path[PATH_MAX], target[PATH_MAX];
        size_t n_target = sizeof(target);
        sqfs_inode inode;
        if (walk.dir_end) {
            continue;
        }
        if (snprintf(path, sizeof(path), "%s/%s", destination, walk.path) >= (int) sizeof(path) ||
            sqfs_inode_get(&fs, &inode, sqfs_dentry_inode(&walk.entry))) {
            fail("its contents are damaged. Download it again");
        }
        if (S_ISDIR(inode.base.mode) ? mkdir(path, 0755) : 0) {
            fail(path);
        } else if (S_ISLNK(inode.base.mode)) {
            if (sqfs_readlink(&fs, &inode, target, &n_target) || symlink(target, path)) {
                fail(path);
            }
        } else if (S_ISREG(inode.base.mode)) {
            write_file(&fs, &inode, path);
        }
    }
    if (error) {
        fail("its contents are damaged. Download it again");
    }
    sqfs_traverse_close(&walk);
    sqfs_destroy(&fs);
}

/* ---- mounted */

static volatile sig_atomic_t is_ending = 0;

static void on_signal(int number) {
    (void) number;
    is_ending = 1;
}

/* Serves the files until nobody holds the other end of `alive` any more. One byte goes to `ready` when they are there;
 * it is closed without one when they cannot be mounted. */
static void serve(int ready, int alive) {
    struct fuse_lowlevel_ops ops = {
        .getattr = sqfs_ll_op_getattr, .opendir = sqfs_ll_op_opendir, .releasedir = sqfs_ll_op_releasedir,
        .readdir = sqfs_ll_op_readdir, .lookup = sqfs_ll_op_lookup, .open = sqfs_ll_op_open,
        .create = sqfs_ll_op_create, .release = sqfs_ll_op_release, .read = sqfs_ll_op_read,
        .readlink = sqfs_ll_op_readlink, .listxattr = sqfs_ll_op_listxattr, .getxattr = sqfs_ll_op_getxattr,
        .forget = sqfs_ll_op_forget, .statfs = stfs_ll_op_statfs,
    };
    char * words[] = {"dflash-desktop", "-oro,nodev,nosuid,subtype=squashfuse", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(2, words);
    struct fuse_buf buffer = {.mem = NULL};
    sqfs_ll_chan channel;
    sqfs_ll * files = sqfs_ll_open(self, offset_of_files());
    if (!files || sqfs_ll_mount(&channel, folder, &args, &ops, sizeof(ops), files) != SQFS_OK) {
        _exit(1);
    }
    (void) !write(ready, "", 1);
    close(ready);
    struct pollfd ends[2] = {{.fd = fuse_session_fd(channel.session), .events = POLLIN}, {.fd = alive, .events = POLLIN}};
    while (!fuse_session_exited(channel.session) && !is_ending) {
        if (poll(ends, 2, -1) < 0 && errno != EINTR) {
            break;
        }
        if (ends[0].revents) {
            const int n_read = fuse_session_receive_buf(channel.session, &buffer);
            if (n_read > 0) {
                fuse_session_process_buf(channel.session, &buffer);
            } else if (n_read != -EINTR && n_read != -EAGAIN) {
                break;
            }
        } else if (ends[1].revents) {
            break;
        }
    }
    sqfs_ll_unmount(&channel, folder);
    rmdir(folder);
    _exit(0);
}

/* Start serving, in a process of its own. 0 when the files cannot be mounted here. */
static int mount_files(void) {
    int ready[2], alive[2];
    make_folder(temporary(), ".mount_dflash-");
    if (pipe(ready) || pipe(alive)) { /* `alive` is handed on to the program: it closes with the last one that has it */
        fail("cannot start");
    }
    const pid_t server = fork();
    if (server < 0) {
        fail("cannot start");
    }
    if (server == 0) {
        close(ready[0]), close(alive[1]);
        (void) !chdir("/"); /* so that no other file system is held up */
        setsid();           /* Ctrl+C in the terminal is for the program */
        const int quiet = open("/dev/null", O_RDWR);
        if (!getenv("APPIMAGE_DEBUG")) {
            dup2(quiet, 2); /* libfuse complains there; what that means is for us to say */
        }
        dup2(quiet, 0), dup2(quiet, 1);
        struct sigaction action = {.sa_handler = on_signal};
        sigaction(SIGTERM, &action, NULL);
        serve(ready[1], alive[0]);
    }
    char byte;
    close(ready[1]), close(alive[0]);
    const int is_there = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (!is_there) {
        waitpid(server, NULL, 0);
        rmdir(folder);
        close(alive[1]);
    }
    return is_there;
}

/* ---- run */

static void start(char ** argv) {
    char program[PATH_MAX + 8], here[PATH_MAX];
    snprintf(program, sizeof(program), "%s/AppRun", folder);
    setenv("APPIMAGE", self, 1);
    setenv("APPDIR", folder, 1);
    setenv("ARGV0", argv[0], 1);
    if (getcwd(here, sizeof(here))) {
        setenv("OWD", here, 1);
    }
    execv(program, argv);
    fail(program);
}

static pid_t program;

static void pass_on(int number) {
    kill(program, number);
}

static int run_unpacked(char ** argv) {
    make_folder(temporary(), "dflash-desktop-");
    is_unpacked = 1;
    unpack(folder);
    program = fork();
    if (program == 0) {
        is_unpacked = 0; /* the one that waits removes it */
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        start(argv);
    }
    int status = 0;
    signal(SIGINT, SIG_IGN); /* a terminal sends it to both */
    if (program > 0) {
        struct sigaction action = {.sa_handler = pass_on};
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGHUP, &action, NULL);
    }
    while (program < 0 || waitpid(program, &status, 0) < 0) {
        if (errno != EINTR) {
            break;
        }
    }
    nftw(folder, remove_one, 32, FTW_DEPTH | FTW_PHYS);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char ** argv) {
    const char * asked = argc > 1 ? argv[1] : "";
    const char * always = getenv("APPIMAGE_EXTRACT_AND_RUN");
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
        fail("cannot find itself: is /proc mounted?");
    }
    if (!strcmp(asked, "--appimage-offset")) {
        printf("%zu\n", offset_of_files());
        return 0;
    }
    if (!strcmp(asked, "--appimage-extract")) {
        const char * destination = argc > 2 ? argv[2] : "squashfs-root";
        if (mkdir(destination, 0755)) {
            fail(destination);
        }
        unpack(destination);
        puts(destination);
        return 0;
    }
    if (!strcmp(asked, "--appimage-mount")) {
        if (!mount_files()) {
            errno = 0;
            fail("cannot be mounted here: that takes /dev/fuse and fusermount3 (package fuse3)");
        }
        puts(folder);
        fflush(stdout);
        pause();
        return 0;
    }
    if (!strcmp(asked, "--appimage-extract-and-run")) {
        argv[1] = argv[0];
        return run_unpacked(argv + 1);
    }
    if (!(always && !strcmp(always, "1")) && mount_files()) {
        start(argv);
    }
    return run_unpacked(argv);
}
