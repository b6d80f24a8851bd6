import { channelNameProblem, isReservedChannel } from '@signalbox/broker-core'
import type { ChannelType } from '@signalbox/broker-core'

import { STEPS_PER_MINUTE } from '../history/time-series.ts'

/** The most edges that are counted at a time: some 10 MiB when full. */
export const MAX_EDGES = 10_000

/** The parts of each window: the minute has 12 steps, the hour has 12 parts of 60 steps. */
const PARTS = 12
const WINDOW_STEPS = { minute: STEPS_PER_MINUTE, hour: 60 * STEPS_PER_MINUTE } as const
const STEPS_PER_PART = { minute: WINDOW_STEPS.minute / PARTS, hour: WINDOW_STEPS.hour / PARTS } as const

export type MapWindow = keyof typeof WINDOW_STEPS

/** The thing in the middle of an edge: a channel, by its type, or an agent. */
export type MiddleType = ChannelType | 'agents'

/** A client sends to a channel or calls an agent; a client receives from a channel; a webhook gets messages. */
export type Relation = 'send' | 'receive' | 'push'

/** The two ends of an edge. */
export interface EdgeEnds {
  readonly relation: Relation
  readonly type: MiddleType
  /** The name of the channel, or the agent_id. */
  readonly name: string
  /** The ClientID, or the id of the webhook subscription. */
  readonly party: string
}

export interface EdgeCounts {
  messages: number
  errors: number
  /** The messages with a known latency, and the sum of their latencies. */
  timed: number
  seconds: number
}

/** The counts of one edge: the present step in plain numbers, and the past of both windows. */
export class Edge implements EdgeCounts {
  messages = 0
  errors = 0
  timed = 0
  seconds = 0
  /** The last step with traffic. */
  lastStep: number
  /** Four numbers for each part of the minute, then of the hour. */
  readonly #past = new Float32Array(2 * PARTS * 4)

  constructor(step: number) {
    this.lastStep = step
  }

  /** Forgets a part of a window, before it is used again. */
  clear(window: MapWindow, part: number): void {
    const at = placeOf(window, part)
    this.#past.fill(0, at, at + 4)
  }

  /** Ends the present step: its counts become part of the past. */
  end(step: number): void {
    if (this.messages === 0 && this.errors === 0) return
    this.lastStep = step
    for (const window of ['minute', 'hour'] as const) {
      const at = placeOf(window, Math.floor(step / STEPS_PER_PART[window]))
      this.#add(at, this.messages, this.errors, this.timed, this.seconds)
    }
    this.messages = 0
    this.errors = 0
    this.timed = 0
    this.seconds = 0
  }

  /** Adds the past of an edge that is forgotten. */
  absorb(other: Edge): void {
    for (let at = 0; at < this.#past.length; at += 4) {
      const [messages = 0, errors = 0, timed = 0, seconds = 0] = other.#past.subarray(at, at + 4)
      this.#add(at, messages, errors, timed, seconds)
    }
  }

  #add(at: number, messages: number, errors: number, timed: number, seconds: number): void {
    const past = this.#past
    past[at] = (past[at] ?? 0) + messages
    past[at + 1] = (past[at + 1] ?? 0) + errors
    past[at + 2] = (past[at + 2] ?? 0) + timed
    past[at + 3] = (past[at + 3] ?? 0) + seconds
  }

  /** Returns the counts of a window, with those of the present step. */
  sum(window: MapWindow): EdgeCounts {
    const sum = { messages: this.messages, errors: this.errors, timed: this.timed, seconds: this.seconds }
    const first = placeOf(window, 0)
    for (let at = first; at < first + 4 * PARTS; at += 4) {
      sum.messages += this.#past[at] ?? 0
      sum.errors += this.#past[at + 1] ?? 0
      sum.timed += this.#past[at + 2] ?? 0
      sum.seconds += this.#past[at + 3] ?? 0
    }
    return sum
  }
}

function placeOf(window: MapWindow, part: number): number {
  return 4 * ((window === 'minute' ? 0 : PARTS) + (part % PARTS))
}

/** The edges of one relation, by the name of the channel or agent, then by the party. */
type Edges = Readonly<Record<MiddleType, Map<string, Map<string, Edge>>>>

/**
 * Counts by edge for the last minute and the last hour. The memory is bounded: beyond {@link MAX_EDGES} edges, further
 * ones count as one. An edge is forgotten after an hour without traffic, or after a minute while the table is full.
 */
