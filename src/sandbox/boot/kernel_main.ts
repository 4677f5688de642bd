/**
 * Stands before the code of a child, and of what confines a program.
 *
 * @module
 */

import { Kernel, type WithKernel } from "./kernel.ts";

(globalThis as WithKernel).Kernel = Kernel;
