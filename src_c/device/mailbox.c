#include "device/mailbox.h"

#include "device/stream_internal.h"

#include <stdlib.h>

struct Mailbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopped;
    size_t capacity, first, count;
    void *messages[];
};

Mailbox *us_mailbox_create(size_t capacity)
{
    Mailbox *mailbox = capacity <= SIZE_MAX / 16 ? calloc(1, sizeof *mailbox + capacity * sizeof(void *)) : NULL;
    if (mailbox != NULL) {
        mailbox->capacity = capacity;
        pthread_mutex_init(&mailbox->lock, NULL);
        us_condition_init(&mailbox->changed);
    }
    return mailbox;
}

void us_mailbox_destroy(Mailbox *mailbox, void (*end)(void *message))
{
    us_mailbox_clear(mailbox, end);
    pthread_cond_destroy(&mailbox->changed);
    pthread_mutex_destroy(&mailbox->lock);
    free(mailbox);
}

/* With the lock held: until there are other than `count` messages. */
static MailStatus wait_while(Mailbox *mailbox, size_t count, int64_t timeout_us)
{
    struct timespec deadline = us_deadline(timeout_us > 0 ? (uint64_t)timeout_us * 1000 : 0);
    bool expired = timeout_us == 0;
    while (!mailbox->stopped && mailbox->count == count && !expired) {
        if (timeout_us < 0) {
            pthread_cond_wait(&mailbox->changed, &mailbox->lock);
        } else {
            expired = pthread_cond_timedwait(&mailbox->changed, &mailbox->lock, &deadline) != 0;
        }
    }
    return mailbox->stopped ? MAIL_STOPPED : mailbox->count == count ? MAIL_EXPIRED : MAIL_DONE;
}

MailStatus us_mailbox_put(Mailbox *mailbox, void *message, int64_t timeout_us)
{
    pthread_mutex_lock(&mailbox->lock);
    MailStatus status = wait_while(mailbox, mailbox->capacity, timeout_us);
    if (status == MAIL_DONE) {
        mailbox->messages[(mailbox->first + mailbox->count++) % mailbox->capacity] = message;
        pthread_cond_broadcast(&mailbox->changed);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return status;
}

/* With the lock held, of a mailbox that is not empty. */
static void *take_first(Mailbox *mailbox)
{
    void *message = mailbox->messages[mailbox->first];
    mailbox->first = (mailbox->first + 1) % mailbox->capacity;
    mailbox->count--;
    pthread_cond_broadcast(&mailbox->changed);
    return message;
}

MailStatus us_mailbox_take(Mailbox *mailbox, void **message, int64_t timeout_us)
{
    pthread_mutex_lock(&mailbox->lock);
    MailStatus status = wait_while(mailbox, 0, timeout_us);
    if (status == MAIL_DONE) {
        *message = take_first(mailbox);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return status;
}

size_t us_mailbox_count(Mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    size_t count = mailbox->count;
    pthread_mutex_unlock(&mailbox->lock);
    return count;
}

void us_mailbox_clear(Mailbox *mailbox, void (*end)(void *message))
{
    pthread_mutex_lock(&mailbox->lock);
    while (mailbox->count > 0) {
        end(take_first(mailbox));
    }
    pthread_mutex_unlock(&mailbox->lock);
}

void us_mailbox_stop(Mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->stopped = true;
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
}
