#include "core/trigger.h"

#include <string.h>

#include "base/sys.h"
#include "core/control.h"
#include "core/define.h"
#include "core/record.h"
#include "core/testpoint.h"
#include "tacho.h"

void tacho__wake_agent(void)
{
	struct tacho_box_control *c = tacho__rec->control;

	__atomic_fetch_add(&c->wake_seq, 1, __ATOMIC_RELEASE);
	TACHO__SYS(SYS_futex, &c->wake_seq, 1 /* FUTEX_WAKE */, INT32_MAX, 0, 0, 0);
}

static uint32_t store(const char *name, const char *reason, uint32_t flags, uint64_t value)
{
	size_t size = strnlen(reason, TACHO_REASON_MAX + 1);
	uint32_t id = tacho__define_name(TACHO_DEF_TEXT, name, NULL, 0, 0, 0, NULL);
	uint32_t number =
		__atomic_add_fetch(&tacho__rec->super->trigger_count, 1, __ATOMIC_RELAXED);
	struct tacho_box_trigger *t = &tacho__rec->triggers[(number - 1) % TACHO_TRIGGERS];
	uint64_t word = number;
	uint64_t ticks = tacho__record_slow(tacho_record_head(TACHO_REC_TRIGGER, id), &word, 1,
					    tacho__frame());

	__atomic_store_n(&t->number, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	TACHO_TESTPOINT("trigger-cleared");
	t->tid = (uint32_t)tacho__gettid();
	t->ticks = ticks ? ticks : tacho__ticks();
	t->flags = flags | (size > TACHO_REASON_MAX ? TACHO_DEF_CUT : 0);
	t->size = (uint32_t)(size > TACHO_REASON_MAX ? TACHO_REASON_MAX : size);
	t->value = value;
	TACHO_TESTPOINT("trigger-described");
	memcpy(t->reason, reason, t->size);
	__atomic_store_n(&t->number, number, __ATOMIC_RELEASE);
	tacho__wake_agent();
	return number;
}

uint32_t tacho__trigger(const char *name, const char *reason, uint32_t flags, uint64_t value)
{
	uint32_t number = 0;
	uint64_t mask;

	if (tacho__enter(&mask))
		number = store(name, reason, flags, value);
	tacho__leave(mask);
	return number;
}

uint32_t tacho_trigger(const char *reason)
{
	return tacho__recording() ? tacho__trigger(reason, reason, 0, 0) : 0;
}
