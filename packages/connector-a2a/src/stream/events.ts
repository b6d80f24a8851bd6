/**
 * The SSE event name of each envelope type. Any other type has the name
 * `message`.
 */
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

/** The text before and after the stream's id in an event of one type. */
interface EventForm {
  readonly beforeId: string
  readonly afterId: string
}

const FORMS: ReadonlyMap<string, EventForm> = new Map(
  [...SSE_EVENTS.keys(), 'message'].map((type) => [type, eventForm(type, JSON.stringify(type))]),
)

/**
 * Returns one event in the wire format for the client. It runs for each event of each stream, so it
 * does not validate: the event's name is a constant, and the payload is one line.
 * @param typeText JSON text of a type that is not one of the five
 * @param payloadText JSON text of the payload, without line ends
 */
export function clientEventText(streamId: string, type: string, payloadText: string, typeText?: string): string {
  const { beforeId, afterId } = FORMS.get(type) ?? eventForm(type, typeText ?? JSON.stringify(type))
  return `${beforeId}${streamId}${afterId}${payloadText}}\n\n`
}

function eventForm(type: string, typeText: string): EventForm {
  return {
    beforeId: `event: ${SSE_EVENTS.get(type) ?? 'message'}\ndata: {"stream_id":"`,
    afterId: `","type":${typeText},"payload":`,
  }
}

/** The most bytes that the envelope adds to an agent's event. */
export const EVENT_ENVELOPE_BYTES = 1_024

/** An error with which Signalbox ends a stream. */
export interface StreamFailure {
  readonly code: number
  readonly message: string
  /** The code and the reason for a client that speaks an official version of A2A. */
  readonly native: {
    readonly code: number
    readonly reason: string
    /** The setting of the limit that was reached. */
    readonly setting?: string
  }
}

/** Returns the `task.error` event for an error that Signalbox raises. */
export function failureText(streamId: string, { code, message }: Pick<StreamFailure, 'code' | 'message'>): string {
  return clientEventText(streamId, 'error', JSON.stringify({ code, message }))
}