export class EdgeTable {
  /** The traffic of edges that are not in the table. */
  readonly others: Edge
  readonly #limit: number
  readonly #relations: Readonly<Record<Relation, Edges>> = { send: noEdges(), receive: noEdges(), push: noEdges() }
  /** The number of the present step. */
  #step: number
  #size = 0

  /** @param step The number of the present step */
  constructor(step: number, limit = MAX_EDGES) {
    this.#step = step
    this.#limit = limit
    this.others = new Edge(step)
  }

  get size(): number {
    return this.#size
  }

  /** Returns an edge to count on. Undefined for a reserved channel, and for a name that no channel can have. */
  of(relation: Relation, type: MiddleType, name: string, party: string): Edge | undefined {
    return this.#relations[relation][type].get(name)?.get(party) ?? this.#add(relation, type, name, party)
  }

  #add(relation: Relation, type: MiddleType, name: string, party: string): Edge | undefined {
    if (type !== 'agents' && (isReservedChannel(name) || channelNameProblem(name) !== undefined)) return undefined
    if (this.#size >= this.#limit) return this.others
    const byName = this.#relations[relation][type]
    let edges = byName.get(name)
    if (edges === undefined) byName.set(name, (edges = new Map()))
    const edge = new Edge(this.#step)
    edges.set(party, edge)
    this.#size++
    return edge
  }

  /** Ends a step. Steps that were left out had no traffic. */
  roll(step: number): void {
    // The clock was set back: until it has caught up, the present step continues.
    if (step < this.#step && this.#step - step < WINDOW_STEPS.hour) return
    this.#end(this.others, step)
    const maxIdle = this.#size >= this.#limit ? WINDOW_STEPS.minute : WINDOW_STEPS.hour
    for (const { edge, forget } of this.#walk()) {
      this.#end(edge, step)
      const idle = step - edge.lastStep
      if (idle < maxIdle) continue
      if (idle < WINDOW_STEPS.hour) this.others.absorb(edge)
      forget()
    }
    this.#step = step + 1
  }

  /** Ends the step of an edge, and makes place for the next one. */
  #end(edge: Edge, step: number): void {
    clearParts(edge, this.#step, step)
    edge.end(step)
    clearParts(edge, step, step + 1)
  }

  *#walk(): Iterable<EdgeEnds & { readonly edge: Edge; readonly forget: () => void }> {
    for (const relation of ['send', 'receive', 'push'] as const) {
      for (const type of MIDDLE_TYPES) {
        const byName = this.#relations[relation][type]
        for (const [name, edges] of byName) {
          for (const [party, edge] of edges) {
            const forget = (): void => {
              this.#size--
              edges.delete(party)
              if (edges.size === 0) byName.delete(name)
            }
            yield { relation, type, name, party, edge, forget }
          }
        }
      }
    }
  }

  /** Returns the edges with traffic in a window. */
  list(window: MapWindow): (EdgeEnds & EdgeCounts)[] {
    const found: (EdgeEnds & EdgeCounts)[] = []
    for (const { relation, type, name, party, edge } of this.#walk()) {
      const counts = edge.sum(window)
      if (counts.messages > 0 || counts.errors > 0) found.push({ relation, type, name, party, ...counts })
    }
    return found
  }

  /** Returns the first step of a window: its parts up to the present step. */
  firstStep(window: MapWindow): number {
    const steps = STEPS_PER_PART[window]
    return (Math.floor(this.#step / steps) - PARTS + 1) * steps
  }
}

/** Clears the parts of an edge that begin after a step, up to the part of another one. */
function clearParts(edge: Edge, after: number, upTo: number): void {
  for (const window of ['minute', 'hour'] as const) {
    const steps = STEPS_PER_PART[window]
    const last = Math.floor(upTo / steps)
    const first = Math.max(Math.floor(after / steps) + 1, last - PARTS + 1)
    for (let part = first; part <= last; part++) edge.clear(window, part)
  }
}

const MIDDLE_TYPES: readonly MiddleType[] = ['queues', 'events', 'events_store', 'commands', 'queries', 'agents']

function noEdges(): Edges {
  return {
    queues: new Map(),
    events: new Map(),
    events_store: new Map(),
    commands: new Map(),
    queries: new Map(),
    agents: new Map(),
  }
}
