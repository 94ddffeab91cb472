
#include <stdlib.h>
void look(void)
{
    static volatile int sink;
    char *fresh = malloc(10);
    if (fresh[5])
        sink = 1;
    free(fresh);
}
