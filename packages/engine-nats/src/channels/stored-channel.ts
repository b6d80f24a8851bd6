import type { ChannelOptions, StoredType } from '@signalbox/broker-core/engine'
import { channelNameProblem } from '@signalbox/broker-core'
import { Type } from 'typebox'

import { jsonOf } from '../json.ts'
import type { Subjects } from '../subjects.ts'

export function isStoredType(type: unknown): type is StoredType {
  return type === 'queues' || type === 'events_store'
}

/** A channel whose messages are kept in its own stream. */
export interface StoredChannel {
  readonly type: StoredType
  readonly name: string
  /**
   * A random id of this channel. It changes when the channel is deleted and created again; also the key of
   * its counters.
   */
  readonly incarnation: string
  readonly stream: string
  readonly options: Readonly<Required<ChannelOptions>>
  readonly revision: number
}

const BOUND = Type.Optional(Type.Integer({ minimum: -1 }))

/**
 * An entry of the bucket. Unknown fields of later versions are ignored; the fields that identify the stream
 * are strict.
 */
const ENTRY = Type.Object({
  type: Type.Union([Type.Literal('queues'), Type.Literal('events_store')]),
  name: Type.String(),
  incarnation: Type.String({ pattern: '^[A-Za-z0-9_-]{16}$' }),
  options: Type.Optional(Type.Object({ compacted: Type.Optional(Type.Boolean()), maxAgeMs: BOUND, maxBytes: BOUND })),
})

/**
 * Parses an entry of the bucket. Returns undefined for an entry that no node of this broker wrote under that
 * key.
 */
export function channelFrom(
  subjects: Subjects,
  key: string,
  text: string,
  revision: number,
): StoredChannel | undefined {
  const entry = jsonOf(ENTRY, text)
  if (!entry) return undefined
  const { type, name, incarnation, options } = entry
  // The Broker's rule, except that empty parts between dots are allowed: for the engine they are a valid
  // name.
  if (channelNameProblem(name.replaceAll(/\.{2,}/g, '.')) !== undefined) return undefined
  if (subjects.channelKey(type, name) !== key) return undefined
  const stream = subjects.stream(type, name, incarnation)
  return { type, name, incarnation, stream, options: optionsFrom(options ?? {}), revision }
}

/** Serializes a channel for its entry in the bucket. */
export function contentOf({ type, name, incarnation, options }: StoredChannel): string {
  return JSON.stringify({ type, name, incarnation, options })
}

/**
 * Fills in the options. -1 means that the channel does not set the value, so the engine's setting applies.
 */
export function optionsFrom({
  compacted = false,
  maxAgeMs = -1,
  maxBytes = -1,
}: ChannelOptions): Required<ChannelOptions> {
  return { compacted, maxAgeMs, maxBytes }
}

/** Returns a stream's description, which names the channel that it was created for. */
export function describeOwner(type: StoredType, name: string): string {
  return `${type} ${JSON.stringify(name)}`
}

/** Parses a description that {@link describeOwner} wrote. */
export function ownerIn(description: string): { readonly type: StoredType; readonly name: string } | undefined {
  const [, type, json = ''] = /^(\w+) (".*")$/s.exec(description) ?? []
  const name = jsonOf(Type.String(), json)
  return isStoredType(type) && name !== undefined ? { type, name } : undefined
}
