/* Replaces OpenMP, the environment and mutexes for the bundled oneDNN and OpenBLAS.
 *
 * The process has one thread pool, the host's, and these libraries are called from inside it, so each of them shall
 * see one thread. Limiting their own pools would not do: an OpenMP runtime that was used before fork()
 * hangs in the child, OpenBLAS starts its threads when it is opened, and both would follow variables that the user
 * meant for NumPy or PyTorch. The bundling step renames their references to the functions below (see
 * cmake/bundle.py), which no other library of the process can then answer. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int dovetail_omp_get_max_threads(void) { return 1; }
int dovetail_omp_get_num_threads(void) { return 1; }
int dovetail_omp_get_thread_num(void) { return 0; }
int dovetail_omp_get_num_procs(void) { return 1; }
int dovetail_omp_in_parallel(void) { return 0; }
void dovetail_omp_set_num_threads(int n) { (void)n; }

/* A team of one: the caller runs the region itself, barriers and critical sections are free. */
void dovetail_GOMP_barrier(void) {}
void dovetail_GOMP_critical_start(void) {}
void dovetail_GOMP_critical_end(void) {}
void dovetail_GOMP_loop_end(void) {}
void dovetail_GOMP_loop_end_nowait(void) {}
void dovetail_GOMP_parallel_end(void) {}
void dovetail_GOMP_parallel_start(void (*fn)(void*), void* data, unsigned threads) {
  (void)fn, (void)data, (void)threads; /* the compiler's code calls fn itself after this */
}
void dovetail_GOMP_parallel(void (*fn)(void*), void* data, unsigned threads, unsigned flags) {
  (void)threads, (void)flags;
  fn(data);
}
bool dovetail_GOMP_loop_static_start(long start, long end, long step, long chunk, long* from, long* to) {
  (void)chunk;
  *from = start, *to = end;
  return step > 0 ? start < end : start > end;
}
bool dovetail_GOMP_loop_static_next(long* from, long* to) {
  (void)from, (void)to;
  return false;
}

/* OpenBLAS: one thread, and the kernels of the level that DOVETAIL_CPU_CAPABILITY asks for. */
static char* openblas_core(void) {
  const char* level = getenv("DOVETAIL_CPU_CAPABILITY");
  if (!level) return NULL;
#if defined(__x86_64__)
  static char sse[] = "Nehalem", avx2[] = "Haswell";
  if (!strcmp(level, "default")) return sse;
  if (!strcmp(level, "avx2")) return avx2;
#elif defined(__aarch64__)
  static char neon[] = "ARMV8"; /* without SVE and bfloat16 */
  if (!strcmp(level, "default")) return neon;
#endif
  return NULL;
}
char* dovetail_getenv(const char* name) {
  static char one[] = "1";
  if (strstr(name, "NUM_THREADS")) return one;
  char* core = strcmp(name, "OPENBLAS_CORETYPE") ? NULL : openblas_core();
  return core ? core : getenv(name);
}

/* OpenBLAS keeps a list of buffers behind a mutex for which fork() does not wait: a child forked while another
 * thread held it hangs in its first product. Each critical section is short and none waits for another thread, so
 * that one mutex, for which fork() does wait, can stand for all of OpenBLAS's. Recursive: they may be nested, and
 * OpenBLAS's own handler of fork() takes one. */
static const pthread_mutex_t unlocked = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t section = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void before_fork(void) { pthread_mutex_lock(&section); }
static void in_parent(void) { pthread_mutex_unlock(&section); }
static void in_child(void) { section = unlocked; } /* its owner was a thread of the parent */
__attribute__((constructor)) static void make_fork_wait(void) { pthread_atfork(before_fork, in_parent, in_child); }

int dovetail_pthread_mutex_lock(pthread_mutex_t* any) {
  (void)any;
  return pthread_mutex_lock(&section);
}
int dovetail_pthread_mutex_unlock(pthread_mutex_t* any) {
  (void)any;
  return pthread_mutex_unlock(&section);
}
