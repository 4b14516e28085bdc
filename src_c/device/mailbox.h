/* A queue of messages between threads, with room for so many. */
#ifndef UNDERSTUDY_MAILBOX_H
#define UNDERSTUDY_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Mailbox Mailbox;
typedef enum MailStatus { MAIL_DONE, MAIL_EXPIRED, MAIL_STOPPED } MailStatus;

Mailbox *us_mailbox_create(size_t capacity); /* NULL: no memory */
/* Nobody may use it any more; `end` gets the messages that are left. */
void us_mailbox_destroy(Mailbox *mailbox, void (*end)(void *message));

/* Wait for room, or for a message. timeout in microseconds: 0 does not wait, negative waits without limit. A message that
 * could not be put stays the caller's. */
MailStatus us_mailbox_put(Mailbox *mailbox, void *message, int64_t timeout_us);
MailStatus us_mailbox_take(Mailbox *mailbox, void **message, int64_t timeout_us);
size_t us_mailbox_count(Mailbox *mailbox);
void us_mailbox_clear(Mailbox *mailbox, void (*end)(void *message));
void us_mailbox_stop(Mailbox *mailbox); /* whoever waits, now or later, is told so */

#endif
