import type { ChannelOptions } from '@signalbox/broker-core/engine'
import { channelNameProblem } from '@signalbox/broker-core'
import { Type } from 'typebox'

import { jsonOf } from '../json.ts'
import type { Subjects } from '../subjects.ts'

export type StoredType = 'queues' | 'events_store'

export function isStoredType(type: unknown): type is StoredType {
  return type === 'queues' || type === 'events_store'
}

/** A channel whose messages are kept: a stream of its own. */
export interface StoredChannel {
  readonly type: StoredType
  readonly name: string
  /** Another one for a channel that was deleted and made again; also the key of its counters. */
  readonly incarnation: string
  readonly stream: string
  readonly options: Readonly<Required<ChannelOptions>>
  readonly revision: number
}

const BOUND = Type.Optional(Type.Integer({ minimum: -1 }))

/** An entry of the bucket. What a later version adds is passed over; what it needs to find a stream is exact. */
const ENTRY = Type.Object({
  type: Type.Union([Type.Literal('queues'), Type.Literal('events_store')]),
  name: Type.String(),
  incarnation: Type.String({ pattern: '^[A-Za-z0-9_-]{16}$' }),
  options: Type.Optional(Type.Object({ compacted: Type.Optional(Type.Boolean()), maxAgeMs: BOUND, maxBytes: BOUND })),
})

/** The channel in an entry of the bucket; undefined for what no node of this broker wrote under that key. */
export function channelFrom(
  subjects: Subjects,
  key: string,
  text: string,
  revision: number,
): StoredChannel | undefined {
  const entry = jsonOf(ENTRY, text)
  if (!entry) return undefined
  const { type, name, incarnation, options } = entry
  // As the Broker has it, but that empty parts between dots are taken: to the engine they are a name like any other.
  if (channelNameProblem(name.replaceAll(/\.{2,}/g, '.')) !== undefined) return undefined
  if (subjects.channelKey(type, name) !== key) return undefined
  const stream = subjects.stream(type, name, incarnation)
  return { type, name, incarnation, stream, options: optionsFrom(options ?? {}), revision }
}

/** What the bucket holds of a channel. */
export function contentOf({ type, name, incarnation, options }: StoredChannel): string {
  return JSON.stringify({ type, name, incarnation, options })
}

/** -1 stands for what the channel itself does not say: the engine's own setting holds then. */
export function optionsFrom({
  compacted = false,
  maxAgeMs = -1,
  maxBytes = -1,
}: ChannelOptions): Required<ChannelOptions> {
  return { compacted, maxAgeMs, maxBytes }
}

/** Says in a stream's description which channel it was made for. */
export function describeOwner(type: StoredType, name: string): string {
  return `${type} ${JSON.stringify(name)}`
}

/** What {@link describeOwner} wrote. */
export function ownerIn(description: string): { readonly type: StoredType; readonly name: string } | undefined {
  const [, type, json = ''] = /^(\w+) (".*")$/s.exec(description) ?? []
  const name = jsonOf(Type.String(), json)
  return isStoredType(type) && name !== undefined ? { type, name } : undefined
}
