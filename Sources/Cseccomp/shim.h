#ifndef MARTLET_CSECCOMP_SHIM_H
#define MARTLET_CSECCOMP_SHIM_H
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What needs macros, variadic calls or system calls without a function in the C library: the child's sandbox, and how
   the parent starts a child. Functions give 0 or an errno. */

/* Allows the system call of that name. A name this machine does not know is none it could need. */
static inline int martlet_seccomp_allow(scmp_filter_ctx filter, const char *name) {
  int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR || number < 0) return 0;
  return -seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
}

/* A new thread, not a new process. clone3 hides its flags behind a pointer, where no filter sees them: it is answered
   ENOSYS, and the C library takes clone. */
static inline int martlet_seccomp_allow_threads(scmp_filter_ctx filter) {
  int result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
  return -(result != 0 ? result : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0));
}

/* Signals to itself only: abort() needs them. */
static inline int martlet_seccomp_allow_own_signals(scmp_filter_ctx filter) {
  return -seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
}

/* Naming threads is all that prctl is needed for. */
static inline int martlet_seccomp_allow_thread_names(scmp_filter_ctx filter) {
  return -seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
}

/* Reading limits, not setting them. */
static inline int martlet_seccomp_allow_reading_limits(scmp_filter_ctx filter) {
  return -seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A2(SCMP_CMP_EQ, 0));
}

static inline scmp_filter_ctx martlet_seccomp_new(void) {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  if (filter != NULL) seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
  return filter;
}

/* No new privileges by execve, no core, and no other process of this user reads our memory. */
static inline int martlet_renounce(void) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : errno;
}

static inline int martlet_limit(int resource, unsigned long long value) {
  struct rlimit limit = {value, value};
  return setrlimit((__rlimit_resource_t)resource, &limit) == 0 ? 0 : errno;
}

/* GNU's, which headers show only to _GNU_SOURCE. */
extern int pthread_setattr_default_np(const pthread_attr_t *attributes);

static inline int martlet_thread_stack(size_t bytes) {
  pthread_attr_t attributes;
  int result = pthread_attr_init(&attributes);
  if (result != 0) return result;
  result = pthread_attr_setstacksize(&attributes, bytes);
  if (result == 0) result = pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  return result;
}

enum {
  martlet_limit_address_space = RLIMIT_AS,
  martlet_limit_memory = RLIMIT_DATA,
  martlet_limit_cpu = RLIMIT_CPU,
  martlet_limit_file = RLIMIT_FSIZE,
  martlet_limit_files = RLIMIT_NOFILE,
  martlet_limit_core = RLIMIT_CORE,
};

/* Landlock (Linux 5.13): a ruleset under which only what is then allowed can be opened, or -1 where the kernel has
   none. All the rights the kernel knows are taken away. */
static inline int martlet_landlock_new(void) {
  long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return -1;
  struct landlock_ruleset_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  /* Thirteen rights in version 1; 2 added REFER, 3 TRUNCATE. */
  attributes.handled_access_fs = (1ULL << (version >= 3 ? 15 : version == 2 ? 14 : 13)) - 1;
  return (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
}

static inline int martlet_landlock_allow(int ruleset, const char *path, int writing) {
  long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  struct landlock_path_beneath_attr rule;
  memset(&rule, 0, sizeof rule);
  rule.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  if (writing) {
    rule.allowed_access |=
        LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE;
    if (version >= 3) rule.allowed_access |= 1ULL << 14; /* TRUNCATE, which older headers do not name */
  }
  rule.parent_fd = open(path, O_RDONLY | O_CLOEXEC);
  if (rule.parent_fd < 0) return errno;
  int result = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0 ? 0 : errno;
  close(rule.parent_fd);
  return result;
}

static inline int martlet_landlock_enter(int ruleset) {
  int result = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0 ? 0 : errno;
  close(ruleset);
  return result;
}

/* A pipe that no program started meanwhile inherits. */
static inline int martlet_pipe(int ends[2]) { return syscall(SYS_pipe2, ends, O_CLOEXEC) == 0 ? 0 : errno; }

/* Starts a program with `input` and `output` as its standard input and output, nothing on standard error, no other
   descriptor, a process group of its own and every signal as it is by default. */
static inline int martlet_spawn(pid_t *pid, const char *path, char *const arguments[], char *const environment[],
                                int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  int result = posix_spawn_file_actions_init(&actions);
  if (result != 0) return result;
  result = posix_spawnattr_init(&attributes);
  if (result != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return result;
  }
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  if (result == 0) result = posix_spawn_file_actions_adddup2(&actions, input, 0);
  if (result == 0) result = posix_spawn_file_actions_adddup2(&actions, output, 1);
  if (result == 0) result = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  if (result == 0) result = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  if (result == 0) result = posix_spawnattr_setsigmask(&attributes, &none);
  if (result == 0) result = posix_spawnattr_setsigdefault(&attributes, &all);
  if (result == 0) result = posix_spawnattr_setpgroup(&attributes, 0);
  if (result == 0)
    result = posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  if (result == 0) result = posix_spawn(pid, path, &actions, &attributes, arguments, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return result;
}
#endif
