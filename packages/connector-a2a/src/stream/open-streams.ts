import type { CallerStream } from './caller-stream.ts'
import { STREAM_FAILURES } from './failures.ts'
import type { StreamEvent } from './recent-events.ts'

/** A stream of an agent that is open to a client of this node. Times are in ms since the epoch. */
export interface OpenStreamStatus {
  readonly id: string
  readonly agentId: string
  /** The ClientID of the caller. */
  readonly client: string
  readonly openedAt: number
  /** Absent before the first event. */
  readonly lastEventAt?: number
  /** The frames that were written to the client: events, or the parts of large ones. */
  readonly eventCount: number
  /** The last events, oldest first; at most 20. */
  readonly events: readonly StreamEvent[]
}

interface OpenStream {
  readonly stream: CallerStream
  readonly agentId: string
  readonly client: string
  readonly openedAt: number
}

/** The agents' streams that are open to clients of this node. */
export class OpenAgentStreams {
  readonly #streams = new Map<string, OpenStream>()

  get size(): number {
    return this.#streams.size
  }

  add(stream: CallerStream, agentId: string, client: string): void {
    this.#streams.set(stream.streamId, { stream, agentId, client, openedAt: Date.now() })
  }

  delete({ streamId }: CallerStream): void {
    this.#streams.delete(streamId)
  }

  list(): readonly OpenStreamStatus[] {
    return [...this.#streams.values()].map(statusOf)
  }

  /** Ends a stream, and informs its agent; false if it is not open. */
  cancel(id: string): boolean {
    const open = this.#streams.get(id)
    open?.stream.abort()
    return open !== undefined
  }

  /** Ends every stream because the node shuts down. */
  close(): void {
    for (const { stream } of this.#streams.values()) stream.end(STREAM_FAILURES.SHUTTING_DOWN)
  }
}

function statusOf({ stream, agentId, client, openedAt }: OpenStream): OpenStreamStatus {
  const { streamId: id, written: eventCount, recentEvents: events } = stream
  const status = { id, agentId, client, openedAt, eventCount, events }
  return eventCount === 0 ? status : { ...status, lastEventAt: Math.round(Date.now() - stream.quietMs) }
}
