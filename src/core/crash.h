/* The crash handler. */
#ifndef TACHO_CORE_CRASH_H
#define TACHO_CORE_CRASH_H

/* Says in a new box how the crash handler stands. */
void tacho__crash_describe(void);

#endif
