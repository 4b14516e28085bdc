/* Descriptors of the libraries' own. A program may have closed one of its standard streams: the next file that is opened would
 * get its number, and what the program prints would go there. So ours are always above those three. */
#ifndef UNDERSTUDY_DESCRIPTOR_H
#define UNDERSTUDY_DESCRIPTOR_H

#include <stdio.h>

/* What a call has just made, as a number above the standard streams', closed when a program is started. Below 0: there is none, and
 * errno is left alone, or says why. */
int us_descriptor(int made);

/* Another number for an open file. */
int us_descriptor_copy(int file);

/* An empty file to write to; NULL: errno says why. */
FILE *us_file_to_write(const char *path);

#endif
