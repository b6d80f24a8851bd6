import type { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'

import type { MessageInput, Tags } from '@signalbox/broker-core'

import { readBinary } from './binary-mode.ts'
import type { ContentMode } from './content-mode.ts'
import { readBatch, readStructured } from './structured-mode.ts'

/** An event as it came in, ready to be sent. */
export interface IncomingEvent {
  readonly subject: string | undefined
  readonly message: MessageInput & { readonly tags: Tags }
}

/** Reads the events of a request. @throws CeError EVENT_INVALID */
export function readEvents(mode: ContentMode, request: IncomingMessage, body: Buffer): readonly IncomingEvent[] {
  if (mode === 'batch') return readBatch(body)
  return [mode === 'binary' ? readBinary(request, body) : readStructured(body)]
}
