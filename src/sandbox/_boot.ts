/**
 * The boot code of a sandbox child, which travels inside the package as text.
 *
 * @module
 */

import host from "./boot/host.min.js" with { type: "text" };
import worker from "./boot/worker.min.js" with { type: "text" };

/** The script of the host thread. */
export const HOST_CODE: string = host;

/** The script of the Worker. */
export const WORKER_CODE: string = worker;
