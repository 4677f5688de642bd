/**
 * The programs that run in sandbox children, as texts. They share much of their code, so they stand
 * side by side in a bundle, where one is packed with the others.
 *
 * @module
 */

export { default as hostCode } from "./boot/host.min.js" with { type: "text" };
export { default as confinedCode } from "./boot/confined.min.js" with { type: "text" };
export { default as workerCode } from "./boot/worker.min.js" with { type: "text" };
