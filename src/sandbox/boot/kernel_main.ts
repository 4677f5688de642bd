/**
 * Runs before the code of a child, and before the code that confines a program.
 *
 * @module
 */

import { Kernel, type WithKernel } from "./kernel.ts";

(globalThis as WithKernel).Kernel = Kernel;
