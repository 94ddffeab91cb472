#include "mutant.h"
