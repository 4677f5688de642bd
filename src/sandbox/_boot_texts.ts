/**
 * The programs that run in sandbox children, as texts. They share much of their code, so they stand
 * side by side in a bundle, where one is packed with the others.
 *
 * @module
 */

import hostCode from "./boot/host.min.js" with { type: "text" };
// Its place is here: it is a part of the one before.
import confinedCode from "./boot/confined.min.js" with { type: "text" };
import workerCode from "./boot/worker.min.js" with { type: "text" };

export { confinedCode, hostCode, workerCode };
