/**
 * Finds service workers that another program left at this address: a development server may have
 * used the port before. Such a worker sees every request, and may change the page.
 *
 * @module
 */

import { ApiError } from "./http.ts";

/** How long the browser may take to clear the data, in milliseconds. */
const CLEAR_MS = 2_000;

/** Removes service workers and the data of this address. Throws `ApiError` if there was one. */
export async function refuseServiceWorkers(): Promise<void> {
  if (!("serviceWorker" in navigator)) return;
  const { serviceWorker } = navigator;
  const registrations = await serviceWorker.getRegistrations();
  if (serviceWorker.controller === null && registrations.length === 0) return;
  await Promise.all(registrations.map((one) => one.unregister()));
  localStorage.clear();
  // The answer makes the browser clear all other data of this address, and end the worker. The answer
  // comes through the worker, so the answer may never arrive.
  const signal = AbortSignal.timeout(CLEAR_MS);
  await fetch("/api/clear", { method: "POST", cache: "no-store", signal }).catch(() => {});
  throw new ApiError(409, {
    message: "Another program left a service worker at this address, which could read this page. " +
      "PML has removed it, and did not sign in.",
    hint: "Close this tab before you open a new link. Without --port, the page takes a free port.",
  });
}
