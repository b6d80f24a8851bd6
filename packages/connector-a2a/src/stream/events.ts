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

/** What stands around the stream's id in an event of one type. */
interface EventForm {
  readonly beforeId: string
  readonly afterId: string
}

const FORMS: ReadonlyMap<string, EventForm> = new Map(
  [...SSE_EVENTS.keys(), 'message'].map((type) => [type, eventForm(type, JSON.stringify(type))]),
)

/**
 * One event as it goes to the client, on the wire form. It is made for each event of each stream, so what needs no check
 * is not checked: the event's name is ours, and the payload is one line.
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

/** How many bytes an event may have more on its way to the client than on its way from the agent. */
export const EVENT_ENVELOPE_BYTES = 1_024

/** An error that Signalbox itself ends a stream with. */
export interface StreamFailure {
  readonly code: number
  readonly message: string
}

/** The `task.error` of an error that Signalbox itself found. */
export function failureText(streamId: string, { code, message }: StreamFailure): string {
  return clientEventText(streamId, 'error', JSON.stringify({ code, message }))
}
