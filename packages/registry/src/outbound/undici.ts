import { createRequire } from 'node:module'

import type * as Undici from 'undici'

const require = createRequire(import.meta.url)

let loaded: typeof Undici | undefined

/** Loads undici on the first call: a server without agents does not need its hundred files. */
export function undici(): typeof Undici {
  return (loaded ??= load())
}

function load(): typeof Undici {
  const library: typeof Undici = require('undici')
  return library
}
