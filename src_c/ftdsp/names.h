/* Names of one prefix: included by a prefix's file after it has defined PREFIX (fp, hp …), T (the element) and
 * DTYPE. */
#define FT_JOIN_(prefix, op, space) prefix##_##op##_##space
#define FT_JOIN(prefix, op, space) FT_JOIN_(prefix, op, space)
#define FT_TEXT_(name) #name
#define FT_TEXT(name) FT_TEXT_(name)

#define SHARED(op) FT_JOIN(PREFIX, op, s)  /* the function's name */
#define PRIVATE(op) FT_JOIN(PREFIX, op, p)
#define BEGIN_SHARED(op) ft_shared(FT_TEXT(SHARED(op)), DTYPE, core_mask) /* its call */
#define BEGIN_PRIVATE(op) ft_private(FT_TEXT(PRIVATE(op)), DTYPE)
