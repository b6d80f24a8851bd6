import type { ChannelType, Message } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import { allSteps } from '@signalbox/http-kit/internal'

import { bodyKind } from '../event/data-form.ts'
import { cloudEventText, outgoingAttributes } from '../event/event-text.ts'

/** A content mode of CloudEvents for deliveries to webhooks. */
export interface PushFormat {
  readonly name: string
  /** The most events in one delivery. */
  readonly maxBatch: number
  /** Returns the headers and the body of a delivery of one message or more. */
  readonly encode: (
    type: ChannelType,
    messages: readonly Message[],
  ) => { readonly headers: Readonly<Record<string, string>>; readonly body: Uint8Array }
}

/** The most events in one batch. */
const MAX_BATCH = 64

/** The content modes of deliveries, by the name that a subscription has in `config.mode`. */
export const CE_PUSH_FORMATS: Readonly<Record<'structured' | 'binary' | 'batch', PushFormat>> = {
  structured: {
    name: 'cloudevents.structured',
    maxBatch: 1,
    encode: (type, messages) => ({
      headers: { 'content-type': 'application/cloudevents+json; charset=utf-8' },
      body: encodeText(messages.map((message) => cloudEventText(type, message).text).join('')),
    }),
  },
  binary: {
    name: 'cloudevents.binary',
    maxBatch: 1,
    encode: (type, messages) => {
      const [message] = messages
      if (message === undefined) throw new RangeError('a delivery in binary mode has one message')
      return { headers: binaryHeaders(type, message), body: message.body }
    },
  },
  batch: {
    name: 'cloudevents.batch',
    maxBatch: MAX_BATCH,
    encode: (type, messages) => ({
      headers: { 'content-type': 'application/cloudevents-batch+json; charset=utf-8' },
      body: encodeText(`[${messages.map((message) => cloudEventText(type, message).text).join(',')}]`),
    }),
  },
}

function binaryHeaders(type: ChannelType, message: Message): Readonly<Record<string, string>> {
  const { texts, carried } = outgoingAttributes(type, message)
  const headers: Record<string, string> = {}
  for (const [name, text] of texts) if (name !== 'datacontenttype') headers[`ce-${name}`] = encodeHeaderValue(text)
  const contentType = carried === undefined ? typeOfBody(message.body) : texts.get('datacontenttype')
  if (contentType !== undefined) headers['content-type'] = encodeHeaderValue(contentType).replaceAll('%20', ' ')
  return headers
}

/** Returns the type of the body of a message that is no event. */
function typeOfBody(body: Uint8Array): string | undefined {
  return body.byteLength === 0 ? undefined : TYPES[allSteps(bodyKind(body))]
}

const TYPES = { json: 'application/json', text: 'text/plain', bytes: 'application/octet-stream' } as const

/** Returns the `ce-` header of an attribute's value (HTTP binding 3.1.3.2): percent-encodes what a header cannot hold. */
function encodeHeaderValue(text: string): string {
  return text.toWellFormed().replace(/[^\x21\x23\x24\x26-\x7e]+/gu, (part) => encodeURIComponent(part))
}
