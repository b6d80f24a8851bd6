import { createRequire } from 'node:module'

import type * as CloudEvents from 'cloudevents'

const require = createRequire(import.meta.url)

let loaded: typeof CloudEvents | undefined

/**
 * Returns the CloudEvents SDK, loaded on the first call: a server without such events does not need its forty files.
 */
export function cloudEventsSdk(): typeof CloudEvents {
  return (loaded ??= load())
}

function load(): typeof CloudEvents {
  const library: typeof CloudEvents = require('cloudevents')
  return library
}
