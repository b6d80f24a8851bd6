import type { Buffer } from 'node:buffer'

import { readBinary } from './binary-mode.ts'
import type { ContentMode } from './content-mode.ts'
import type { IncomingEvent } from './incoming-event.ts'
import { readBatch, readStructured } from './structured-mode.ts'
import type { HttpRequest, Steps } from '@signalbox/http-kit'

/** Reads the events of a request. @throws CeError EVENT_INVALID */
export function* readEvents(mode: ContentMode, request: HttpRequest, body: Buffer): Steps<readonly IncomingEvent[]> {
  if (mode === 'batch') return yield* readBatch(body)
  return [mode === 'binary' ? readBinary(request, body) : yield* readStructured(body)]
}
