import type { ChannelOptions } from '@signalbox/broker-core'

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

/** The channel in an entry of the bucket; undefined for what no node of this broker wrote. */
export function channelFrom(subjects: Subjects, text: string, revision: number): StoredChannel | undefined {
  const { type, name, incarnation, options } = fieldsOf(text)
  if (!isStoredType(type) || typeof name !== 'string' || typeof incarnation !== 'string') return undefined
  const stream = subjects.stream(type, name, incarnation)
  return { type, name, incarnation, stream, options: optionsFrom(options), revision }
}

/** What the bucket holds of a channel. */
export function contentOf({ type, name, incarnation, options }: StoredChannel): string {
  return JSON.stringify({ type, name, incarnation, options })
}

function fieldsOf(text: string): Record<string, unknown> {
  try {
    return Object.fromEntries(Object.entries(JSON.parse(text) ?? {}))
  } catch {
    return {}
  }
}

/** -1 stands for what the channel itself does not say: the engine's own setting holds then. */
export function optionsFrom(value: unknown): Required<ChannelOptions> {
  const given = new Map<string, unknown>(Object.entries(value ?? {}))
  const number = (name: string): number => {
    const found = given.get(name)
    return typeof found === 'number' ? found : -1
  }
  return { compacted: given.get('compacted') === true, maxAgeMs: number('maxAgeMs'), maxBytes: number('maxBytes') }
}

/** Says in a stream's description which channel it was made for. */
export function describeOwner(type: StoredType, name: string): string {
  return `${type} ${JSON.stringify(name)}`
}

/** What {@link describeOwner} wrote. */
export function ownerIn(description: string): { readonly type: StoredType; readonly name: string } | undefined {
  const [, type, json = ''] = /^(\w+) (".*")$/s.exec(description) ?? []
  try {
    const name: unknown = JSON.parse(json)
    return isStoredType(type) && typeof name === 'string' ? { type, name } : undefined
  } catch {
    return undefined
  }
}
