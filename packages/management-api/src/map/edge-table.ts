import { isReservedChannel } from '@signalbox/broker-core'
import type { ChannelType } from '@signalbox/broker-core'

import { STEPS_PER_MINUTE } from '../history/time-series.ts'

/** The most edges that are counted at a time: some 10 MiB when full. */
export const MAX_EDGES = 10_000

/** The parts of each window: the minute has 12 steps, the hour has 12 parts of 60 steps. */
const PARTS = 12
const WINDOW_STEPS = { minute: STEPS_PER_MINUTE, hour: 60 * STEPS_PER_MINUTE } as const
const STEPS_PER_PART = { minute: WINDOW_STEPS.minute / PARTS, hour: WINDOW_STEPS.hour / PARTS } as const

export type MapWindow = keyof typeof WINDOW_STEPS

const WINDOWS = ['minute', 'hour'] as const

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

/** One edge: its counts in the present step as plain numbers, and those of the past by parts of both windows. */
export class Edge implements EdgeCounts {
  readonly ends: EdgeEnds
  messages = 0
  errors = 0
  timed = 0
  seconds = 0
  /** The last step with traffic. */
  lastStep: number
  /** Four numbers for each part of the minute, then of the hour. */
  readonly #past = new Float32Array(2 * PARTS * 4)

  constructor(ends: EdgeEnds, step: number) {
    this.ends = ends
    this.lastStep = step
  }

  /** Forgets the counts at places of the past, before they are used again. */
  clear(places: readonly number[]): void {
    for (const at of places) this.#past.fill(0, at, at + 4)
  }

  /** Ends the present step: its counts become part of the past. */
  end(step: number): void {
    if (this.messages === 0 && this.errors === 0) return
    this.lastStep = step
    for (const window of WINDOWS) {
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

/** Returns the places of the parts that begin after a step, up to the part of a later one. */
function placesBetween(after: number, upTo: number): readonly number[] {
  const places: number[] = []
  for (const window of WINDOWS) {
    const steps = STEPS_PER_PART[window]
    const last = Math.floor(upTo / steps)
    const first = Math.max(Math.floor(after / steps) + 1, last - PARTS + 1)
    for (let part = first; part <= last; part++) places.push(placeOf(window, part))
  }
  return places
}

/** The edges of one relation, by the name of the channel or agent, then by the party. */
type EdgesByName = Readonly<Record<MiddleType, Map<string, Map<string, Edge>>>>

const OTHERS: EdgeEnds = { relation: 'send', type: 'queues', name: '', party: '' }

/**
 * Counts by edge for the last minute and the last hour. The memory is bounded: beyond {@link MAX_EDGES} edges, further
 * ones count as one. An edge is forgotten after an hour without traffic, or after a minute while the table is full.
 */
export class EdgeTable {
  /** The traffic of edges that are not in the table. */
  readonly others: Edge
  readonly #limit: number
  readonly #byName: Readonly<Record<Relation, EdgesByName>> = { send: noEdges(), receive: noEdges(), push: noEdges() }
  #edges: Edge[] = []
  /** The number of the present step. */
  #step: number

  /** @param step The number of the present step */
  constructor(step: number, limit = MAX_EDGES) {
    this.#step = step
    this.#limit = limit
    this.others = new Edge(OTHERS, step)
  }

  get size(): number {
    return this.#edges.length
  }

  /** Returns an edge to count on; undefined for a reserved channel. */
  of(relation: Relation, type: MiddleType, name: string, party: string): Edge | undefined {
    return this.#byName[relation][type].get(name)?.get(party) ?? this.#add(relation, type, name, party)
  }

  #add(relation: Relation, type: MiddleType, name: string, party: string): Edge | undefined {
    if (type !== 'agents' && isReservedChannel(name)) return undefined
    if (this.#edges.length >= this.#limit) return this.others
    const byName = this.#byName[relation][type]
    let byParty = byName.get(name)
    if (byParty === undefined) byName.set(name, (byParty = new Map()))
    const edge = new Edge({ relation, type, name, party }, this.#step)
    byParty.set(party, edge)
    this.#edges.push(edge)
    return edge
  }

  #forget({ ends: { relation, type, name, party } }: Edge): void {
    const byName = this.#byName[relation][type]
    const byParty = byName.get(name)
    byParty?.delete(party)
    if (byParty?.size === 0) byName.delete(name)
  }

  /** Ends a step. Steps that were left out had no traffic. */
  roll(step: number): void {
    // The clock was set back: until it has caught up, the present step continues.
    if (step < this.#step && this.#step - step < WINDOW_STEPS.hour) return
    const leftOut = placesBetween(this.#step, step)
    const next = placesBetween(step, step + 1)
    const maxIdle = this.size >= this.#limit ? WINDOW_STEPS.minute : WINDOW_STEPS.hour
    const end = (edge: Edge): void => {
      edge.clear(leftOut)
      edge.end(step)
      edge.clear(next)
    }
    end(this.others)
    this.#edges = this.#edges.filter((edge) => {
      end(edge)
      const idle = step - edge.lastStep
      if (idle < maxIdle) return true
      if (idle < WINDOW_STEPS.hour) this.others.absorb(edge)
      this.#forget(edge)
      return false
    })
    this.#step = step + 1
  }

  /** Returns the edges with traffic in a window. */
  list(window: MapWindow): readonly (EdgeEnds & EdgeCounts)[] {
    const listed = this.#edges.map((edge) => ({ ...edge.ends, ...edge.sum(window) }))
    return listed.filter(({ messages, errors }) => messages > 0 || errors > 0)
  }

  /** Returns the first step of a window: its parts up to the present step. */
  firstStep(window: MapWindow): number {
    const steps = STEPS_PER_PART[window]
    return (Math.floor(this.#step / steps) - PARTS + 1) * steps
  }
}

function noEdges(): EdgesByName {
  return {
    queues: new Map(),
    events: new Map(),
    events_store: new Map(),
    commands: new Map(),
    queries: new Map(),
    agents: new Map(),
  }
}
