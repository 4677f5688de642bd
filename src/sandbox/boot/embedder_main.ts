/**
 * The entry of the child of the embedding model. It may read only the library and the model: no
 * network, no environment, no other file.
 *
 * @module
 */

import { embedder } from "./embedder.ts";

await embedder();
