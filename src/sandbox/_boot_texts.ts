/**
 * The programs that run in sandbox children, as texts. They share much of their code. This module
 * puts them next to each other in the bundle, in an order that compresses well.
 *
 * @module
 */

import hostCode from "./boot/host.min.js" with { type: "text" };
import workerCode from "./boot/worker.min.js" with { type: "text" };
import codeCode from "./boot/code.min.js" with { type: "text" };
import schemasCode from "./boot/schemas.min.js" with { type: "text" };
import selectCode from "./boot/select.min.js" with { type: "text" };
import kernelCode from "./boot/kernel.min.js" with { type: "text" };
import embedderCode from "./boot/embedder.min.js" with { type: "text" };

export { codeCode, embedderCode, hostCode, kernelCode, schemasCode, selectCode, workerCode };
