/* A library that a plugin needs, in a folder where the system does not look. */
__attribute__((visibility("default"))) int needed_number(void) { return 42; }
