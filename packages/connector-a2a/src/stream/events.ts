import { eventText } from '@signalbox/http-kit'

/** What clients of a stream see (specification, "Events"): the SSE event of each envelope type; of any other it is `message`. */
const SSE_EVENTS: ReadonlyMap<string, string> = new Map([
  ['status_update', 'task.status'],
  ['artifact', 'task.artifact'],
  ['done', 'task.done'],
  ['error', 'task.error'],
])

/** The envelope type of each SSE event that has its own. */
export const ENVELOPE_TYPES: ReadonlyMap<string, string> = new Map(
  [...SSE_EVENTS].map(([type, event]) => [event, type]),
)

/**
 * One event as it goes to the client.
 * @param typeText JSON text of the envelope's type
 * @param payloadText JSON text of its payload, in one line
 */
export function clientEventText(streamId: string, type: string, typeText: string, payloadText: string): string {
  return eventText({
    event: SSE_EVENTS.get(type) ?? 'message',
    data: `{"stream_id":"${streamId}","type":${typeText},"payload":${payloadText}}`,
  })
}

/** How many bytes an event may have more on its way to the client than on its way from the agent. */
export const ENVELOPE_BYTES = 1_024

/** An error that Signalbox itself ends a stream with. */
export interface StreamFailure {
  readonly code: number
  readonly message: string
}

/** The `task.error` of an error that Signalbox itself found. */
export function failureText(streamId: string, { code, message }: StreamFailure): string {
  return clientEventText(streamId, 'error', '"error"', JSON.stringify({ code, message }))
}
