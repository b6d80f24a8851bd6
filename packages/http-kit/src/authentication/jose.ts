import { createRequire } from 'node:module'

import type * as Jose from 'jose'

const require = createRequire(import.meta.url)

let loaded: typeof Jose | undefined

/** Returns jose, loaded on the first call: a server without authentication does not need its fifty files. */
export function jose(): typeof Jose {
  return (loaded ??= load())
}

function load(): typeof Jose {
  const library: typeof Jose = require('jose')
  return library
}
