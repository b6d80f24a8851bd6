import { createRequire } from 'node:module'

import type * as CloudEvents from 'cloudevents'

const require = createRequire(import.meta.url)

let loaded: typeof CloudEvents | undefined

/** Loads the CloudEvents SDK on the first call: forty files that a server without such events does not need. */
export function cloudEventsSdk(): typeof CloudEvents {
  return (loaded ??= load())
}

function load(): typeof CloudEvents {
  const library: typeof CloudEvents = require('cloudevents')
  return library
}
